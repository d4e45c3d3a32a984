# SPDX-License-Identifier: GPL-2.0-only
# From 7.2 on the kernel reserves a part of each CPU for sched_ext at the load. Deadline tasks that
# hold it, even asleep, make the kernel refuse: the scheduler says why and what helps, and it helps.
# topology: 2
# accel: icount
# timeout: 90
. /tests/lib.sh
case $(uname -r) in
6.* | 7.[01].*) skip "this kernel reserves nothing at the load" ;;
esac
LIMIT=/proc/sys/kernel/sched_rt_runtime_us
was=$(cat $LIMIT)
for _ in 1 2; do start deadline 92000 100000 sleep 100 & done
sleep 0.2
timeout 20 scx_roost >/tmp/refused.log 2>&1
rc=$?
grep -a '^scx_roost:' /tmp/refused.log >/tmp/said
sed 's/^/# /' /tmp/said
check "exit status is 1 (got $rc)" [ $rc = 1 ]
check "it says why, in one line" [ "$(grep -c SCHED_DEADLINE /tmp/said)" = 1 ]
check "and what helps" grep -q "echo -1 >$LIMIT" /tmp/said
check "the kernel's own scheduler is back" state_is disabled
# The kernel's lines about the load that it refused.
dmesg -c >/dev/null
echo -1 >$LIMIT
start_roost
check "the limit is as it was again" sh -c "echo $was >$LIMIT"
stop_roost
finish
