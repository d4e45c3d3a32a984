# SPDX-License-Identifier: GPL-2.0-only
# Thousands of tasks wait for a CPU that a real-time task has taken, and may run on others, which
# are busy. Each gets its turn there within a quarter of the watchdog's 10 s.
# topology: 2 8
# accel: icount
# timeout: 200
# long: 8
. /tests/lib.sh
echo 65000 >/proc/sys/kernel/threads-max
echo 65000 >/proc/sys/kernel/pid_max
start_roost
hogs=
for cpu in $(seq 0 $((NCPU - 1))); do
	[ "$cpu" = 1 ] || hogs="$hogs cpus=$cpu,n=2"
done
# shellcheck disable=SC2086 # one word for each CPU
hog -w 0 -t 60 $hogs >/dev/null &
sleep 0.5
for threads in 400 4000; do
	check "none of $threads waits 2.5 s" crowd $threads 4 2500 taken
	check "the scheduler stays: $threads" roost_enabled
	roost_enabled || start_roost
done
killall hog
stop_roost
finish
