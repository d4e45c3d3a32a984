# SPDX-License-Identifier: GPL-2.0-only
# SysRq-S ends the scheduler: the process sees that at once, reports it and exits.
# topology: 8
# accel: icount
# timeout: 90
. /tests/lib.sh
# The kernel's event ends a nap: the process exits after 0.08 s, and after 0.36 s without events.
SEEN_LIMIT_S=0.25
start_roost
sleep 8
totals >/tmp/totals
check "its period has become a second" [ "$(counter period_ms /tmp/totals)" = 1000 ]
echo 1 >/proc/sys/kernel/sysrq
# Waits for a look, so that the next one is far away.
totals >/tmp/mark
looked() { totals >/tmp/totals && [ "$(counter periods /tmp/totals)" -gt "$(counter periods /tmp/mark)" ]; }
wait_for 5 looked
begin=$(up)
echo S >/proc/sysrq-trigger
wait $ROOST_PID
rc=$?
took=$(awk "BEGIN { print $(up) - $begin }")
check "the process ended within $SEEN_LIMIT_S s (took $took s)" within 0 $SEEN_LIMIT_S "$took"
check "the exit status tells (got $rc)" [ $rc = 70 ]
check "state is disabled" state_is disabled
check "the reason is logged" grep -qi sysrq $LOG
finish
