# SPDX-License-Identifier: GPL-2.0-only
# One file of rt-app in this kernel and in the simulator, of this very machine: how its wakeups were decided, of each hundred.
# topology: 8
# accel: icount
# timeout: 240
# needs: rt-app
. /tests/lib.sh
FILE=/tests/agree.json
# Each wakeup is decided by one of these.
RUNGS='prev_core recent_core sync_core sis_target sis_prev sis_kthread sis_recent sis_smt sis_core sis_cpu sis_none
	wide_node wide_machine spread_wakeup sync_local'
# And this is what came of it.
ENDS='placed_prev placed_idle_core placed_other_llc enq_idle enq_queued enq_back preempt_wakeup stacked'

# pairs: 'NAME VALUE' a line, of an object of JSON in which there is none
pairs() { tr -d '"{}' | tr ',' '\n' | tr ':' ' '; }

# Where the timers' beats fall between ticks differs from run to run, and moves a row by up to 4 points: so many runs together.
RUNS=3

# Points. Measured: 6.6 at most. Virtual CPUs run one after the other: of wakeups at one instant the second sees the first, and
# finds nothing idle (sis_none), where on CPUs that run side by side both take one CPU (stacked). With claims nothing of that is left.
# Presets are 57 apart.
TOLERANCE=8
# Percent by which the kernel has fewer wakeups. Measured: 10. Who waits for another task waits for its virtual CPU, too.
FEWER=15

# compare PRESET: prints NAME, of the kernel, of the simulator, points between
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
	scx_roost sim $FILE --sysfs /sys --param noise_rate=0 --variant "$1" --seeds 1 --json 2>/dev/null >/tmp/sim
	sed 's/.*"counters":{\([^}]*\)}.*/\1/' /tmp/sim | pairs >/tmp/model
	compare "$1"
}
for preset in mainline roost; do
	agree $preset
done
finish
