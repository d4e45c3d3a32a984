# SPDX-License-Identifier: GPL-2.0-only
# kill -9 at any moment of loading, and when enabled under load, leaves the kernel's own scheduler.
# topology: 8
# accel: icount
# timeout: 120
# rustland: 8
. /tests/lib.sh
# Tasks that come and go all the time, but leave most of the emulated CPUs' time for loading, which
# takes about 2 s.
probe sleep 100 100000 >/dev/null &
probe sleep 100 100000 >/dev/null &
for delay in 0.3 1 1.6 1.9 2.2; do
	scx_roost >$LOG 2>&1 &
	ROOST_PID=$!
	sleep $delay
	kill -KILL $ROOST_PID
	wait $ROOST_PID
	wait_for 10 state_is disabled
	check "killed after $delay s: state is disabled" state_is disabled
done
start_roost
stress-ng -q --cpu 4 --pipe 2 -t 100 &
sleep 1
end_roost KILL 137
check "the machine is alive" forks 200 2
scx_roost status >/tmp/out
sed 's/^/# /' /tmp/out
check "status says that it was killed" grep -q '  failed    it was killed .* or it crashed' /tmp/out
check "since when it ran" sh -c "tr -s ' \n' '  ' </tmp/out | grep -q ' it was started .* UTC, .* ago '"
check "and where its log is" grep -q "  log       $LOG" /tmp/out
[ -z "$in_rust" ] || check "memory that is locked is not compacted, until somebody sets that again" \
	[ "$(cat /proc/sys/vm/compact_unevictable_allowed)" = 0 ]
# No process is left to remove the sockets. The next start does: the one above found those of the
# killed processes.
check "the sockets are left, as they must be" rm /run/scx/root/stats /run/scx/root/ctl
finish
