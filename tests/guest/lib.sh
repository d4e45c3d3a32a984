# SPDX-License-Identifier: GPL-2.0-only
# What guest tests share. A test is a list of checks; each prints 'ok - what' or 'not ok - what'.
# It begins with '. /tests/lib.sh' and ends with 'finish'.
SCX=/sys/kernel/sched_ext
LOG=/tmp/roost.log
LOAD_LIMIT_S=60
# A reload may take 2 s. An emulated CPU executes 0.5 G instructions a second, shared with the
# other CPUs; a real one ten times as many. Half of that factor is granted.
RESTART_LIMIT_S=10
ROOST_PID=
told=
NCPU=$(nproc)
# What is random goes on for so many times the shortest time.
TIMES=$(cat /tests/times)

ok() { echo "ok - $1"; }

# The first failure of a test also shows what the scheduler and the kernel said.
not_ok() {
	echo "not ok - $1"
	[ -z "$told" ] || return 0
	told=1
	[ -s $LOG ] && grep -v -e '^$' -e 'libbpf: struct_ops' -e 'SCX_EV_' $LOG | tail -n 12 | sed 's/^/# roost: /'
	dmesg | grep -v 'smpboot' | tail -n 8 | sed 's/^/# dmesg: /'
}

# check WHAT COMMAND...: ok when the command succeeds.
check() {
	what=$1
	shift
	if "$@"; then ok "$what"; else not_ok "$what"; fi
}

# within LOW HIGH VALUE (numbers may have fractions)
within() { awk "BEGIN { exit !($3 >= $1 && $3 <= $2) }"; }

# skip REASON: end the test without a verdict; only for what this machine or kernel cannot do.
skip() {
	echo "# skip $1"
	exit 0
}

state() { cat $SCX/state; }
state_is() { [ "$(state)" = "$1" ]; }
roost_alive() { [ -d "/proc/$ROOST_PID" ] && kill -0 "$ROOST_PID" 2>/dev/null; }
roost_enabled() { state_is enabled && roost_alive; }

# wait_for SECONDS COMMAND...: poll until the command succeeds.
wait_for() {
	tries=$(($1 * 20))
	shift
	while ! "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.05
	done
}

# Seconds since the boot, which suspends count for.
up() { cut -d' ' -f1 /proc/uptime; }

# Ticks that all CPUs together have been idle.
idle_ticks() { awk '$1 == "cpu" { print $5 + $6 }' /proc/stat; }

enabled_or_gone() { state_is enabled || ! roost_alive; }

start_roost() {
	gone=0
	scx_roost "$@" >$LOG 2>&1 &
	ROOST_PID=$!
	wait_for $LOAD_LIMIT_S enabled_or_gone
	check "scheduler enabled (scx_roost $*)" roost_enabled
	roost_enabled || finish
}

# turn CPU 0|1 [SECONDS]: take the CPU offline, or back, within that time.
turn() {
	check "no bad event before" events_clean
	[ "$2" = 1 ] || gone=$((gone + 1))
	begin=$(up)
	echo "$2" >/sys/devices/system/cpu/cpu$1/online
	took=$(awk "BEGIN { print $(up) - $begin }")
	check "CPU $1 to $2 within ${3:-5} s (got $took)" within 0 "${3:-5}" "$took"
}

# A CPU that was offline at the start and comes causes a reload of the scheduler, which does not
# know its place. late_goes, start_roost, late_comes.
LATE_CPU=/sys/devices/system/cpu/cpu$((NCPU - 1))/online
late_goes() {
	maps_are_freed
	echo 0 >$LATE_CPU
}

# Linux 6.16 frees the maps of a scheduler that has ended in a worker that must not migrate, and
# that waits for an RCU grace period, which needs the CPU hotplug lock. If the worker's CPU goes
# offline meanwhile, the three wait for each other for ever (bpf_map_free_deferred(),
# rcu_tasks_trace_pregp_step(), sched_cpu_wait_empty()).
frees_maps() { grep -q bpf_map_free_deferred /proc/[0-9]*/stack 2>/dev/null; }
frees_no_map() { ! frees_maps && sleep 0.3 && ! frees_maps; }
maps_are_freed() { wait_for 20 frees_no_map; }
loaded_anew() { [ "$(cat $SCX/enable_seq)" -gt "$loads" ] && roost_enabled; }
late_comes() {
	loads=$(cat $SCX/enable_seq)
	echo 1 >$LATE_CPU
	wait_for 40 loaded_anew
	check "a CPU comes: loaded again, by the same process" loaded_anew
}

