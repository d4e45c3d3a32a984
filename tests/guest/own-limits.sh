# SPDX-License-Identifier: GPL-2.0-only
# Limits of the daemon's own group and process do not harm the machine, or a start is refused in one
# sentence that names the limit.
# topology: 2
# accel: icount
# timeout: 300
. /tests/lib.sh
CG=/sys/fs/cgroup
BOX=$CG/box
echo "+memory +pids +cpu +cpuset" >$CG/cgroup.subtree_control
mkdir $BOX
in_box() {
	echo 0 >$BOX/cgroup.procs
	exec scx_roost
}
# It may not leave its group, as in the sandbox of the unit.
in_closed_box() {
	echo 0 >$BOX/cgroup.procs
	exec unshare -m sh -c "mount -o bind $CG $CG && mount -o remount,bind,ro $CG && exec scx_roost"
}
# refused LIMIT WORDS: the start fails in one line that has the words
refused() {
	(in_closed_box) >/tmp/refused 2>&1
	rc=$?
	sed 's/^/# /' /tmp/refused
	check "$1: refused with status 1 (got $rc)" [ $rc = 1 ]
	check "$1: in one line" [ "$(grep -c '^scx_roost: ' /tmp/refused)" = 1 ]
	check "$1: which names it" grep -q "^scx_roost: .*$2" /tmp/refused
}
start_in_box() {
	("${1:-in_box}") >$LOG 2>&1 &
	ROOST_PID=$!
	wait_for $LOAD_LIMIT_S enabled_or_gone
	check "enabled" roost_enabled
	roost_enabled || finish
	# It goes back a moment after the kernel has enabled it.
	check "it is in its group" wait_for 5 grep -qx 0::/box /proc/$ROOST_PID/cgroup
}
current() { cat $BOX/memory.current; }

# The state of each task is memory of the kernel.
echo 64M >$BOX/memory.max
refused "a memory limit, in a group that it may not leave" "box/memory.max is 67108864"
start_in_box
before=$(current)
probe -n 3000 sleep 20 1000000 >/dev/null &
sleep 2
check "3,000 tasks: its group has no more memory (before $before, now $(current))" within 0 $((before + 400000)) "$(current)"
killall probe
echo $(($(current) + 500000)) >$BOX/memory.max
check "its group is at its memory limit: forks succeed" forks 400 4
echo max >$BOX/memory.max
# No limit of another kind ends it.
echo "20000 100000" >$BOX/cpu.max
echo 1 >$BOX/cpuset.cpus
echo 1000 >/proc/$ROOST_PID/oom_score_adj
renice -n 19 -p $ROOST_PID >/dev/null
hog -w 0 -t 20 n=6 >/dev/null &
sleep 3
begin=$(up)
check "a fifth of a CPU, nice 19, beside hogs: it answers" scx_roost ctl set --set slice-us=2000
took=$(awk "BEGIN { print $(up) - $begin }")
check "within 5 s (took $took)" within 0 5 "$took"
killall hog
echo max >$BOX/cpu.max
echo 0-1 >$BOX/cpuset.cpus
stop_roost

# A limit that comes after the load: forks of the whole machine succeed, beside a task of the group
# that is at the limit.
start_in_box
echo $(($(current) + 500000)) >$BOX/memory.max
check "at a limit that came later: forks succeed" forks 400 4
echo max >$BOX/memory.max
stop_roost
start_in_box in_closed_box
echo 64M >$BOX/memory.max
limited() { totals >/tmp/totals && [ "$(condition memory_limited /tmp/totals)" = 1 ]; }
check "where it may not leave, that is a condition" wait_for 15 limited
echo max >$BOX/memory.max
stop_roost

echo 2 >$BOX/pids.max
refused pids.max pids.max
echo max >$BOX/pids.max
(ulimit -n 24 && exec scx_roost) >/tmp/refused 2>&1
rc=$?
check "24 open files: refused (got $rc)" [ $rc = 1 ]
check "24 open files: named" grep -q 'limit of open files is 24' /tmp/refused
(ulimit -n 24 && exec scx_roost doctor) >/tmp/refused 2>&1
check "24 open files: doctor fails" [ $? = 1 ]
check "24 open files: doctor names the limit" grep -q '^FAIL  load .*limit of open files is 24' /tmp/refused
check "24 open files: and blames no kernel" sh -c '! grep -q "kernel refuses" /tmp/refused'
(ulimit -l 0 && exec scx_roost) >$LOG 2>&1 &
ROOST_PID=$!
wait_for $LOAD_LIMIT_S enabled_or_gone
check "no locked memory: enabled" roost_enabled
stop_roost
rmdir $BOX
finish
