# SPDX-License-Identifier: GPL-2.0-only
# sysrq S takes the scheduler off: it says so and ends.
# topology: 8
# accel: icount
# timeout: 90
. /tests/lib.sh
start_roost
echo 1 >/proc/sys/kernel/sysrq
echo S >/proc/sysrq-trigger
wait_for 10 state_is disabled
check "state is disabled" state_is disabled
gone() { ! roost_alive; }
wait_for 10 gone
check "the process ended" gone
wait $ROOST_PID
rc=$?
check "the exit status tells (got $rc)" [ $rc = 1 ]
check "the reason is told" grep -qi sysrq $LOG
finish
