# SPDX-License-Identifier: GPL-2.0-only
# A new task waits for a SCHED_IDLE task no longer than under EEVDF.
# topology: 2
# accel: icount
# timeout: 120
. /tests/lib.sh
# prints the time of 1,200 forks in ms
took() {
	for i in 1 2 3; do forks 400 1; done | sed -n 's/.* \([0-9]*\) ms$/\1/p' | awk '{ ms += $1 } END { print ms }'
}
hog -w 0 -t 100 idle=1,n=2 >/dev/null &
sleep 0.5
eevdf=$(took)
start_roost
beside=$(took)
echo "# 1200 forks beside SCHED_IDLE hogs: $beside ms, $eevdf ms under EEVDF"
check "forks beside SCHED_IDLE hogs take at most 1.6 times as long as under EEVDF" within 1 $((eevdf * 8 / 5)) "$beside"
kill %1
stop_roost
finish
