# SPDX-License-Identifier: GPL-2.0-only
# One rt-app file in this kernel and in the simulator of this machine: how its wakeups were decided,
# in percent.
# topology: 8
# accel: icount
# timeout: 240
# needs: rt-app
. /tests/lib.sh
# The file is plain JSON, which the simulator reads. Times are those of a clock, not of work
# (runtime): CPUs of the guest share the host's. rt-app looks at the clock after "32 us" of work,
# and a calibration far too large makes that short. In it are
# - beat: tasks that are woken by timers, each by its own time;
# - burst: now and then ten more at one instant, which is more than there are CPUs;
# - head and tail: one wakes another, which goes on while the first does;
# - ping and pong, in turn: a task that wakes another sleeps. Each signals and waits under one lock.
#   A signal for which nobody waits is lost, and if the other one lost it, both would wait for ever:
#   half of the run's wakeups would be missing.
FILE=/tests/agree.json
# Each wakeup is decided by one of these rungs.
RUNGS='prev_core recent_core sync_core sis_target sis_prev sis_kthread sis_recent sis_smt sis_core sis_cpu sis_none
	wide_node wide_machine spread_wakeup sync_local'
# The outcomes of wakeups.
ENDS='placed_prev placed_idle_core placed_other_llc enq_idle enq_queued enq_back preempt_wakeup stacked'

# pairs: a line 'NAME VALUE' for each field of a flat JSON object
pairs() { tr -d '"{}' | tr ',' '\n' | tr ':' ' '; }

# How the timers fall between ticks differs from run to run, and moves a row by up to 4 points. So
# several runs are summed.
RUNS=3

# Points. Measured: 6.6 at most. Emulated CPUs run one after the other: of two wakeups at one
# instant, the second sees the first and finds no idle CPU (sis_none). On CPUs that run in parallel
# both take one CPU (stacked). With claims this difference vanishes. Presets are 57 points apart.
TOLERANCE=8
# Percent by which the kernel has fewer wakeups. Measured: 10. A task that waits for another task
# also waits for its virtual CPU.
FEWER=15

# compare PRESET: prints NAME, the kernel's value, the simulator's, and the difference in points
compare() {
	awk -v rungs="$RUNGS" -v ends="$ENDS" -v runs=$RUNS '
	NR == FNR { model[$1] = $2; next }
	{ kernel[$1] = $2 }
	END {
		n = split(rungs, rung)
		for (i = 1; i <= n; i++) { a += kernel[rung[i]]; b += model[rung[i]] }
		printf "%-18s %8d %8d\n", "wakeups", a / runs, b
		n = split(rungs " " ends, name)
		for (i = 1; i <= n; i++) {
			x = 100 * kernel[name[i]] / a; y = 100 * model[name[i]] / b
			if (x || y) printf "%-18s %8.1f %8.1f %8.1f\n", name[i], x, y, x - y
		}
	}' /tmp/model /tmp/kernel >/tmp/both
	sed "s/^/# $1: /" /tmp/both
	apart=$(awk -v most=$TOLERANCE 'NF == 4 && ($4 > most || -$4 > most) { print $1 }' /tmp/both | tr '\n' ' ')
	check "$1: what a hundred wakeups got differs by $TOLERANCE at most ${apart:+(not: $apart)}" [ -z "$apart" ]
	fewer=$(awk '$1 == "wakeups" { print ($3 - $2) * 100 / $3 }' /tmp/both)
	check "$1: there are as many wakeups, less $FEWER % at most (got $fewer)" within -2 $FEWER "$fewer"
}

# agree PRESET
agree() {
	start_roost --preset "$1"
	scx_roost ctl arms add rt --preset "$1" >/dev/null
	for run in $(seq $RUNS); do
		scx_roost exec --arm rt -- rt-app $FILE >/tmp/rt 2>&1
		check "rt-app runs ($run)" grep -q Exiting /tmp/rt
	done
	totals >/tmp/totals
	sed 's/.*"rt":{"counters":{\([^}]*\)}.*/\1/' /tmp/totals | pairs >/tmp/kernel
	stop_roost
	roost-sim $FILE --sysfs /sys --variant "$1" --seeds 1 --json 2>/dev/null >/tmp/sim
	sed 's/.*"counters":{\([^}]*\)}.*/\1/' /tmp/sim | pairs >/tmp/model
	compare "$1"
}
[ "$TIMES" -gt 1 ] && presets='mainline roost' || presets=roost
for preset in $presets; do
	agree $preset
done
finish
