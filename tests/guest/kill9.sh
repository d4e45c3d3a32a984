# SPDX-License-Identifier: GPL-2.0-only
# kill -9 at any moment of the load, and when enabled under work, leaves the kernel's own scheduler.
# topology: 8
# accel: tcg
# timeout: 120
. /tests/lib.sh
stress-ng -q --cpu 2 --pipe 1 -t 100 &
for delay in 0.05 0.2 0.4 0.6 0.8 1 1.5; do
	scx_roost >$LOG 2>&1 &
	ROOST_PID=$!
	sleep $delay
	kill -KILL $ROOST_PID
	wait $ROOST_PID
	wait_for 10 state_is disabled
	check "killed after $delay s: state is disabled" state_is disabled
done
start_roost
sleep 1
end_roost KILL 137
check "the machine is alive" forks 200 2
finish
