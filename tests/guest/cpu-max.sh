# SPDX-License-Identifier: GPL-2.0-only
# cpu.max is enforced within 5 % of the quota over 5 s: alone and with other groups, nested, with a
# burst, and when it is changed or removed meanwhile. Groups without a limit get what is left. Tasks
# move in and out, and the scheduler ends while tasks are parked.
# topology: 1 8
# accel: icount
# timeout: 400
# long: 1
. /tests/lib.sh
CG=/sys/fs/cgroup
# group NAME QUOTA_US
group() {
	mkdir -p "$CG/$1"
	echo "$2 100000" >"$CG/$1/cpu.max"
}
usage() { sed -n 's/^usage_usec //p' "$CG/$1/cpu.stat"; }
# used NAME SECONDS LOW HIGH: its use from now on, in percent of one CPU, is within the bounds
used() {
	before=$(usage "$1")
	began=$(up)
	sleep "$2"
	percent=$(echo "$(usage "$1") $before $(up) $began" |
		awk '{ print ($1 - $2) / 10000 / ($3 - $4) }')
	echo "# $1: $percent %"
	within "$3" "$4" "$percent"
}
# figure KEY NAME: a field of the group's limit
figure() {
	scx_roost ctl show --limits --json | tr -d ' \n' | tr '}' '\n' |
		grep "\"cgroup\":\"/$2\"" | sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p"
}
grep -q cgroup_set_bandwidth /sys/kernel/btf/vmlinux || skip "this kernel does not report changes of cpu.max"
group a 20000
group b max
group wide $((NCPU * 50000))
group top 40000
echo +cpu >$CG/top/cgroup.subtree_control
group top/x max
group top/y 10000
start_roost
check "a fifth of a CPU" hog -t 5 -p 5 n=2,cgroup=$CG/a,due=20
check "it is counted: throttled ($(figure throttled a) times)" [ "$(figure throttled a)" -gt 40 ]
check "and used ($(figure used_us a) us)" within 1000000 1500000 "$(figure used_us a)"
check "beside it another group has the rest of the CPU" \
	hog -t 5 -p 5 cpus=0,n=2,cgroup=$CG/a,due=20 cpus=0,n=2,cgroup=$CG/b,due=80
check "half of all CPUs" hog -t 5 -p 5 n=$((NCPU * 2)),cgroup=$CG/wide,due=$((NCPU * 50))
check "nested: the least of all levels" \
	hog -t 5 -p 5 n=2,cgroup=$CG/top/x,due=30 n=3,cgroup=$CG/top/y,due=10

# 30 ms in 187 ms: within a fifth on average, but more than a period's quota at once.
before=$(figure throttled a)
sh -c "echo \$\$ >$CG/a/cgroup.procs; exec naps 1 2000 157000 30000"
grown=$(($(figure throttled a) - before))
check "without a burst such a task is throttled ($grown times)" [ $grown -ge 5 ]
echo 15000 >$CG/a/cpu.max.burst
sleep 0.5
before=$(figure throttled a)
sh -c "echo \$\$ >$CG/a/cgroup.procs; exec naps 1 2000 157000 30000"
grown=$(($(figure throttled a) - before))
check "with a burst it is not ($grown times)" [ $grown -le 1 ]
echo 0 >$CG/a/cpu.max.burst

# The limit is set while a task runs that nothing interrupts.
hog -w 0 -t 300 n=1,cgroup=$CG/b >/dev/null 2>&1 &
HOG=$!
sleep 1
group b 25000
sleep 0.5
check "set while a lone task runs: 25 %" used b 3 23.75 26.25
kill -9 $HOG $(cat $CG/b/cgroup.procs)
group b max
hog -w 0 -t 300 n=3,cgroup=$CG/a >/dev/null 2>&1 &
HOG=$!
sleep 1
check "20 %" used a 3 19 21
group a 60000
sleep 0.3
check "changed to 60 %" used a 3 57 63
group a 5000
sleep 2
check "changed to 5 %" used a 3 4.75 5.25
most=$((NCPU > 3 ? 300 : NCPU * 100))
group a max
sleep 0.3
check "removed" used a 2 $((most * 94 / 100)) $most.9
group a 10000
sleep 1
# Tasks leave the group, and come back.
for task in $(cat $CG/a/cgroup.procs); do echo "$task" >$CG/b/cgroup.procs; done
sleep 0.3
check "moved out" used b 2 $((most * 94 / 100)) $most.9
for task in $(cat $CG/b/cgroup.procs); do echo "$task" >$CG/a/cgroup.procs; done
sleep 2
check "moved back" used a 3 9.5 10.5
kill -9 $HOG $(cat $CG/a/cgroup.procs)
wait_for 10 rmdir $CG/a
check "the group is removed" [ ! -d $CG/a ]
group a 30000
check "made again" hog -t 3 -p 5 n=2,cgroup=$CG/a,due=30
hog -w 0 -t 300 n=3,cgroup=$CG/a >/dev/null 2>&1 &
HOG=$!
sleep 1
stop_roost
kill -9 $HOG $(cat $CG/a/cgroup.procs)
start_roost --ignore-cpu-max
check "ignored" hog -t 2 -p 6 cpus=0,n=1,cgroup=$CG/a,due=100
check "and so shown" sh -c "scx_roost ctl show --limits | grep -q 'no CPU limit of a control group is enforced'"
stop_roost
finish
