# SPDX-License-Identifier: GPL-2.0-only
# prev_idle: a task whose previous CPU is idle, but was busy recently, is woken from another cache,
# and stays. Without the feature its load sends it to the waker's cache. (Within one cache there is
# no difference: an idle previous CPU is taken there anyway.)
# topology: 8 2node
# accel: icount
# timeout: 120
# long: 2node
. /tests/lib.sh
ROUNDS=50
# The last CPU shares no cache with CPU 0.
LAST=$((NCPU - 1))

# crossings PRESET: counts how often the task did not stay; its counters are in /tmp/totals
crossings() {
	start_roost --preset "$1"
	scx_roost ctl arms add w >/dev/null
	elsewhere=$(scx_roost exec --arm w -- home $ROUNDS 0 $LAST)
	totals >/tmp/totals
	crossed=$(arm_counter w placed_other_llc /tmp/totals)
	stayed=$(arm_counter w wa_prev_idle /tmp/totals)
	echo "# $1: of $ROUNDS wakeups $elsewhere elsewhere; in another LLC $crossed, prev_idle $stayed," \
		"by load $(arm_counter w wa_weight_this /tmp/totals) to the waker's and $(arm_counter w wa_weight_prev /tmp/totals) not"
	stop_roost
}

crossings mainline-no-prev-idle
check "without prev_idle it crosses (got $crossed)" [ "$crossed" -ge $((ROUNDS / 2)) ]
check "and prev_idle counts nothing" [ "$stayed" = 0 ]
without=$crossed
crossings mainline
check "prev_idle acts (got $stayed)" [ "$stayed" -ge $((ROUNDS / 2)) ]
check "it crosses less, at most a quarter of $without times (got $crossed)" within 0 $((without / 4)) "$crossed"
finish
