# SPDX-License-Identifier: GPL-2.0-only
# CPUs that go and come under --backend rust: it is loaded again each time, in the same process. And
# a cpuset that changes under load: no task is lost, or runs outside of it.
# topology: 4
# accel: icount
# timeout: 300
# needs: rustland
# long: yes
. /tests/lib.sh
start_roost
hog -t 250 n=6 n=2,cpus=3 n=2,cpus=1 >/dev/null &
probe sleep 250 100000 >/dev/null &
sleep 1
for cpu in 3 1; do
	for on in 0 1; do
		loads=$(cat $SCX/enable_seq)
		turn $cpu $on 30
		wait_for 40 loaded_anew
		check "CPU $cpu to $on: loaded again, by the same process" loaded_anew
		roost_enabled || finish
	done
done
check "it places tasks" forks 200 2

CG=/sys/fs/cgroup
echo +cpuset >$CG/cgroup.subtree_control
mkdir $CG/moved
hog -t 250 n=3,cgroup=$CG/moved >/dev/null &
sleep 0.5
# Where its tasks are that run or want to.
places() { for task in $(cat $CG/moved/cgroup.procs); do awk '$3 == "R" { print $39 }' /proc/$task/stat; done; }
outside() { places | grep -v "[$1]"; }
for n in 1 2 3 4 5; do
	for cpus in 0-1 2 1-3; do
		echo $cpus >$CG/moved/cpuset.cpus
		sleep 0.2
		left=$(outside $cpus)
		[ -z "$left" ] || break 2
	done
done
check "a cpuset that changes is followed (outside of $cpus: ${left:-none})" [ -z "$left" ]
check "its tasks go on" [ "$(places | wc -l)" = 3 ]
check "no bad event" events_clean
before=$(idle_ticks)
sleep 2
idle=$(($(idle_ticks) - before))
check "the hogs keep four CPUs busy (idle for $idle of 800 ticks)" [ $idle -lt 120 ]
end_roost TERM 0
finish
