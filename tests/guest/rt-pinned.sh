# SPDX-License-Identifier: GPL-2.0-only
# A task pinned behind a real-time hog makes progress if the kernel reserves time for sched_ext.
# topology: 8
# accel: icount
# timeout: 120
. /tests/lib.sh
[ -d /sys/kernel/debug/sched/ext_server ] ||
	skip "this kernel reserves no time for sched_ext beside real-time tasks (/sys/kernel/debug/sched/ext_server)"
start_roost
hog -w 0 -t 60 cpus=2,fifo=50 >/dev/null 2>&1 &
RT=$!
sleep 0.3
check "a task pinned behind the hog stays alive" hog -t 4 cpus=2
# The kernel leaves them 50 ms of each second. With slices for a whole CPU some would wait for 10 s.
check "so do 400 of them" hog -w 0 -t 9 cpus=2,n=400
check "the scheduler stays" roost_enabled
kill -KILL $RT
stop_roost
finish
