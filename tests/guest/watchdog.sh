# SPDX-License-Identifier: GPL-2.0-only
# A task starves past the watchdog's limit: the kernel ends the scheduler, which reports it and
# fails.
# topology: 2
# accel: icount
# timeout: 200
. /tests/lib.sh
# A limit other than the scheduler's own 10 s.
export SCX_TIMEOUT_MS=2000
start_roost
# Real-time tasks without throttling starve it, so no scheduler of the ordinary class could help.
echo -1 >/proc/sys/kernel/sched_rt_runtime_us
for f in /sys/kernel/debug/sched/*_server/cpu1/runtime; do
	[ -f "$f" ] && echo 0 >"$f"
done
# Once the kernel has begun to end the scheduler, it queues a waking task on its previous CPU, also
# behind the hog. RCU's thread must not be there, because the unload waits for it.
taskset -p 1 "$(grep -lx rcu_preempt /proc/[0-9]*/comm | cut -d/ -f3)" >/dev/null
hog -w 0 -t 60 cpus=1,fifo=50 >/dev/null &
sleep 1
hog -w 0 -t 60 cpus=1 >/dev/null &
wait_for 40 state_is disabled
check "state is disabled" state_is disabled
gone() { ! roost_alive; }
wait_for 10 gone
check "the process ended" gone
wait $ROOST_PID
rc=$?
check "exit status is 1 (got $rc)" [ $rc = 1 ]
check "the reason is logged" grep -qi 'stall' $LOG
check "status has it too" sh -c "scx_roost status | grep -q '  failed    .* ago: a task waited too long'"
# The kernel's own report of the stall is expected here.
dmesg -c >/dev/null
finish
