# SPDX-License-Identifier: GPL-2.0-only
# Full tables of rules: the last of 256 cgroups and of 64 names counts too. One more is refused,
# with the table's size.
# topology: 8
# accel: icount
# timeout: 200
. /tests/lib.sh
CG=/sys/fs/cgroup
start_roost
scx_roost ctl arms add a --preset mainline
scx_roost ctl arms add b --preset mainline

# add_rules KIND ARM VALUE...: sends all at once, and each is accepted
add_rules() {
	kind=$1
	arm=$2
	shift 2
	requests=$(printf '{"req":"ctl","args":{"op":"rule_add","subject":{"'$kind'":"%s"},"arm":"'$arm'"}}\n' "$@")
	n=$(totals /run/scx/root/ctl "$requests" | grep -c '"errno":0')
	check "$# rules --$kind (got $n)" [ "$n" = $# ]
}
# refused SIZE ARGUMENT...
refused() {
	size=$1
	shift
	scx_roost ctl rules add "$@" --arm a 2>/tmp/err
	check "one more is refused: $(cat /tmp/err)" grep -q "there are $size rules $1, the most that are possible" /tmp/err
}

# numbered PREFIX N: PREFIX1 to PREFIXN
numbered() { seq "$2" | sed "s|^|$1|"; }

cgroups=$(numbered $CG/g 256)
mkdir $cgroups $CG/more
add_rules cgroup a $cgroups
refused 256 --cgroup $CG/more
probe sleep 100 100000 >/dev/null &
pid=$!
echo $pid >$CG/g256/cgroup.procs
on_arms "in the last cgroup" a
add_rules comm b $(numbered name- 63) 'prob?'
refused 64 --comm more
on_arms "the cgroup is stronger than the name" a
echo $pid >$CG/more/cgroup.procs
on_arms "the last name" b
scx_roost ctl rules del --comm name-1
check "there is room again" scx_roost ctl rules add --comm more --arm a
stop_roost
finish
