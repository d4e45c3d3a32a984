# SPDX-License-Identifier: GPL-2.0-only
# 10 000 forks.
# topology: 8
# accel: icount
# timeout: 180
# rustland: 8
. /tests/lib.sh
start_roost
check "every child is born, runs and is reaped" forks 10000 4
stop_roost
finish
