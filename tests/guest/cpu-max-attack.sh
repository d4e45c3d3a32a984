# SPDX-License-Identifier: GPL-2.0-only
# Limited, nested groups under load for 15 s, in a full run for 30. Limits are rewritten 100 times a
# second, tasks move between groups, change affinity and policy, and are frozen. Groups are created
# and removed while their tasks are parked. No task is stranded, no count is wrong, and the
# scheduler stays until it is ended.
# topology: 8
# accel: icount
# timeout: 500
. /tests/lib.sh
CG=/sys/fs/cgroup
[ "$TIMES" -gt 1 ] && LAST_S=30 || LAST_S=15
grep -q cgroup_set_bandwidth /sys/kernel/btf/vmlinux || skip "this kernel does not report changes of cpu.max"
goes_on() { [ "$(date +%s)" -lt $END ]; }
# group NAME QUOTA_US
group() {
	mkdir -p $CG/$1
	echo "$2 100000" >$CG/$1/cpu.max
}
# inner NAME: enables groups below it
inner() { echo +cpu >$CG/$1/cgroup.subtree_control; }

stir_limits() { limits $((LAST_S - 2)) $CG/top $CG/top/x $CG/top/y/z; }
# stir_groups: moves tasks around
stir_groups() {
	while goes_on; do
		for to in top/x top/y/z free top/y/w; do
			for task in $(cat $CG/top/x/cgroup.procs $CG/top/y/z/cgroup.procs | head -n 6); do
				echo "$task" >$CG/$to/cgroup.procs 2>/dev/null
			done
			sleep 0.02
		done
		for task in $(cat $CG/free/cgroup.procs | head -n 6); do
			echo "$task" >$CG/top/x/cgroup.procs 2>/dev/null
		done
	done
	# The last task may be gone, which is no failure.
	true
}
stir_freezer() {
	while goes_on; do
		for group in top/x top/y; do
			echo 1 >$CG/$group/cgroup.freeze
			sleep 0.05
			echo 0 >$CG/$group/cgroup.freeze
			sleep 0.03
		done
	done
}
# stir_lives: a group is filled, killed while its tasks are parked, and removed
stir_lives() {
	n=0
	while goes_on; do
		group top/new$((n % 3)) 1000
		hog -w 0 -t 100 n=4,cgroup=$CG/top/new$((n % 3)) >/dev/null 2>&1 &
		sleep 0.2
		echo 1 >$CG/top/new$((n % 3))/cgroup.kill
		kill -9 $! 2>/dev/null
		wait_for 10 rmdir $CG/top/new$((n % 3)) 2>/dev/null || return 1
		n=$((n + 1))
	done
	echo "# groups: $n made and removed"
	[ $n -gt 5 ]
}
# stirs NAME FILE: runs NAME, and appends 'well' to /tmp/NAME if it succeeds
stirs() { "$1" >/tmp/$1 2>&1 && echo well >>/tmp/$1; }

group top 100000
inner top
group top/x 30000
mkdir $CG/top/y $CG/free
inner top/y
group top/y/z 1000
group top/y/w max
start_roost
END=$(($(date +%s) + LAST_S))
hog -w 0 -t 100 n=5,cgroup=$CG/top/x n=5,cgroup=$CG/top/y/z n=3,cgroup=$CG/top/y/w \
	n=3,cgroup=$CG/free,nice=5 n=1,cgroup=$CG/top/y/z,idle=1 >/dev/null &
for group in top/x top/y/w free; do
	sh -c "echo \$\$ >$CG/$group/cgroup.procs; exec naps 6 30000 700 400" &
	sh -c "echo \$\$ >$CG/$group/cgroup.procs; exec forks 3000 2 >/dev/null" &
done
probe -n 3 sleep $LAST_S 20000 >/dev/null &
sleep 0.3
for way in affinity policy stop; do
	stir $way 20 $(tail -n 1 $CG/top/x/cgroup.procs) >/dev/null &
done
for way in limits groups freezer lives; do
	stirs stir_$way &
done
while goes_on; do sleep 0.5; done
sleep 1
check "the scheduler stays" roost_enabled
for way in limits groups freezer lives; do
	check "$way: stirred to the end" wait_for 20 grep -qx well /tmp/stir_$way
	grep '^#' /tmp/stir_$way
done
scx_roost ctl show --limits | sed 's/^/# /'
totals >/tmp/t
check "tasks were parked ($(counter park /tmp/t) times)" [ "$(counter park /tmp/t)" -gt $((LAST_S * 16)) ]

# Limits still hold.
killall -9 hog naps forks stir probe
empty() { [ -z "$(cat $CG/top/x/cgroup.procs $CG/top/y/*/cgroup.procs $CG/free/cgroup.procs)" ]; }
check "all that are killed exit" wait_for 10 empty
# shellcheck disable=SC2020
parked() { scx_roost ctl show --limits --json | tr -d ' \n' | tr ',}' '\n\n' | grep '"parked":' | grep -v ':0$'; }
check "none is counted as parked $(parked)" [ -z "$(parked)" ]
group top 50000
group top/x 30000
group top/y/z 10000
check "limits hold" hog -t 3 -p 5 n=3,cgroup=$CG/top/x,due=30 n=2,cgroup=$CG/top/y/z,due=10

# A CPU goes offline and comes back while tasks are parked, and the process is killed.
hog -w 0 -t 100 n=6,cgroup=$CG/top/x >/dev/null &
sleep 1
for to in 0 1; do
	turn 7 $to
	sleep 1
	check "CPU 7 to $to: the scheduler stays" roost_enabled
done
check "limits hold: $(scx_roost ctl show --limits | grep parked)" \
	hog -t 3 -p 5 n=2,cgroup=$CG/top/y/z,due=10
no_stranger || not_ok "a task had no context"
kill -9 $ROOST_PID
check "killed: the kernel's own scheduler is back" wait_for 10 state_is disabled
killall -9 hog
wait_for 10 empty
start_roost
stop_roost
check "groups can be removed" rmdir $CG/top/y/z $CG/top/y/w $CG/top/y $CG/top/x $CG/top $CG/free
finish
