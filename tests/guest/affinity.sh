# SPDX-License-Identifier: GPL-2.0-only
# A task never runs on a CPU outside its mask.
# topology: 8
# accel: tcg
# timeout: 120
. /tests/lib.sh
start_roost
stress-ng -q --cpu 8 -t 10 &
check "masks are honoured" affine 24 6
stop_roost
finish
