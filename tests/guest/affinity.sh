# SPDX-License-Identifier: GPL-2.0-only
# A task never runs on a CPU outside of its mask.
# topology: 8
# accel: icount
# timeout: 120
# rustland: 8
. /tests/lib.sh
start_roost
stress-ng -q --cpu 4 -t 100 &
check "masks are honoured" affine 24 $TIMES
stop_roost
finish
