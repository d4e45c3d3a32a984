# SPDX-License-Identifier: GPL-2.0-only
# The kernel's thread that takes a CPU offline needs more than its slice: it goes on all the same.
# (Linux 6.16 let the CPU idle beside it, until the watchdog ended the scheduler.)
# topology: 8
# accel: icount
# timeout: 100
# quick: 6.16
. /tests/lib.sh
CPUS=/sys/devices/system/cpu
CG=/sys/fs/cgroup
# As in hotplug.sh.
BAD_EVENTS='DISPATCH_LOCAL_DSQ_OFFLINE|INSERT_NOT_OWNED'

start_roost
# That thread goes through all cpusets.
echo +cpuset >$CG/cgroup.subtree_control
n=0
while [ $n -lt 400 ]; do
	mkdir -p $CG/set$n
	echo 0-7 >$CG/set$n/cpuset.cpus
	n=$((n + 1))
done
hog -t 250 n=16 >/dev/null &
sleep 1
n=0
while [ $n -lt 6 ]; do
	for on in 0 1; do
		begin=$(up)
		echo $on >$CPUS/cpu4/online
		took=$(awk "BEGIN { print $(up) - $begin }")
		check "CPU 4 to $on within 1 s (got $took)" within 0 1 "$took"
	done
	n=$((n + 1))
	roost_enabled || break
done
stop_roost
finish
