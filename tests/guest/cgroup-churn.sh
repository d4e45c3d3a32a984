# SPDX-License-Identifier: GPL-2.0-only
# Groups are created, filled, moved between, re-weighted and removed under load, and while the
# scheduler loads: for a moment the kernel still presents groups that are being removed.
# topology: 8
# accel: icount
# timeout: 200
. /tests/lib.sh
start_roost
CG=/sys/fs/cgroup
hog -w 0 -t 100 n=2 >/dev/null &
HOGS=$!
n=0
while [ $n -lt 6 ]; do
	mkdir -p $CG/a$n/b
	echo +cpu >$CG/a$n/cgroup.subtree_control
	echo $((1 + n * 1900)) >$CG/a$n/cpu.weight
	sh -c "echo \$\$ >$CG/a$n/b/cgroup.procs; forks 20 2 >/dev/null; echo \$\$ >$CG/cgroup.procs" || break
	rmdir $CG/a$n/b $CG/a$n || break
	n=$((n + 1))
done
check "6 groups (got $n)" [ $n = 6 ]
stop_roost
kill $HOGS
while :; do
	mkdir $CG/storm
	rmdir $CG/storm
done &
start_roost
stop_roost
finish
