# SPDX-License-Identifier: GPL-2.0-only
# The kernel's thread that takes a CPU offline needs more than its slice: it goes on all the same.
# (Linux 6.16 let the CPU idle beside it, until the watchdog ended the scheduler.)
# topology: 8
# accel: icount
# timeout: 100
# quick: 6.16
. /tests/lib.sh
CG=/sys/fs/cgroup

start_roost
# That thread goes through all cpusets.
echo +cpuset >$CG/cgroup.subtree_control
n=0
while [ $n -lt 400 ]; do
	mkdir -p $CG/set$n
	echo 0-7 >$CG/set$n/cpuset.cpus
	n=$((n + 1))
done
hog -t 250 n=16 n=4,cpus=4 >/dev/null &
sleep 1
loads=$(cat $SCX/enable_seq)
# ns that the thread has run
ran() { cut -d' ' -f1 "/proc/$(pidof cpuhp/4)/schedstat"; }
before=$(ran)
n=0
while [ $n -lt 6 ]; do
	turn 4 0 1
	turn 4 1 1
	n=$((n + 1))
	roost_enabled || break
done
longer() { [ "$(ran)" -gt $((before + 6 * 2800000)) ]; }
check "it ran for longer than a slice each time (ms in all: $((($(ran) - before) / 1000000)))" longer
check "it was not loaded again" [ "$(cat $SCX/enable_seq)" = "$loads" ]
stop_roost
finish
