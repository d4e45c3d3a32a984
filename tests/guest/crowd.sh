# SPDX-License-Identifier: GPL-2.0-only
# Of thousands of tasks that wait for one CPU, each gets its turn within a quarter of the watchdog's
# 10 s.
# topology: 2
# accel: icount
# timeout: 200
. /tests/lib.sh
echo 65000 >/proc/sys/kernel/threads-max
echo 65000 >/proc/sys/kernel/pid_max
start_roost

# of THREADS SECONDS [idle]
of() {
	check "none of $1 waits 2.5 s${3:+, SCHED_IDLE beside a hog}" crowd $1 $2 2500 $3
	check "the scheduler stays: $1" roost_enabled
	roost_enabled || start_roost
}
of 1000 5
of 10000 6
hog -w 0 -t 60 cpus=1 >/dev/null &
of 1500 6 idle
killall hog
stop_roost
finish
