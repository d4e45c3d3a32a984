# SPDX-License-Identifier: GPL-2.0-only
# Roy's v7 against mainline, with half of the CPUs busy and with 31 %: a task that wakes gets its
# previous core if that is idle, and more tasks run on a core of their own. The workload is that of
# scripts/bench. Its runs are of two kinds: workers find their places, with 0 to 5 moves in all, or
# two of them follow each other around, with 18 and more. Chance decides of which kind a run is, so
# runs of the second kind are counted, and not moves. How long workers share a core while another is
# idle differs as much: one pair that shares for most of a run can be more than all other runs
# together. So runs are compared by rank. How much it is over boots is measured by
# scripts/bench --suite cores. Ranks want ten runs of each, which only a full run has.
# topology: 8
# accel: icount
# timeout: 200
# own-boot: yes
. /tests/lib.sh
RUNS=10
# Fewer runs, where only a counter matters.
SOME=4
CHUNKS=30
# Another course of the same boot may have one run more of many moves.
FEW_RUNS=2
# Of the 100 pairs of one run of each preset, the second has more in so many only once in a thousand
# times if the presets are alike (Mann and Whitney's U for 10 and 10 runs).
CHANCE=90
guest deadlines

# run_workers COUNT RUNS: sets for each run how many of 1000 looks at the workers were `avoidable`
# (one shares its core while another is idle) and how many `moves` they made, and the number of
# `restless` runs, with more moves than workers
run_workers() {
	avoidable='' moves='' restless=0
	for seed in $(seq "$2"); do
		scx_roost exec --arm w -- guest workers "$1" $CHUNKS "$seed" >/tmp/out || not_ok "workers: $(cat /tmp/out)"
		avoidable="$avoidable $(($(field avoidable) * 1000 / $(field looks)))"
		moves="$moves $(field moves)"
		[ "$(field moves)" -le "$1" ] || restless=$((restless + 1))
	done
}
field() { sed -n "s/.*$1=\([0-9]*\).*/\1/p" /tmp/out; }
# pairs_more "RUNS" "OTHERS": of the pairs of one of each, in how many the second has more; half a
# pair if they are equal
pairs_more() {
	twice=0
	for one in $1; do
		for other in $2; do
			[ "$other" -lt "$one" ] || twice=$((twice + 1))
			[ "$other" -le "$one" ] || twice=$((twice + 1))
		done
	done
	echo $((twice / 2))
}
# fired COUNTER: its value on the workers' arm
fired() { arm_counter w "$1" /tmp/totals; }

# under WORKERS RUNS ARGS...: also sets `cores`: placements on idle cores per thousand
under() {
	count=$1 runs=$2
	shift 2
	start_roost "$@"
	scx_roost ctl arms add w >/dev/null
	guest settle 8
	run_workers "$count" "$runs"
	totals >/tmp/totals
	cores=$(($(fired placed_idle_core) * 1000 / $(arm_wakeups w /tmp/totals)))
	echo "# $count workers, $*: of 1000 wakeups $cores on idle cores, of 1000 looks avoidable:$avoidable, moves:$moves;" \
		"prev_core $(fired prev_core), recent_core $(fired recent_core), sync_core passed $(fired sync_core_passed)"
	stop_roost
}
# beside_mainline WORKERS ARGS...: compares roy-v7 with mainline
beside_mainline() {
	count=$1
	shift
	under "$count" $RUNS --preset mainline
	mainline_avoidable=$avoidable mainline_cores=$cores mainline_restless=$restless
	under "$count" $RUNS --preset roy-v7 "$@"
	check "$count workers $*: prev_core acts in most wakeups of theirs" [ "$(fired prev_core)" -ge $((RUNS * CHUNKS)) ]
	check "$count workers $*: hardly more runs are restless ($restless, mainline $mainline_restless)" \
		within 0 $((mainline_restless + FEW_RUNS)) $restless
	more=$(pairs_more "$mainline_avoidable" "$avoidable")
	check "$count workers $*: no more is avoidable (more in $more of 100 pairs of runs)" \
		within 0 $CHANCE "$more"
}

if [ "$TIMES" -gt 1 ]; then
	beside_mainline 3
	check "31 %: more on idle cores ($cores, mainline $mainline_cores)" [ $cores -gt $mainline_cores ]
	# With half of the CPUs busy the workers need all cores, and the task that wakes them needs
	# a CPU of a shared core. Then prev_core passes over it. sync_core also passes over its idle
	# previous CPU, which mainline takes. So it moves, and the waker's CPU decides where to. The
	# cost differs from boot to boot (docs/reference/features/sync_core.md), so it is judged
	# without sync_core.
	beside_mainline 4 --disable sync_core
fi
under 4 $SOME --preset roy-v7
check "half: sync_core passes over idle targets" [ "$(fired sync_core_passed)" -gt 0 ]
# A task that gets its previous core seldom needs the recent one.
under 4 $SOME --preset roy-v7 --disable prev_core
check "recent_core acts (got $(fired recent_core))" [ "$(fired recent_core)" -gt 0 ]
check "prev_core does not" [ "$(fired prev_core)" = 0 ]
finish
