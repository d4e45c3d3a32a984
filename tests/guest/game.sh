# SPDX-License-Identifier: GPL-2.0-only
# Nobody gets more of a CPU by tricks than under the kernel's own scheduler, or makes others wait:
# each trick of game.c beside an honest task, one that wakes often and a server, under EEVDF and
# here. game-presets plays them under the other presets.
# Where a group nests others, its own weight and limit hold at any depth; and a user who makes
# thousands of groups takes them from nobody.
# topology: 1
# topology: 4
# accel: icount
# timeout: 500
. /tests/lib.sh
CG=/sys/fs/cgroup
LAST=$(($(nproc) - 1))
# nest NAME DEPTH WEIGHT: groups of that weight below NAME, each in the one before. Prints the last.
nest() {
	dir=$CG/$1
	for _ in $(seq "$2"); do
		echo +cpu >"$dir/cgroup.subtree_control"
		dir=$dir/d
		mkdir -p "$dir"
		echo "$3" >"$dir/cpu.weight"
	done
	echo "$dir"
}
# With more CPUs slices are longer, and the ring of 20 makes others wait: see limitations.md.
[ $LAST = 0 ] || TRICKS=$(echo "$TRICKS" | sed 's/ring:20 //')
# The first seconds of a boot are not like the others.
sleep 4
plays /tmp/eevdf
game crowd 1500 1 >/tmp/eevdf-crowd
mkdir $CG/jail $CG/free
echo 1 >$CG/jail/cpu.weight
deep=$(nest jail 70 10000)
start_roost
second_arm
plays /tmp/roost
check "each trick: share, wait, lateness and response are as under EEVDF" fair /tmp/eevdf /tmp/roost
game crowd 1500 1 >/tmp/roost-crowd
# How long others wait beside a crowd in a group is under Limits in limitations.md.
check "a crowd that goes from group to group leaves as much as under EEVDF ($(cat /tmp/eevdf-crowd /tmp/roost-crowd))" \
	within "$(awk '{ print 0.9 * $3 - 3 }' /tmp/eevdf-crowd)" 100 "$(awk '{ print $3 }' /tmp/roost-crowd)"
totals >/tmp/totals
echo "# claims: $(counter claim_set /tmp/totals), given back $(counter claim_release /tmp/totals)"
check "70 groups of weight 10000 in one of weight 1: 1 to 100" hog -w 2 -t 3 -p 12 \
	cpus=$LAST,cgroup=$deep,weight=1 cpus=$LAST,cgroup=$CG/free,weight=100
limits_are_reported || { stop_roost; finish; }
echo 100 >$CG/jail/cpu.weight
echo 10000 100000 >$CG/jail/cpu.max
check "a limit of 10 % holds for 70 groups in it" hog -w 2 -t 3 -p 12 \
	cpus=$LAST,cgroup=$deep,due=10 cpus=$LAST,cgroup=$CG/free,due=90
echo max >$CG/jail/cpu.max
mkdir $CG/many
echo +cpu >$CG/many/cgroup.subtree_control
for i in $(seq 4200); do echo "$CG/many/$i"; done | xargs -n 500 mkdir
mkdir $CG/late $CG/heavy
echo 10000 100000 >$CG/late/cpu.max
echo 1000 >$CG/heavy/cpu.weight
check "after 4200 empty groups a limit holds" hog -w 2 -t 3 -p 12 \
	cpus=$LAST,cgroup=$CG/late,due=10 cpus=$LAST,cgroup=$CG/free,due=90
check "and a weight" hog -w 2 -t 3 -p 12 cpus=$LAST,cgroup=$CG/heavy,weight=1000 \
	cpus=$LAST,cgroup=$CG/free,weight=100
# What the thread that looks at the machine has run.
looks_ms() {
	awk '{ print int($1 / 1e6) }' "$(grep -l looks /proc/$ROOST_PID/task/*/comm | sed 's/comm$/schedstat/')"
}
for i in $(seq 4200); do echo "$CG/many/$i/cpu.weight"; done | while read -r file; do
	echo 50 >"$file"
done
uptime_s() { cut -d. -f1 /proc/uptime; }
looked=$(looks_ms) since=$(uptime_s)
check "after 4200 groups with settings a limit holds" hog -w 2 -t 3 -p 12 \
	cpus=$LAST,cgroup=$CG/late,due=10 cpus=$LAST,cgroup=$CG/free,due=90
mkdir $CG/later
echo 10000 100000 >$CG/later/cpu.max
check "also of a group that is new" hog -w 2 -t 3 -p 12 \
	cpus=$LAST,cgroup=$CG/later,due=10 cpus=$LAST,cgroup=$CG/free,due=90
refused() { totals >/tmp/totals && [ "$(condition groups_refused /tmp/totals)" = 1 ]; }
check "status says that groups are refused" wait_for 40 refused
# It looks for the name of the last refused group after each change of these.
waited() { [ $(($(uptime_s) - since)) -ge 20 ]; }
wait_for 40 waited
looked=$(($(looks_ms) - looked)) since=$(($(uptime_s) - since))
check "to look at 4200 groups takes less than 2 % of a CPU ($looked ms in $since s)" \
	within 0 $((since * 20)) $looked
stop_roost
finish
