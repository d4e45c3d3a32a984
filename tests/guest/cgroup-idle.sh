# SPDX-License-Identifier: GPL-2.0-only
# cpu.idle: the group weighs as much as one SCHED_IDLE task and gives way at once. It is read at the
# start, and changes are followed.
# topology: 2
# accel: icount
# timeout: 200
. /tests/lib.sh
CG=/sys/fs/cgroup
mkdir $CG/idle $CG/idle/below $CG/other
echo +cpu >$CG/idle/cgroup.subtree_control
echo 400 >$CG/idle/cpu.weight
echo 1 >$CG/idle/cpu.idle
# shares WEIGHT [GROUP]: two hogs of the idle group, which should weigh WEIGHT, against one of
# weight 1024 in another group
shares() { hog -t 5 cpus=1,n=2,cgroup=$CG/${2:-idle},weight="$1" cpus=1,n=1,cgroup=$CG/other,weight=1024; }
# idle_had_at_most PERCENT GROUP: the share of the idle group
idle_had_at_most() {
	got=$(shares 3 "$2" | sed -n 's/.*hog .*weight=3: .*share \([0-9.]*\) %.*/\1/p')
	echo "# the idle group had $got %"
	[ -n "$got" ] && within 0 "$1" "$got"
}
# at_once: a probe never waits for a hog of the idle group on its CPU. Its policy is SCHED_BATCH, so
# it preempts no other task: behind another hog it waits for the end of the slice, here 20 ms. The
# mean counts, because the emulator sometimes stops one CPU for about a millisecond while it runs
# the other.
at_once() {
	probe -b sleep 3 5 1 >/tmp/probe || return 1
	cat /tmp/probe
	mean=$(sed -n 's/.* mean \([0-9.]*\) ms.*/\1/p' /tmp/probe)
	[ -n "$mean" ] && within 0 0.2 "$mean"
}
start_roost
check "a group that was idle at the start gets next to nothing" idle_had_at_most 1.5 idle
check "one below it too" idle_had_at_most 1.5 idle/below
hog -t 4 cpus=1,n=1,slice_us=20000,cgroup=$CG/idle >/dev/null &
sleep 1
check "a task beside it does not wait for it" at_once
wait $!
case $(uname -r) in
6.1[0-8].*)
	stop_roost
	check "kernel log is clean" dmesg_clean
	skip "a change of cpu.idle: its callback came with Linux 6.19"
	;;
esac
echo 0 >$CG/idle/cpu.idle
echo 400 >$CG/idle/cpu.weight
check "no longer idle: its weight counts" hog -t 5 -p 10 cpus=1,n=2,cgroup=$CG/idle,weight=200 \
	cpus=1,n=1,cgroup=$CG/other,weight=100
echo 1 >$CG/idle/cpu.idle
check "idle again" idle_had_at_most 1.5 idle
stop_roost
finish
