# SPDX-License-Identifier: GPL-2.0-only
# Loads, is enabled, leaves on SIGINT and on SIGTERM.
# topology: 8
# accel: icount
# timeout: 120
# quick: yes
. /tests/lib.sh
start_roost
check "the kernel names it" grep -q '^roost' $SCX/root/ops
stop_roost
start_roost
end_roost TERM 0
finish
