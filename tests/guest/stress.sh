# SPDX-License-Identifier: GPL-2.0-only
# Every topology: stays enabled under a mixed load whose tasks keep changing their affinity.
# topology: 1 4 8 2node 64
# accel: icount
# timeout: 180
# quick: yes
. /tests/lib.sh
start_roost
check "stress-ng ends well" stress-ng -q --cpu 2 --fork 2 --pipe 2 --affinity 4 --yield 2 --timer 1 -t $TIMES
stop_roost
finish
