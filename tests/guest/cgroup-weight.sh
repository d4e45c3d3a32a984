# SPDX-License-Identifier: GPL-2.0-only
# cpu.weight is honoured, also in a hierarchy, within 10 % on saturated CPUs.
# topology: 4
# accel: icount
# timeout: 200
. /tests/lib.sh
CG=/sys/fs/cgroup
# group NAME WEIGHT
group() {
	mkdir -p "$CG/$1"
	echo "$2" >"$CG/$1/cpu.weight"
}
group a 100
group b 300
echo +cpu >$CG/b/cgroup.subtree_control
group b/x 100
group b/y 200
start_roost
check "one CPU: 100 against 300" hog -t 4 -p 10 cpus=1,n=2,cgroup=$CG/a,weight=50 cpus=1,n=2,cgroup=$CG/b/x,weight=150
check "one CPU: 100 against 300, split 100 to 200" hog -t 4 -p 10 cpus=1,n=2,cgroup=$CG/a,weight=50 \
	cpus=1,n=2,cgroup=$CG/b/x,weight=50 cpus=1,n=2,cgroup=$CG/b/y,weight=100
check "all CPUs: 100 against 300" hog -t 4 -p 10 n=8,cgroup=$CG/a,weight=100 n=8,cgroup=$CG/b/y,weight=300
stop_roost
finish
