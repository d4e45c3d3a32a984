# SPDX-License-Identifier: GPL-2.0-only
# pack: tasks that run half of the time keep to the first cores of the machine, both threads of a
# core, and the other cores do nothing. Under mainline each gets a core of its own. Tasks that are
# born run there too.
# topology: 16
# accel: icount
# timeout: 150
. /tests/lib.sh
TASKS=6

# Cores of these CPUs.
cores() {
	for cpu in "$@"; do
		cat /sys/devices/system/cpu/cpu"$cpu"/topology/thread_siblings_list
	done | sort -u | wc -l
}
# naps_under ARGS...: sets used, the cores on which the tasks of three runs ended. Those of one run
# may do so on few cores by chance.
naps_under() {
	start_roost "$@"
	scx_roost ctl arms add w >/dev/null
	# shellcheck disable=SC2046 # one word for each CPU
	set -- "$1" "$2" $(for _ in 1 2 3; do scx_roost exec --arm w -- naps $TASKS 1000 1000 1000; done)
	name=$2
	shift 2
	used=$(cores "$@")
	totals >/tmp/totals
	echo "# $name: $TASKS tasks on $used cores, CPUs $*; pack $(arm_counter w pack /tmp/totals)," \
		"fork_pack $(arm_counter w fork_pack /tmp/totals), placed_idle_core $(arm_counter w placed_idle_core /tmp/totals)"
	stop_roost
}

naps_under --preset mainline
without=$used
check "mainline: pack counts nothing" [ "$(arm_counter w pack /tmp/totals)" = 0 ]
naps_under --profile powersave
check "powersave: wakeups are packed" [ "$(arm_counter w pack /tmp/totals)" -gt 0 ]
check "and forks" [ "$(arm_counter w fork_pack /tmp/totals)" -ge $TASKS ]
check "on fewer cores ($used, mainline $without)" [ "$used" -lt "$without" ]
check "on as many as have a thread for each task (got $used)" within 1 $((TASKS / 2)) "$used"
finish
