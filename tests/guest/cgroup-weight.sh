# SPDX-License-Identifier: GPL-2.0-only
# cpu.weight holds within 10 % on saturated CPUs, also in a hierarchy and between groups with
# different numbers of tasks.
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
group c 1000
start_roost
check "one CPU: 100 against 300" hog -t 4 -p 10 cpus=1,n=2,cgroup=$CG/a,weight=50 cpus=1,n=2,cgroup=$CG/b/x,weight=150
check "one CPU: 100 against 300, split 100 to 200" hog -t 4 -p 10 cpus=1,n=2,cgroup=$CG/a,weight=50 \
	cpus=1,n=2,cgroup=$CG/b/x,weight=50 cpus=1,n=2,cgroup=$CG/b/y,weight=100
check "all CPUs: 100 against 300" hog -t 4 -p 10 n=8,cgroup=$CG/a,weight=100 n=8,cgroup=$CG/b/y,weight=300
check "one CPU: 100 against 1000" hog -t 6 -p 10 cpus=1,n=4,cgroup=$CG/a,weight=25 cpus=1,n=4,cgroup=$CG/c,weight=250
group c 100
check "one CPU: one task against twenty, equal weights" hog -t 6 -p 10 cpus=1,n=1,cgroup=$CG/a,weight=2000 \
	cpus=1,n=20,cgroup=$CG/c,weight=100
stop_roost
finish
