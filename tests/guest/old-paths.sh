# SPDX-License-Identifier: GPL-2.0-only
# The code paths for kernels before 6.19 and 7.1, forced on this one: no peek into queues, no
# SCX_ENQ_IMMED, and ops.cpu_release instead of the tracepoint.
# topology: 8
# accel: icount
# timeout: 240
# always: yes
# needs: faults
# quick: 7.2-rt
. /tests/lib.sh
start_old() {
	scx_roost_old "$@" >$LOG 2>&1 &
	ROOST_PID=$!
	wait_for $LOAD_LIMIT_S enabled_or_gone
	check "scheduler enabled (old paths, $*)" roost_enabled
	roost_enabled || finish
}
start_old
# The kernel warns about a scheduler that has this callback.
check "ops.cpu_release is used" sh -c 'dmesg -c | grep -q cpu_acquire/release'
probe sleep 0.5 100000 >/dev/null
hog -w 0.5 -t 2.5 -p 40 n=1 n=1 n=1 n=1 n=1 n=1 n=1 n=1 >/tmp/hog.out
cpus=$(sed -n 's/^# hog total:.* \([0-9.]*\) CPUs/\1/p' /tmp/hog.out)
check "8 tasks use 8 CPUs (got $cpus)" within 6.5 8.1 "$cpus"
hog -w 0 -t 4 n=8 >/dev/null &
HOGS=$!
sleep 1
hog -w 0 -t 1 cpus=3,fifo=50 >/dev/null
hog -w 0 -t 1 cpus=4,fifo=50 >/dev/null
wait $HOGS
totals >/tmp/totals
check "none is put straight on an idle CPU (enq_idle is 0)" [ "$(counter enq_idle /tmp/totals)" = 0 ]
check "they are queued" [ "$(counter enq_queued /tmp/totals)" -gt 0 ]
stop_roost
finish
