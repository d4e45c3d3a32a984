# SPDX-License-Identifier: GPL-2.0-only
# The counters use memory for the CPUs that exist, and count on each of them.
# topology: 4 64
# accel: tcg
# timeout: 120
# long: 4
. /tests/lib.sh
# The most that one CPU's counters may use, and all other maps together.
CPU_KB=64
REST_KB=4096

# The memory of the maps that the process holds, kB. A map with several file descriptors counts
# once.
maps_kb() {
	for info in /proc/$ROOST_PID/fdinfo/*; do
		awk '/^memlock:/ { kb = $2 / 1024 } /^map_id:/ { id = $2 } END { if (id) print id, kb }' "$info"
	done | sort -u | awk '{ sum += $2 } END { print int(sum) }'
}

start_roost
kb=$(maps_kb)
limit=$((REST_KB + CPU_KB * NCPU))
check "all maps take $kb kB, at most $limit kB with $NCPU CPUs" within 100 $limit "$kb"
for cpu in 0 $((NCPU - 1)); do
	taskset -c "$cpu" probe sleep 0.2 100000 >/dev/null
done
scx_roost --monitor 1 --json >/tmp/monitor &
MONITOR=$!
sleep 2
kill -INT $MONITOR
totals >/tmp/totals
check "wakeups were counted" [ "$(arm_wakeups default /tmp/totals)" -gt 0 ]
stop_roost
finish
