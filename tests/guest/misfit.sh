# SPDX-License-Identifier: GPL-2.0-only
# Unequal CPUs: a running task that does not fit its CPU moves to a bigger idle one, and stays on
# one of the biggest. No emulated CPU is small, so scx_roost reads a copy of /sys that says so:
# CPUs 4 to 7 have half of the capacity.
# topology: 8
# accel: icount
# timeout: 150
# always: yes
# quick: 6.12 7.3
. /tests/lib.sh
CPUS=/sys/devices/system/cpu
ROUNDS=4
cp -a $CPUS /tmp/cpus 2>/dev/null
for cpu in 0 1 2 3 4 5 6 7; do
	echo $((cpu < 4 ? 1024 : 512)) >/tmp/cpus/cpu$cpu/cpu_capacity
done
mount --bind /tmp/cpus $CPUS || not_ok "a copy of $CPUS cannot be mounted there"
guest deadlines

fired() { totals >/tmp/totals && counter "$1" /tmp/totals; }
# The moves of the task: other tasks of this test run on small CPUs too, and some do not fit.
moved() { totals >/tmp/totals && arm_counter spin misfit /tmp/totals; }
# What may have taken the task back to a small CPU: another CPU took it from a queue, where it
# waited for another task (capacity is not asked then), or its CPU gave it back.
taken() {
	totals >/tmp/totals
	sum=0
	for name in dispatch_steal_llc dispatch_steal_node dispatch_steal_machine dispatch_help \
		balance_pull rescue given_back; do
		sum=$((sum + $(counter $name /tmp/totals)))
	done
	echo $sum
}
# The CPU where the task ran last.
cpu_of() { sed 's/.*) //' "/proc/$1/stat" | cut -d' ' -f37; }
is_on_big() { [ "$(cpu_of "$hog")" -lt 4 ]; }

start_roost --preset mainline --enable claim --enable core_claim
scx_roost ctl arms add spin --preset mainline >/dev/null
scx_roost ctl set --arm spin --enable claim --enable core_claim >/dev/null
scx_roost ctl rules add --comm spin --arm spin >/dev/null
printf '#!/bin/sh\nwhile :; do :; done\n' >/tmp/spin
chmod +x /tmp/spin
taskset -c 4-7 /tmp/spin &
hog=$!
sleep 0.5
check "with small CPUs alone it stays (CPU $(cpu_of $hog))" [ "$(cpu_of $hog)" -ge 4 ]
check "and no move is counted" [ "$(moved)" = 0 ]
kept=$(arm_counter spin dispatch_keep /tmp/totals)
check "but it is on its arm (dispatch_keep $kept)" [ "${kept:-0}" -gt 0 ]
case $(uname -r) in
6.* | 7.0*)
	taskset -p ff $hog >/dev/null
	sleep 0.2
	check "no tick moves a running task before Linux 7.1" [ "$(moved)" = 0 ]
	;;
*)
	# Another task may come to its CPU at that moment: an idle CPU then takes one of the two.
	took=$(taken)
	for _ in $(seq $ROUNDS); do
		taskset -p f0 $hog >/dev/null
		sleep 0.1
		taskset -p ff $hog >/dev/null
		check "it moves to a big CPU" wait_for 1 is_on_big
	done
	moves=$(moved)
	took=$(($(taken) - took))
	check "ticks move it, once a round (got $moves of $ROUNDS; $took taken back)" \
		within 1 $((ROUNDS + took)) "$moves"
	took=$(taken)
	sleep 0.5
	check "it stays on a big CPU (CPU $(cpu_of $hog))" is_on_big
	moves=$(($(moved) - moves))
	took=$(($(taken) - took))
	check "and does not move between these (got $moves; $took taken back)" [ "$moves" -le "$took" ]
	;;
esac
before=$(fired fork_idle)
check "children are born, run and are reaped" forks 200 2
check "forks find idle CPUs (fork_idle $before, then $(fired fork_idle))" [ "$(fired fork_idle)" -gt "$before" ]
check "wakeups search by capacity (sis_capacity $(fired sis_capacity))" [ "$(fired sis_capacity)" -gt 0 ]
check "and claim what they find (claim_set $(fired claim_set))" [ "$(fired claim_set)" -gt 0 ]
kill $hog
stop_roost
umount $CPUS
finish
