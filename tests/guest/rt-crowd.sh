# SPDX-License-Identifier: GPL-2.0-only
# Thousands of tasks wait for a CPU that a real-time task has taken, and may run on others, which are
# busy. Each gets its turn there within half of the watchdog's 5 s.
# topology: 8
# accel: icount
# timeout: 200
. /tests/lib.sh
echo 65000 >/proc/sys/kernel/threads-max
echo 65000 >/proc/sys/kernel/pid_max
start_roost
hog -w 0 -t 60 cpus=0,n=2 cpus=2,n=2 cpus=3,n=2 cpus=4,n=2 cpus=5,n=2 cpus=6,n=2 cpus=7,n=2 >/dev/null &
sleep 0.5
for threads in 400 4000; do
	check "none of $threads waits 2.5 s" crowd $threads 4 2500 taken
	check "the scheduler stays: $threads" roost_enabled
	roost_enabled || start_roost
done
killall hog
stop_roost
finish
