# SPDX-License-Identifier: GPL-2.0-only
# A fork that the kernel refuses leaves the state of the parent alone.
# topology: 8
# accel: icount
# timeout: 60
# quick: 6.12
. /tests/lib.sh
start_roost
refused=$(failing-fork 40)
check "40 forks are refused (got $refused)" [ "$refused" = 40 ]
sleep 1
check "no sum is off" audit
[ -z "$drift" ] || echo "# drift $drift"
stop_roost
finish
