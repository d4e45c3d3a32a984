# SPDX-License-Identifier: GPL-2.0-only
# Every topology: the scheduler stays enabled under a mixed load whose tasks keep changing their
# affinity.
# topology: 1 4 8 2node 64
# accel: icount
# timeout: 180
# rustland: 1 4 8 2node
# quick: yes
. /tests/lib.sh
start_roost
# The affinity stressor ends its children by SIGKILL, also in the middle of a count
# (stress_affinity_reap). Its count is then "untrustworthy", exit status 7. Nothing here reads the
# count. A worker that fails has status 2, which stays a failure.
stress-ng -q --cpu 2 --fork 2 --pipe 2 --affinity 4 --yield 2 --timer 1 -t $TIMES 2>/tmp/stress
status=$?
cat /tmp/stress
[ $status = 7 ] && ! grep -v 'affinity: WARNING: bogo-ops counter in non-ready state' /tmp/stress && status=0
check "stress-ng ends well (status $status)" [ $status = 0 ]
stop_roost
finish
