# SPDX-License-Identifier: GPL-2.0-only
# A new task does not wait for a SCHED_IDLE task.
# topology: 2
# accel: icount
# timeout: 90
# share: 4
. /tests/lib.sh
# prints its time in ms
took() { forks 400 1 | sed -n 's/.* \([0-9]*\) ms$/\1/p'; }
start_roost
alone=$(took)
hog -w 0 -t 30 idle=1,n=2 >/dev/null &
sleep 0.5
beside=$(took)
echo "# 400 forks: $alone ms alone, $beside ms beside SCHED_IDLE hogs"
# The two emulated CPUs share one clock. With both busy, twice the time is no delay.
check "forks beside SCHED_IDLE hogs take at most three times as long" within 1 $((alone * 3)) "$beside"
kill $!
stop_roost
finish
