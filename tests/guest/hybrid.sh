# SPDX-License-Identifier: GPL-2.0-only
# A hybrid: threads on some cores alone, and last-level caches of unequal size. QEMU has no such
# machine, so files are laid over those of /sys: CPUs 0 to 3 are two cores of two threads with one
# cache; 4 and 5 stay two cores with another. The kernel's own domains are not changed by that.
# topology: 3x2x1
# accel: icount
# timeout: 150
. /tests/lib.sh
CPUS=/sys/devices/system/cpu
# lay CPU FILE TEXT
lay() {
	echo "$3" >/tmp/laid-"$1"-"${2##*/}"
	mount --bind /tmp/laid-"$1"-"${2##*/}" "$CPUS/cpu$1/$2" || not_ok "$2 of CPU $1 cannot be laid over"
}
for cpu in 0 1 2 3; do
	pair=$((cpu & ~1))-$((cpu | 1))
	for list in core_cpus_list thread_siblings_list; do lay $cpu topology/$list $pair; done
	lay $cpu cache/index3/shared_cpu_list 0-3
done
scx_roost topology --json >/tmp/json
check "topology ends with 0" [ $? = 0 ]
check "four cores" grep -q '"nr_cores": *4\b' /tmp/json
check "two caches" [ "$(grep -o '"kind":' /tmp/json | wc -l)" = 2 ]
scx_roost doctor >/tmp/doctor
check "doctor says where the kernel's domains differ" grep -q domain /tmp/doctor

start_roost
stress-ng -q --cpu 2 --fork 2 --pipe 2 --yield 2 --timer 1 -t 1
check "stress-ng ends well" [ $? = 0 ]
turn 5 0
turn 5 1
hackbench -p -g 1 -f 2 -l 200 >/tmp/hackbench
check "hackbench ends well" [ $? = 0 ]
stop_roost
finish
