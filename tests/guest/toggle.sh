# SPDX-License-Identifier: GPL-2.0-only
# 2,000 random changes of all features and of slices, in a full run 10,000, on four arms, under
# stress: no stall, no leak, no lost task, no drift of sums.
# topology: 8
# accel: icount
# timeout: 200
. /tests/lib.sh
start_roost
# Changes that are sent and published together. Each publication waits for all CPUs.
[ "$TIMES" -gt 1 ] && CHANGES=10000 TOGETHER=5 || CHANGES=2000 TOGETHER=20
for arm in a b c; do
	scx_roost ctl arms add $arm >/dev/null
done
# About half of the CPUs: with all busy the guest would be slow.
stress-ng -q --affinity 1 -t 200 &
scx_roost exec --arm a -- stress-ng -q --fork 1 -t 200 &
scx_roost exec --arm b -- hackbench -T -p -g 1 -f 2 -l 1000000 >/dev/null &
scx_roost exec --arm c -- probe sleep 200 1000 &
features=$(all_features)
check "features: $features" [ "$(echo "$features" | wc -w)" -gt 10 ]
check "400 changes" toggle 400 20 1 $features
kb=$(roost_kb) fds=$(roost_files)
probe sleep 10 1000 &
PROBE=$!
begin=$(up)
check "$CHANGES changes" toggle $CHANGES $TOGETHER 2 $features
echo "# they took $(awk "BEGIN { print $(up) - $begin }") s"
after=$(roost_kb)
check "the memory of the process stays (before $kb, after $after kB)" within 0 $((kb + 1024)) "$after"
check "its open files stay (before $fds, now $(roost_files))" [ "$(roost_files)" = "$fds" ]
shown=$(scx_roost ctl show | sed -n 's/^generation //p')
check "the last generation is in force (got $shown)" [ "$shown" -ge $((CHANGES / TOGETHER)) ]
check "a light task ran within a second at all times" wait $PROBE
killall stress-ng hackbench
sleep 1
audit
check "the sums have not drifted (drift ${drift:-unknown})" [ "${drift:-1}" = 0 ]
stop_roost
finish
