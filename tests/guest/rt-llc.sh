# SPDX-License-Identifier: GPL-2.0-only
# Real-time hogs take all CPUs of an LLC, and no CPU is idle: a task that waits there is fetched by
# a busy CPU of the other LLC.
# topology: 8
# accel: icount
# timeout: 120
. /tests/lib.sh
start_roost
hog -w 0 -t 5 cpus=4,n=1 cpus=5,n=1 cpus=6,n=1 cpus=7,n=1 >/dev/null &
HOGS=$!
sleep 0.2
probe spin 3 200 >/tmp/probe.out &
PROBE=$!
sleep 0.3
cpu=$(awk '{ print $39 }' /proc/$PROBE/stat)
check "it runs on a CPU of its own (CPU $cpu)" within 0 3 "$cpu"
hog -w 0 -t 1 cpus=0,fifo=50 cpus=1,fifo=50 cpus=2,fifo=50 cpus=3,fifo=50 >/dev/null
wait $PROBE
rc=$?
check "it waits less than 200 ms ($(cat /tmp/probe.out))" [ $rc = 0 ]
wait $HOGS
stop_roost
finish
