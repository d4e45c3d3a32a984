# SPDX-License-Identifier: GPL-2.0-only
# A task with a tiny weight, or one that yields all the time, still gets its turn, and so do other
# tasks on its CPU.
# topology: 2
# accel: icount
# timeout: 300
. /tests/lib.sh
start_roost

# stays WHAT: the watchdog ended nothing. If it did, the scheduler is started again for the next
# checks.
stays() {
	check "the scheduler stays: $1" roost_enabled
	roost_enabled || start_roost
}

# beside_hogs WHAT PROBE...: the probe gets its turn on CPU 1 among 10 hogs
beside_hogs() {
	what=$1
	shift
	hog -w 0 -t 60 cpus=1,n=10 >/dev/null &
	hogs=$!
	sleep 0.5
	check "$what runs every 2.5 s" "$@"
	kill -KILL $hogs
	stays "$what"
}

# A quarter of the watchdog's 10 s.
beside_hogs "a SCHED_IDLE task" probe -i spin 8 2500 1
beside_hogs "a task of nice 19 that asks for 100 ms" probe -n 19 -s 100000 spin 8 2500 1

# Each of a crowd must have its turn within the limit, however little CPU time they are due.
check "25 SCHED_IDLE hogs leave one of nice -20 its share" sh -c 'hog -w 1 -t 8 cpus=1,n=25,idle=1 cpus=1,nice=-20 |
	tee /tmp/crowd && grep -q "nice=-20: .*share 9[5-9]" /tmp/crowd'
stays "a crowd of SCHED_IDLE tasks beside nice -20"

# A task that was alone on its CPU yielded all the time. A hog that comes must not pay for that, nor
# must the task itself.
probe -y 7 spin 7 100 1 >/tmp/yielder &
yielder=$!
sleep 1
hog -w 0 -t 60 cpus=1 >/dev/null &
hogs=$!
wait $yielder
rc=$?
cat /tmp/yielder
check "a task that always yields waits at most 100 ms for a hog" [ $rc = 0 ]
kill -KILL $hogs
stays "it yielded beside a hog"

# Each task comes while the other runs, and must not wait for the end of a slice that yielding has
# extended.
come() {
	late=0
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		probe spin 0.12 100 1 || late=1
	done
	probe spin 5 100 1 && [ $late = 0 ]
}

probe -y 1 spin 8 100 1 >/tmp/yielder &
yielder=$!
sleep 1.05
check "a task that joins one that yielded and now computes waits at most 100 ms" come
wait $yielder
rc=$?
cat /tmp/yielder
check "a task that yielded and now computes waits at most 100 ms" [ $rc = 0 ]
stays "it computes after it yielded"
stop_roost
finish
