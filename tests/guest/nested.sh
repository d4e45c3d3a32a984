# SPDX-License-Identifier: GPL-2.0-only
# Groups of the largest weight, nested in one of the smallest, starve nobody on their CPU: no task,
# and neither the kernel's threads nor the watchdog, whose own work waits among them. Nor does a
# loop that makes thousands of groups.
# topology: 1
# topology: 2
# topology: 8
# accel: icount
# timeout: 400
. /tests/lib.sh
CG=/sys/fs/cgroup
LAST=$((NCPU - 1))
deep=$CG/least
mkdir $deep $CG/beside
echo +cpu >$CG/cgroup.subtree_control
echo 1 >$deep/cpu.weight
for _ in $(seq 20); do
	echo +cpu >$deep/cgroup.subtree_control
	deep=$deep/d
	mkdir $deep
	echo 10000 >$deep/cpu.weight
done
start_roost
hog -w 0 -t 90 cpus=$LAST,cgroup=$deep cpus=$LAST,cgroup=$CG/beside,n=3 >/dev/null &
hogs=$!
sleep 1
check "a task of nice 0 beside them runs every 2.5 s" probe spin 60 2500 "$LAST"
check "the scheduler stays beside them for a minute" roost_enabled
kill -KILL $hogs
mkdir $CG/many
echo +cpu >$CG/many/cgroup.subtree_control
for i in $(seq 4200); do mkdir $CG/many/"$i"; done
sleep 3
check "and beside a loop that makes 4200 groups" roost_enabled
stop_roost
finish
