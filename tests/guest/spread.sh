# SPDX-License-Identifier: GPL-2.0-only
# smt_spread: a task that shares a core while another core is idle moves there, at a wakeup and
# while it runs, within some ticks. Then it stays there.
# topology: 8
# accel: icount
# timeout: 150
. /tests/lib.sh
case $(uname -r) in
6.* | 7.0*) skip "a running task is spread from Linux 7.1 on (SCX_ENQ_IMMED)" ;;
esac
# Three slices and four ticks; eight ticks.
SOON_MS=25
LATE_MS=41
LLC=$(cat /sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list)
# Few looks of a run are avoidable: with six runs their number would be chance.
RUNS=24
guest deadlines

fired() { counter "$1" /tmp/totals; }
field() { sed -n "s/.*$1=\([0-9]*\).*/\1/p" /tmp/out; }
# spinners WHERE COUNT MS: sets shared and moves
spinners() {
	taskset -c "$1" share "$2" "$3" >/tmp/out || not_ok "share: $(cat /tmp/out)"
	shared=$(field shared) moves=$(field moves)
	echo "# $2 spinners on CPUs $1, after $3 ms: $(cat /tmp/out)"
}
# spread_runs MS: sets spread, the runs of 40 in which no spinner shares its core after MS
spread_runs() {
	spread=0
	for _ in $(seq 40); do
		spinners 0-7 4 "$1"
		[ "$shared" != 0 ] || spread=$((spread + 1))
	done
}
# workers COUNT: sets avoidable, per thousand looks
workers() {
	looks=0 avoidable=0
	for seed in $(seq $RUNS); do
		guest workers "$1" 30 "$seed" >/tmp/out || not_ok "workers: $(cat /tmp/out)"
		looks=$((looks + $(field looks)))
		avoidable=$((avoidable + $(field avoidable)))
	done
	avoidable=$((avoidable * 1000 / looks))
	echo "# $1 workers: of 1000 looks $avoidable avoidable"
}

start_roost --preset mainline
guest settle 8
spinners 0-7 4 200
# A kthread may push one away.
check "off: two at least share a core (got $shared)" [ "$shared" -ge 2 ]
workers 4
off=$avoidable
totals >/tmp/totals
check "off: nothing fires" [ "$(fired spread_wakeup)$(fired spread_run)$(fired spread_none)$(fired push_lost)" = 0000 ]

check "on" scx_roost ctl set --enable smt_spread
totals >/tmp/totals
before=$(fired spread_run)
# A look is at a tick. It fails, and another tick is needed, where a kthread runs on the idle core
# or the other pair has taken it: one of six runs is late, at random (40 runs: 33; 40 of 40 in
# LATE_MS). 25 of 40 is three deviations below.
spread_runs $SOON_MS
check "four spinners have a core each in $SOON_MS ms in 25 of 40 runs (got $spread)" [ $spread -ge 25 ]
spread_runs $LATE_MS
check "and in $LATE_MS ms in 38 of 40 (got $spread)" [ $spread -ge 38 ]
totals >/tmp/totals
check "spread_run counts it (got $(($(fired spread_run) - before)))" [ $(($(fired spread_run) - before)) -ge 120 ]
spinners 0-7 4 400
check "and stay there (sharing: $shared)" [ "$shared" = 0 ]
check "for two moves, and a few where a kthread came between (got $moves)" [ "$moves" -le 8 ]
spinners 0-7 2 $SOON_MS
check "one of two leaves (sharing: $shared)" [ "$shared" = 0 ]
spinners "$LLC" 4 200
check "a task that may not use the idle cores stays (sharing: $shared)" [ "$shared" = 4 ]
spinners 0-7 8 200
check "with all cores busy no task moves (got $moves)" [ "$moves" -le 2 ]
workers 4
# Seen in nine courses: 11 to 21 with it, 67 to 258 without it, at random.
check "at wakeups: of 1000 looks at most 25 are avoidable ($avoidable)" [ "$avoidable" -le 25 ]
check "without it thrice as many are (off: $off)" [ $((3 * avoidable)) -le "$off" ]
totals >/tmp/totals
check "spread_wakeup fires (got $(fired spread_wakeup))" [ "$(fired spread_wakeup)" -gt 0 ]
echo "# spread_run $(fired spread_run), spread_none $(fired spread_none), push_lost $(fired push_lost)"
stop_roost
finish
