# SPDX-License-Identifier: GPL-2.0-only
# Scheduling goes on while the scheduler's process is stopped.
# topology: 8
# accel: icount
# timeout: 120
. /tests/lib.sh
start_roost
kill -STOP $ROOST_PID
check "stress-ng ends well meanwhile" stress-ng -q --cpu 4 --pipe 2 --fork 1 -t $((2 * TIMES))
check "still enabled" state_is enabled
kill -CONT $ROOST_PID
stop_roost
finish
