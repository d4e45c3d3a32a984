# SPDX-License-Identifier: GPL-2.0-only
# Twenty tasks in a group that may run 1 ms in 100 ms: none waits so long that the kernel ends the
# scheduler, and the quota holds.
# topology: 1 8
# accel: icount
# timeout: 120
. /tests/lib.sh
CG=/sys/fs/cgroup
grep -q cgroup_set_bandwidth /sys/kernel/btf/vmlinux || skip "this kernel does not report changes of cpu.max"
mkdir $CG/small
echo "1000 100000" >$CG/small/cpu.max
start_roost
check "1 ms in 100, for 15 s" hog -w 3 -t 15 -p 5 n=20,cgroup=$CG/small,due=1
scx_roost ctl show --limits | sed 's/^/# /'
stop_roost
finish