# Counters of the kernel that mean a bug in the scheduler: it inserted a task that it did not own,
# or chose a CPU that was not allowed or not online. While a CPU goes, the last two also happen
# without a bug: the kernel takes it out of use before it tells, and corrects the choice (struct
# scx_event_stats; docs/explanation/reliability.md). A wakeup's choice may then be corrected any
# number of times, a task's move to the CPU's queue once for each CPU that goes.
# scx_rustland_core inserts tasks by messages, also one that has left the queue since: the kernel
# then leaves it alone.
gone=0
in_rust=${in_rust:-}
events_clean() {
	[ -f $SCX/root/events ] || return 0
	bad=$(awk -v gone="$gone" -v in_rust="$in_rust" '
		/SELECT_CPU_FALLBACK/ && $2 && !gone
		/DISPATCH_LOCAL_DSQ_OFFLINE/ && $2 > gone
		/INSERT_NOT_OWNED/ && $2 && !in_rust' $SCX/root/events)
	[ -z "$bad" ] || { echo "$bad" | sed 's/^/# event: /' && false; }
}

# For toggle: each NAME, or of a sub-switch NAME=FEATURE.
all_features() {
	scx_roost features --json |
		awk -F'"' '/"name":/ { name = $4 } /"parent":/ { printf "%s ", $4 ? name "=" $4 : name }'
}

# The tricks of game.c, each with the number of its attackers.
TRICKS="hog:1 long_slice:1 long_slice:4 two_slices:1 naps:1 short_naps:4 yields:1 pins:1 batch:1 \
idle_class:1 forks:1 ring:2 ring:20 arms:1 groups:1 claims:1"
# From Linux 6.17 on sched_ext reports a group's limit. Before, no limit may be set.
limits_are_reported() { grep -q cgroup_set_bandwidth /sys/kernel/btf/vmlinux; }
# plays FILE: a line of figures for each. The groups belong to the attackers' user.
plays() {
	mkdir -p /sys/fs/cgroup/own/a /sys/fs/cgroup/own/b
	echo +cpu >/sys/fs/cgroup/own/cgroup.subtree_control
	chown -R 1000 /sys/fs/cgroup/own
	# The attacker may have left it.
	echo max >/sys/fs/cgroup/own/a/cpu.max
	for trick in $TRICKS $(limits_are_reported && echo limits:1); do
		game "${trick%:*}" 1500 "${trick#*:}" >>"$1" || not_ok "trick $trick is played"
	done
}
# An arm with short slices, and the rule by which a trick hops to it and back.
second_arm() {
	scx_roost ctl arms add short --preset mainline
	scx_roost ctl set --arm short --set slice-us=100 --set min-slice-us=100
	scx_roost ctl rules add --comm 'even*' --arm short
}
# fair EEVDF OTHER: each figure of the other file is within its band. The share within a tenth, and
# 3 points; the longest wait, the lateness and the response time within twice, and 1 ms.
fair() {
	paste -d' ' "$1" "$2" | awk '
		{ bad = $9 < 0.9 * $3 - 3 || $10 > 2 * $4 + 1000 || $11 > 2 * $5 + 1000 ||
			$12 > 2 * $6 + 1000
		  n += bad
		  printf "# %-10s x%d share %5.1f %5.1f %%, ", $1, $2, $3, $9
		  printf "waits %6d %6d us, late %6d %6d us, ", $4, $10, $5, $11
		  print "answers " $6, $12 " us" (bad ? " <--" : "") }
		END { exit n > 0 || !NR }'
}

# What the process holds: memory in kB, open files.
roost_kb() { awk '/^VmRSS:/ { print $2 }' /proc/$ROOST_PID/status; }
roost_files() { ls /proc/$ROOST_PID/fd | wc -l; }

# end_roost SIGNAL STATUS: the signal ends it with that exit status, and the machine is back on its
# own scheduler.
end_roost() {
	kill "-$1" "$ROOST_PID"
	wait "$ROOST_PID"
	rc=$?
	check "exit status is $2 after SIG$1 (got $rc)" [ $rc = "$2" ]
	wait_for 5 state_is disabled
	check "state is disabled after SIG$1" state_is disabled
}

# ab ARGUMENTS: a comparison; what it says is in $AB_LOG, its result in $AB_RESULT.
AB_LOG=/tmp/ab.log
AB_RESULT=/tmp/ab.jsonl
ab() { scx_roost ab --result $AB_RESULT "$@" >$AB_LOG 2>&1; }
ab_anew() { rm -f $AB_RESULT; }
# ab_starts ARGUMENTS: the same in the background, as $AB.
ab_starts() {
	scx_roost ab --result $AB_RESULT "$@" >$AB_LOG 2>&1 &
	AB=$!
}
# ab_cleared: nothing of it is left; else it prints what is. ab_alone: also, the machine has its own
# scheduler.
ab_cleared() {
	! pids=$(pidof sleep) || { echo "processes are left: $pids"; return 1; }
	left=$(ls -d /sys/fs/cgroup/scx_roost-ab-* /tmp/scx_roost-ab-* 2>/dev/null | tr '\n' ' ')
	[ -z "$left" ] || { echo "it is left: $left"; return 1; }
}
ab_alone() {
	state_is disabled || { echo "sched_ext is $(state), not disabled"; return 1; }
	ab_cleared
}
# ab_restored WHAT: within seconds all is as it was, or a line says what is not. A test whose
# machine had another scheduler sets AB_BACK, which checks and prints what differs, and
# AB_BACK_WHAT.
AB_BACK=ab_alone
AB_BACK_WHAT="its own scheduler, and no process, cgroup or folder is left"
ab_is_back() { $AB_BACK >/tmp/ab-back; }
ab_restored() {
	wait_for 60 ab_is_back || sed 's/^/# not back: /' /tmp/ab-back
	check "$1: $AB_BACK_WHAT" ab_is_back
	ab_anew
}
# ab_interrupted: Ctrl-C ends $AB as it should.
ab_interrupted() {
	kill -INT $AB
	wait $AB
	check "interrupted: status 1" [ $? = 1 ]
	check "how to continue is printed" ab_says 'stopped; continue with --resume and'
	ab_restored interrupted
}
ab_says() { grep -q -e "$1" $AB_LOG || { sed 's/^/# ab: /' $AB_LOG && false; }; }

# verdict VARIANT FILE: its verdict on the first metric.
verdict() { sed -n "s/^$1 against [^ ]*: \([a-z ]*\), .*/\1/p" "${2:-$AB_LOG}" | head -n 1; }

# counter NAME FILE: of the last line of JSON there.
counter() { sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" "$2" | tail -n 1; }

# condition NAME FILE: 1 while it lasts, in the last line of JSON there.
condition() { sed -n "s/.*\"$1\":{\"active\":\([01]\).*/\1/p" "$2" | tail -n 1; }

# arm_counter ARM NAME FILE: the same of one arm.
arm_counter() {
	sed -n "s/.*\"$1\":{\([^}]*\)}.*/{\1}/p" "$3" | sed -n "s/.*\"$2\":\([0-9]*\).*/\1/p" | tail -n 1
}

# arm_hist ARM HISTOGRAM FILE: how much it holds.
arm_hist() {
	sed -n "s/.*\"$1\":{[^}]*\"$2\":\[\([0-9,]*\)\].*/\1/p" "$3" |
		awk -F, '{ for (i = 1; i <= NF; i++) sum += $i; print sum }'
}

# arm_wakeups ARM FILE: how many wakeups there were.
arm_wakeups() { arm_hist "$1" wakeup_latency "$2"; }

# audit: sets drift, that of util_est over all CPUs; what else it says is in /tmp/audit.
audit() { scx_roost ctl show --audit >/tmp/audit && drift=$(sed -n 's/^drift //p' /tmp/audit); }

# busy_arms [SECONDS]: the arms but default on which a task that wakes often is, in order.
BUSY_WAKEUPS=20
busy_arms() {
	totals >/tmp/before
	sleep "${1:-0.5}"
	totals >/tmp/after
	for arm in $(scx_roost ctl arms | cut -d' ' -f1 | grep -v '^default$'); do
		grown=$(($(arm_wakeups "$arm" /tmp/after) - $(arm_wakeups "$arm" /tmp/before)))
		[ $grown -lt $BUSY_WAKEUPS ] || echo "$arm"
	done | sort | tr '\n' ' ' | sed 's/ $//'
}

# on_arms WHAT ARMS: exactly these are busy, a moment after a change.
on_arms() {
	sleep 0.1
	busy=$(busy_arms)
	check "$1: on ${2:-default alone} (got ${busy:-default alone})" [ "$busy" = "$2" ]
}

# No rule places a task that the scheduler does not know. A claim that is never released keeps a CPU
# idle.
no_stranger() {
	totals >/tmp/totals && [ "$(counter no_task_ctx /tmp/totals)" = 0 ]
}
no_lost_claim() { [ "$(counter claim_lost /tmp/totals)" = 0 ]; }

stop_roost() {
	check "scheduler still enabled" roost_enabled
	check "every task had its context (no_task_ctx is 0)" no_stranger
	check "no claim was lost (claim_lost is 0)" no_lost_claim
	check "no bad event" events_clean
	end_roost INT 0
}

# Lines of the kernel log that no healthy run prints.
BAD_DMESG='sched_ext:.*(error|stall|runtime)|BUG:|WARNING:|Oops|rcu.*stall|soft lockup|hard LOCKUP|blocked for more|deprecated'

# The core takes memory for tasks in a way that may fail at a load, and scx_roost loads it again:
# without that line.
kernel_log() {
	dmesg | awk -v in_rust="$in_rust" '{
		if (in_rust && /ops\.init_task\(\) failed \(-12\)/) held = ""
		if (held != "") print held
		held = $0
	} END { print held }'
}

dmesg_clean() { ! kernel_log | grep -E -A12 "$BAD_DMESG" | head -n 30 | sed 's/^/# dmesg: /' | grep .; }

left_behind() { find /run -path /run/systemd -prune -o -type s -print; find /sys/fs/bpf -mindepth 1; }

finish() {
	check "kernel log is clean" dmesg_clean
	check "state is disabled at the end" state_is disabled
	left=$(left_behind)
	check "no socket and nothing pinned is left $left" [ -z "$left" ]
	exit 0
}
