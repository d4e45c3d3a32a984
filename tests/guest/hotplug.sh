# SPDX-License-Identifier: GPL-2.0-only
# A CPU goes and comes: the scheduler restarts in the same process, within the time that is 2 s on a real machine.
# topology: 8
# accel: icount
# timeout: 300
. /tests/lib.sh
# Light work: all emulated CPUs share one clock, so full ones would make the loading slow.
probe sleep 200 100000 >/dev/null &
probe sleep 200 100000 >/dev/null &
start_roost

restarted() { [ "$(cat $SCX/enable_seq)" -gt "$before" ] && roost_enabled; }

# turn CPU 0|1
turn() {
	before=$(cat $SCX/enable_seq)
	echo "$2" >"/sys/devices/system/cpu/cpu$1/online"
	begin=$(cut -d' ' -f1 /proc/uptime)
	wait_for 20 restarted
	took=$(awk "BEGIN { print $(cut -d' ' -f1 /proc/uptime) - $begin }")
	check "CPU $1 to $2: same process, enabled again after $took s (limit $RESTART_LIMIT_S)" restarted
	check "CPU $1 to $2: in time" within 0 $RESTART_LIMIT_S "$took"
}
for cpu in 7 1; do
	turn $cpu 0
	turn $cpu 1
done
check "scheduler still enabled" roost_enabled
end_roost INT 0
finish
