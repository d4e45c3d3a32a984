# SPDX-License-Identifier: GPL-2.0-only
# Daemon, exporter, a scraper, and changes of all features, slices and arms under stress, with
# --full for minutes: no counter ever goes back, and the numbers add up.
# topology: 8 64
# accel: tcg
# timeout: 400
# long: 64
. /tests/lib.sh
PORT=10849
FREQS=/tmp/freqs
# The guest's time is the host's. With 64 CPUs each of them does less in it.
[ "$NCPU" -gt 8 ] && LAST_S=30 || LAST_S=45
# More would exceed the timeout.
[ "$TIMES" -gt 1 ] && LAST_S=$((LAST_S * 5))
# Changes that are published together; each publication waits for all CPUs.
TOGETHER=20
since() { awk "BEGIN { printf \"%d\", $(up) - $1 }"; }

# Low frequencies, so that moves are delayed if the feature is on.
mkdir -p $FREQS
for cpu in $(seq 0 $((NCPU - 1))); do echo 1000000 >$FREQS/cpu"$cpu"; done
start_roost --stats-group 4242 --freq-source $FREQS --freq-threshold 1200000 --delay-us 400
# As a user who has only this group. -n: otherwise start-stop-daemon takes another process for the
# one to start.
start-stop-daemon -S -q -c 65534:4242 -n reader -a "$(command -v scx_roost)" -- export --listen 127.0.0.1:$PORT >/tmp/export.log 2>&1 &
EXPORTER=$!
for arm in a b c; do
	scx_roost ctl arms add $arm >/dev/null
done
metrics_there() { wget -q -O /tmp/page http://127.0.0.1:$PORT/metrics && grep -q '^roost_up 1' /tmp/page; }
check "the exporter tells of the scheduler" wait_for 20 metrics_there
check "it runs as the user nobody" grep -q '^Uid:.65534.65534' /proc/$EXPORTER/status
# The files of frequencies and idle periods are opened when an arm first needs them, and stay open.
scx_roost ctl set --arm a --enable delay_migration --enable avg_idle_scan >/dev/null
sleep 2
scx_roost ctl reset --arm a >/dev/null
fds=$(roost_files)

# About half of 8 CPUs: with all busy the guest would be slow.
stress-ng -q --affinity 1 -t $LAST_S &
scx_roost exec --arm a -- stress-ng -q --fork 1 -t $LAST_S &
scx_roost exec --arm b -- hackbench -T -p -g 1 -f 2 -l 1000000 >/dev/null &
HACKBENCH=$!
scx_roost exec --arm c -- probe sleep $LAST_S 100000 &
PROBE=$!
features=$(all_features)
check "features: $features" [ "$(echo "$features" | wc -w)" -gt 10 ]
begin=$(up)
observe watch $PORT $LAST_S &
WATCH=$!
# Arms that come and go, each under its own name. A task on an arm that is deleted is then on
# default.
come_and_go() {
	n=0
	while [ "$(since "$begin")" -lt $((LAST_S - 5)) ]; do
		n=$((n + 1))
		scx_roost ctl arms add short$n >/dev/null
		scx_roost exec --arm short$n -- probe sleep 3 100000 >/dev/null &
		sleep 1.5
		scx_roost ctl arms del short$n >/dev/null
		wait $!
	done
	echo $n >/tmp/short
}
come_and_go &
ARMS=$!
check "400 changes" toggle 400 $TOGETHER 1 $features
kb=$(roost_kb)
changes=400 failed=0
while [ "$(since "$begin")" -lt $((LAST_S - 2)) ]; do
	toggle 200 $TOGETHER $changes $features >/tmp/toggle || { cat /tmp/toggle && failed=1; }
	changes=$((changes + 200))
done
check "all of $changes changes succeed" [ $failed = 0 ]
check "they went on for $LAST_S s" [ $changes -gt 400 ]
wait $PROBE
check "no number went back, in $LAST_S s" wait $WATCH
wait $ARMS
check "arms came and went ($(cat /tmp/short))" [ "$(cat /tmp/short)" -ge 3 ]
after=$(roost_kb)
check "the memory of the process stays (before $kb, after $after kB)" within 0 $((kb + 512)) "$after"
kill $HACKBENCH
killall stress-ng hackbench 2>/dev/null
for arm in default a b c; do
	scx_roost ctl reset --arm $arm >/dev/null
done
sleep 2
check "its open files stay (before $fds, now $(roost_files))" [ "$(roost_files)" = "$fds" ]
audit
check "the sums have not drifted (drift ${drift:-unknown})" [ "${drift:-1}" = 0 ]
check "all numbers add up" observe settled $PORT $NCPU a b c
kill $EXPORTER
wait $EXPORTER
stop_roost
finish
