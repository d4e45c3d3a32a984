# SPDX-License-Identifier: GPL-2.0-only
# Cpuset partitions are created and removed at runtime. Tasks of a partition stay there, no other
# task comes, and each partition is used. In an isolated partition a task stays on its CPU, though
# its mask has the others.
# topology: 8
# accel: icount
# timeout: 240
. /tests/lib.sh
CG=/sys/fs/cgroup
echo +cpuset >$CG/cgroup.subtree_control || skip "this kernel has no cpuset controller"

# partition NAME CPUS KIND
partition() {
	[ -d "$CG/$1" ] || mkdir "$CG/$1"
	echo "$2" >"$CG/$1/cpuset.cpus"
	echo "$3" >"$CG/$1/cpuset.cpus.partition"
	check "$1 is a partition ($3) of CPUs $2" [ "$(cat $CG/$1/cpuset.cpus.partition)" = "$3" ]
}

# in_part NAME COMMAND...: runs it in the background; its pid is $!
in_part() {
	part=$1
	shift
	sh -c 'echo $$ >'"$CG/$part"'/cgroup.procs; exec "$@"' - "$@" >/dev/null &
}

look() {
	for i in 1 2 3 4 5 6 7 8 9 10; do
		cat /proc/[0-9]*/stat 2>/dev/null
		sleep 0.1
	done
}

# on_cpus FROM TO NAME: sets $looks to how often tasks of that name were seen running or runnable,
# and $seen to how often on these CPUs
on_cpus() {
	look | awk -v name="($3)" -v from="$1" -v to="$2" '
		$2 == name && $3 == "R" { looks++; seen += $39 >= from && $39 <= to }
		END { print seen + 0, looks + 0 }' >/tmp/looks
	read -r seen looks </tmp/looks
}

# homes NAME: sets $tasks to the number of tasks of that name, and $homes to the sum of the numbers
# of CPUs on which each was seen
homes() {
	look | awk -v name="($1)" '
		$2 == name && !tasks[$1]++ { nr++ }
		$2 == name && !homes[$1, $39]++ { sum++ }
		END { print nr + 0, sum + 0 }' >/tmp/homes
	read -r tasks homes </tmp/homes
}

start_roost
partition apart 4-5 root
# Five that may run anywhere outside, and three inside: more than there are CPUs.
for i in 1 2 3 4 5; do probe spin 60 100000 >/dev/null & done
cp "$(command -v probe)" /tmp/inside
for i in 1 2 3; do in_part apart /tmp/inside spin 60 100000; done
sleep 1
on_cpus 4 5 inside
check "tasks of the part run there alone ($seen of $looks looks)" [ "$seen" = "$looks" ]
check "they were seen ($looks looks)" [ "$looks" -ge 15 ]
on_cpus 4 5 probe
check "no other task runs there ($seen of $looks looks)" [ "$seen" = 0 ]
check "those were seen ($looks looks)" [ "$looks" -ge 15 ]
kill -KILL $(pidof probe inside)
sleep 0.5
partition apart 4-5 isolated
# Three tasks on two CPUs: with balancing, one of them would move all the time.
for i in 1 2 3; do in_part apart /tmp/inside spin 60 100000; done
sleep 1
on_cpus 4 5 inside
check "they run in the isolated part ($seen of $looks looks)" [ "$seen" = "$looks" ]
check "they were seen ($looks looks)" [ "$looks" -ge 15 ]
homes inside
check "each stays on its CPU ($tasks tasks, $homes homes)" [ "$tasks" = 3 -a "$homes" = 3 ]
kill -KILL $(pidof inside)
sleep 0.5
echo member >$CG/apart/cpuset.cpus.partition
sleep 0.5
for i in 1 2 3 4 5 6 7 8; do probe spin 60 100000 >/dev/null & done
sleep 2
on_cpus 4 5 probe
check "in one piece again, these CPUs are used ($seen of $looks looks)" [ "$seen" -gt 0 ]
kill -KILL $(pidof probe)
sleep 0.5
rmdir $CG/apart
stop_roost
finish
