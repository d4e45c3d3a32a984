# SPDX-License-Identifier: GPL-2.0-only
# From 7.2 on the kernel reserves a part of each CPU for sched_ext at the load. Deadline tasks that
# hold it, even asleep, make the kernel refuse: the scheduler says why. Without them it loads.
# topology: 2
# accel: icount
# timeout: 90
. /tests/lib.sh
grep -q ' dl_server_attach_bw$' /proc/kallsyms || skip "this kernel reserves nothing at the load"
# 92 % of each of two CPUs; with the 5 % of the kernel's own scheduler, 97 %.
echo 1000000 >/proc/sys/kernel/sched_rt_runtime_us
for _ in 1 2; do start deadline 92000 100000 sleep 100 & done
sleep 0.2
holders() { for task in $(pidof sleep); do awk '$41 == 6' /proc/$task/stat; done | wc -l; }
check "two tasks of SCHED_DEADLINE sleep" [ "$(holders)" = 2 ]
timeout 20 scx_roost >/tmp/refused.log 2>&1
rc=$?
grep -a '^scx_roost:' /tmp/refused.log >/tmp/said
sed 's/^/# /' /tmp/said
check "exit status is 1 (got $rc)" [ $rc = 1 ]
check "it says why, in one line" [ "$(grep -c SCHED_DEADLINE /tmp/said)" = 1 ]
check "the kernel's own scheduler is back" state_is disabled
check "the kernel's log has no other fault" sh -c "! dmesg | grep -E 'BUG:|WARNING:|Oops'"
dmesg -c >/dev/null
kill $(pidof sleep)
start_roost
stop_roost
finish
