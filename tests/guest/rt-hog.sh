# SPDX-License-Identifier: GPL-2.0-only
# A real-time hog takes a CPU: ordinary tasks continue elsewhere.
# topology: 8
# accel: icount
# timeout: 200
. /tests/lib.sh
start_roost
# All other CPUs sleep when a real-time task takes a CPU, so one of them must be kicked.
slow=
for i in 1 2 3; do
	probe spin 1.5 20 >/tmp/probe.out &
	PROBE=$!
	sleep 0.3
	# The CPU on which it runs.
	cpu=$(awk '{ print $39 }' /proc/$PROBE/stat)
	hog -w 0 -t 0.6 cpus="$cpu",fifo=50 >/dev/null
	wait $PROBE || slow="$slow $(cat /tmp/probe.out)"
done
check "a task that loses its CPU to a real-time one goes on elsewhere within 20 ms $slow" [ -z "$slow" ]
hog -w 0 -t 60 cpus=2,fifo=50 >/dev/null 2>&1 &
RT=$!
sleep 0.3
# Seven CPUs are left for seven tasks that may run anywhere. A task stuck behind the hog would get
# next to nothing. The limits are wide because short kernel tasks cost an emulated CPU milliseconds.
hog -w 0.5 -t 2.5 -p 40 n=1 n=1 n=1 n=1 n=1 n=1 n=1 >/tmp/hog.out
check "7 free tasks share 7 CPUs" [ $? = 0 ]
cat /tmp/hog.out
cpus=$(sed -n 's/^# hog total:.* \([0-9.]*\) CPUs/\1/p' /tmp/hog.out)
check "they use 7 CPUs (got $cpus)" within 5.5 7.1 "$cpus"
kill -KILL $RT
# Real-time tasks take CPUs on which other tasks run: tasks in the local queue are given back.
hog -w 0 -t 4 n=8 >/dev/null &
HOGS=$!
scx_roost --monitor 4 --json >/tmp/monitor &
MONITOR=$!
sleep 1
hog -w 0 -t 1 cpus=3,fifo=50 >/dev/null
hog -w 0 -t 1 cpus=4,fifo=50 >/dev/null
wait $HOGS
sleep 1
kill -INT $MONITOR
given=$(counter given_back /tmp/monitor)
check "a local queue was given back (got ${given:-nothing})" [ "${given:-0}" -gt 0 ]
stop_roost
finish
