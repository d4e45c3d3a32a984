# SPDX-License-Identifier: GPL-2.0-only
# Two workloads on two arms at once: each arm's features act on its own tasks only, and only its own
# counters move.
# topology: 8
# accel: icount
# timeout: 120
. /tests/lib.sh
start_roost --preset mainline-no-prev-idle
scx_roost ctl arms add a --preset mainline
scx_roost ctl arms add b --preset roost
scx_roost ctl arms add nobody --preset roost
scx_roost exec --arm a -- hackbench -T -p -g 1 -f 4 -l 300 >/dev/null &
one=$!
scx_roost exec --arm b -- hackbench -T -p -g 1 -f 4 -l 300 >/dev/null &
two=$!
scx_roost exec --arm b -- probe sleep 1 100000 >/dev/null
wait $one && wait $two
check "both end well" [ $? = 0 ]
totals >/tmp/totals

# counted ARM COUNTER, none ARM COUNTER
counted() {
	n=$(arm_counter "$1" "$2" /tmp/totals)
	check "arm $1 counts $2 (got ${n:-nothing})" [ "${n:-0}" -gt 0 ]
}
none() {
	n=$(arm_counter "$1" "$2" /tmp/totals)
	check "arm $1 counts no $2 (got ${n:-nothing})" [ "${n:-1}" = 0 ]
}
for arm in a b default; do
	counted $arm placed_prev
	counted $arm dispatch_keep
	check "arm $arm has wakeups in its histogram" [ "$(arm_wakeups $arm /tmp/totals)" -gt 0 ]
done
counted b prev_core
counted b burst_request
for counter in prev_core burst_request core_first sync_local wide_node; do
	none a $counter
	none default $counter
done
none default wa_prev_idle
for counter in placed_prev enq_idle enq_queued sis_none prev_core fork_idle; do
	none nobody $counter
done
check "no task woke on an arm without tasks" [ "$(arm_wakeups nobody /tmp/totals)" = 0 ]
for counter in placed_prev enq_queued sis_none prev_core; do
	sum=0
	for arm in a b nobody default; do
		sum=$((sum + $(arm_counter $arm $counter /tmp/totals)))
	done
	all=$(counter $counter /tmp/totals)
	check "$counter of the arms is that of all (sum $sum, all $all)" [ $sum = "$all" ]
done
# A task that wakes alone on an idle machine runs at once: few of the 24 buckets have a count, and
# those are of short times.
scx_roost ctl arms add zero
scx_roost exec --arm zero -- probe sleep 1 100000 >/dev/null
totals >/tmp/totals
p99=$(sed -n 's/.*"zero":.*"wakeup_p99_us":\([0-9]*\).*/\1/p' /tmp/totals)
check "a lone sleeper's p99 is below 1 ms (got ${p99:-nothing} us)" within 1 1000 "${p99:-0}"
stop_roost
finish
