# SPDX-License-Identifier: GPL-2.0-only
# Thousands of tasks on one CPU, in a group that may run 1 ms in a second, or in 100 ms. None
# waits so long that the kernel ends the scheduler, and other groups get what they are due.
# topology: 2
# accel: icount
# timeout: 400
. /tests/lib.sh
CG=/sys/fs/cgroup
grep -q cgroup_set_bandwidth /sys/kernel/btf/vmlinux || skip "this kernel does not report changes of cpu.max"
echo 65000 >/proc/sys/kernel/threads-max
echo 65000 >/proc/sys/kernel/pid_max
mkdir $CG/small $CG/beside
start_roost

# of THREADS PERIOD_US: all compute when the limit is set, and from then on none waits for 4.5 s
of() {
	echo max >$CG/small/cpu.max
	sh -c "echo \$\$ >$CG/small/cgroup.procs; exec crowd $1 20 4500 limited" &
	CROWD=$!
	wait_for 100 sh -c "[ \$(grep -c . $CG/small/cgroup.threads) -gt $1 ]"
	sleep 5
	echo "1000 $2" >$CG/small/cpu.max
	echo "20000 100000" >$CG/beside/cpu.max
	check "beside it" hog -w 4 -t 5 -p 5 cpus=0,n=2,cgroup=$CG/beside,due=20
	scx_roost ctl show --limits | sed 's/^/# /'
	# Under such a limit they would not end.
	echo max >$CG/small/cpu.max
	wait $CROWD
	check "none of $1 waits for 4.5 s, 1 ms in $2 us" [ $? = 0 ]
	check "the scheduler stays: $1" roost_enabled
	roost_enabled || start_roost
}
[ "$TIMES" = 1 ] || of 1000 100000
of 10000 1000000
stop_roost
finish
