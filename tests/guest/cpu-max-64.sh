# SPDX-License-Identifier: GPL-2.0-only
# cpu.max on 64 CPUs: a group that wants all of them gets its quota, and another group is not
# harmed.
# topology: 64
# accel: icount
# timeout: 400
# long: yes
. /tests/lib.sh
CG=/sys/fs/cgroup
grep -q cgroup_set_bandwidth /sys/kernel/btf/vmlinux || skip "this kernel does not report changes of cpu.max"
mkdir $CG/a $CG/b
echo "400000 100000" >$CG/a/cpu.max
start_roost
check "four CPUs of 64" hog -t 5 -p 5 n=64,cgroup=$CG/a,due=400
check "beside it the other has all that it wants" \
	hog -t 5 -p 5 n=64,cgroup=$CG/a,due=400 n=8,cgroup=$CG/b,due=800
scx_roost ctl show --limits | sed 's/^/# /'
stop_roost
finish
