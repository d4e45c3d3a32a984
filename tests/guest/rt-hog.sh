# SPDX-License-Identifier: GPL-2.0-only
# A real-time hog takes a CPU: ordinary tasks go on elsewhere, and what is pinned behind it is not lost.
# topology: 8
# accel: icount
# timeout: 200
# quick: yes
. /tests/lib.sh
start_roost
hog -w 0 -t 60 cpus=2,fifo=50 >/dev/null 2>&1 &
RT=$!
sleep 0.5
# Seven CPUs are left for seven tasks that may run anywhere.
check "7 free tasks share 7 CPUs" hog -t 4 -p 15 n=1 n=1 n=1 n=1 n=1 n=1 n=1 >/tmp/hog.out
cat /tmp/hog.out
total=$(sed -n 's/^# hog total: \([0-9]*\) ms/\1/p' /tmp/hog.out)
check "they use the 7 CPUs (got $total of 28000 ms)" within 26000 28200 "$total"
check "a task pinned behind the hog stays alive" hog -t 4 cpus=2
kill -KILL $RT
stop_roost
finish
