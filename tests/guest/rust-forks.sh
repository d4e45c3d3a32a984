# SPDX-License-Identifier: GPL-2.0-only
# Why forks migrate more under --backend rust: the kernel's own scheduler places a new task before
# migrations are counted, the core only after that; and a task of the queue for all CPUs goes to the
# CPU that is free first. Few CPUs that userspace takes for idle are busy.
# topology: 4
# accel: icount
# timeout: 60
# needs: rustland
# long: yes
. /tests/lib.sh
TRACE=/sys/kernel/tracing
switch_events() {
	for event in wakeup_new migrate_task; do echo $1 >$TRACE/events/sched/sched_$event/enable; done
}
# measure NAME: 1000 forks. Sets born, elsewhere (of these, first queued on another CPU than the
# parent's), moves, first_moves (of tasks that were just born).
measure() {
	echo 16000 >$TRACE/buffer_size_kb
	echo >$TRACE/trace
	switch_events 1
	check "$1: every child is born, runs and is reaped" forks 1000 4
	switch_events 0
	counts=$(awk '
		function field(name) { match($0, " " name "=[0-9]+"); return substr($0, RSTART + length(name) + 2, RLENGTH - length(name) - 2) }
		/comm=forks/ && /sched_wakeup_new:/ {
			born++
			match($0, /\[[0-9]+\]/)
			elsewhere += substr($0, RSTART + 1, RLENGTH - 2) + 0 != field("target_cpu") + 0
			new[field("pid")] = 1
		}
		/comm=forks/ && /sched_migrate_task:/ {
			moves++
			pid = field("pid")
			first += new[pid]
			new[pid] = 0
		}
		END { print born + 0, elsewhere + 0, moves + 0, first + 0 }' $TRACE/trace)
	set -- "$1" $counts
	born=$2 elsewhere=$3 moves=$4 first_moves=$5
	echo "# $1: $born new tasks, $elsewhere queued elsewhere; $moves migrations, $first_moves of new tasks"
}
grown() { echo $(($(counter $1 /tmp/after) - $(counter $1 /tmp/before))); }

measure eevdf
check "the kernel's own places new tasks elsewhere ($elsewhere)" [ $elsewhere -gt 50 ]
check "which is no migration ($first_moves)" [ $first_moves -lt 50 ]
start_roost
totals >/tmp/before
measure rust
totals >/tmp/after
check "the core queues each where its parent is ($elsewhere)" [ $elsewhere = 0 ]
check "so its way from there is a migration ($first_moves)" [ $first_moves -gt 300 ]
placed=$(($(grown enq_idle) + $(grown enq_queued)))
refused=$(grown claim_release)
echo "# of $placed placements the kernel refused $refused, and $(grown enq_queued) joined the queue for all CPUs"
check "the kernel refuses few" [ $((refused * 4)) -lt $placed ]
end_roost INT 0
finish
