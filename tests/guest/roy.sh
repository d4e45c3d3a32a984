# SPDX-License-Identifier: GPL-2.0-only
# Roy's v7 beside mainline, with half of the CPUs busy and with 31 % of them: who wakes gets its previous core while that is idle, so
# fewer share a core while another core is idle. The workload is that of scripts/bench.
# topology: 8
# accel: icount
# timeout: 200
# own-boot: yes
. /tests/lib.sh
RUNS=12
CHUNKS=30
# Another course of the same boot may have a few more moves when a run starts, and a sample more that is shared.
FEW=3
guest deadlines

# run_workers COUNT: `looks` of the workers, and of these `avoidable` (it shares its core, and another has none); their `moves`
run_workers() {
	looks=0 avoidable=0 moves=0
	for seed in $(seq $RUNS); do
		scx_roost exec --arm w -- guest workers "$1" $CHUNKS "$seed" >/tmp/out || not_ok "workers: $(cat /tmp/out)"
		looks=$((looks + $(field looks)))
		avoidable=$((avoidable + $(field avoidable)))
		moves=$((moves + $(field moves)))
	done
}
field() { sed -n "s/.*$1=\([0-9]*\).*/\1/p" /tmp/out; }
# fired COUNTER: of the workers' arm
fired() { arm_counter w "$1" /tmp/totals; }

# under WORKERS ARGS...: also `shared` and `cores`, what is avoidable and the placements on idle cores, of a thousand
under() {
	count=$1
	shift
	start_roost "$@"
	scx_roost ctl arms add w >/dev/null
	guest settle 8
	run_workers "$count"
	totals >/tmp/totals
	shared=$((avoidable * 1000 / looks))
	cores=$(($(fired placed_idle_core) * 1000 / $(arm_wakeups w /tmp/totals)))
	echo "# $count workers, $*: of 1000 looks $shared avoidable, of 1000 wakeups $cores on idle cores, $moves moves;" \
		"prev_core $(fired prev_core), recent_core $(fired recent_core), sync_core passed $(fired sync_core_passed)"
	stop_roost
}
# beside_mainline WORKERS: the same under both
beside_mainline() {
	under "$1" --preset mainline
	mainline_shared=$shared mainline_cores=$cores mainline_moves=$moves
	under "$1" --preset roy-v7
	check "$1 workers: prev_core acts in most wakeups of theirs" [ "$(fired prev_core)" -ge $((RUNS * CHUNKS)) ]
	check "$1 workers: at least as many on idle cores ($cores, mainline $mainline_cores)" [ $cores -ge $mainline_cores ]
}

beside_mainline 3
check "31 %: at most a third of what is avoidable ($shared, mainline $mainline_shared)" within 0 $((mainline_shared / 3 + FEW)) $shared
check "31 %: no more moves ($moves, mainline $mainline_moves)" within 0 $((mainline_moves + FEW)) $moves

# With half of the CPUs busy a core is left for nobody but the workers, and what wakes them needs a CPU beside one of them. Then
# prev_core passes over it, and sync_core over its previous CPU, idle, which mainline takes: it moves, and where to hangs on where
# the waker is. How much of the gain that leaves differs from boot to boot (docs/performance.md); there is one.
beside_mainline 4
check "half: less is avoidable ($shared, mainline $mainline_shared)" [ $shared -lt $mainline_shared ]
check "half: sync_core passes over idle targets" [ "$(fired sync_core_passed)" -gt 0 ]
under 4 --preset roy-v7 --disable sync_core
check "half, without it: no more moves ($moves, mainline $mainline_moves)" within 0 $((mainline_moves + FEW)) $moves
check "half, without it: at most a third of what is avoidable ($shared, mainline $mainline_shared)" \
	within 0 $((mainline_shared / 3 + FEW)) $shared
# Who has its previous core seldom needs the recent one.
under 4 --preset roy-v7 --disable prev_core
check "recent_core acts (got $(fired recent_core))" [ "$(fired recent_core)" -gt 0 ]
check "prev_core does not" [ "$(fired prev_core)" = 0 ]
finish
