# SPDX-License-Identifier: GPL-2.0-only
# nohz_full: a task alone on such a CPU stops the tick, and a task that joins it gets its share in
# time.
# topology: 4
# accel: icount
# timeout: 240
# append: nohz_full=2,3
. /tests/lib.sh
[ "$(cat /sys/devices/system/cpu/nohz_full)" = 2-3 ] || skip "this kernel has no nohz_full"
! grep -q PREEMPT_RT /proc/version || skip "without timers ticks go on"

# ticks CPU SECONDS: the number of interrupts of its timer
timer() { awk -v col="$(($1 + 2))" '$1 == "LOC:" { print $col }' /proc/interrupts; }
ticks() {
	before=$(timer "$1")
	sleep "$2"
	echo $(($(timer "$1") - before))
}

start_roost
hog -w 0 -t 60 cpus=2 >/dev/null &
HOG=$!
hog -w 0 -t 60 cpus=1 >/dev/null &
sleep 2
nohz=$(ticks 2 4)
plain=$(ticks 1 4)
echo "# timer interrupts in 4 s: $nohz on CPU 2 (nohz_full), $plain on CPU 1"
check "a CPU without nohz_full has its ticks ($plain)" [ "$plain" -gt 200 ]
check "the task alone on CPU 2 stops the tick ($nohz)" [ "$nohz" -lt $((plain / 5)) ]
taskset -c 2 probe sleep 2 1000 >/tmp/probe
check "a task that wakes there runs within a second each time ($(cat /tmp/probe))" [ $? = 0 ]
# Two hogs share a CPU: each is interrupted in time, though there is no tick.
hog -w 0.5 -t 3 cpus=2 >/tmp/hog.out
cpus=$(sed -n 's/^# hog total:.* \([0-9.]*\) CPUs/\1/p' /tmp/hog.out)
check "a second hog gets its half of the CPU (got $cpus)" within 0.3 0.7 "$cpus"
kill -KILL $(pidof hog)
stop_roost
finish
