# SPDX-License-Identifier: GPL-2.0-only
# Unequal CPUs: a running task that does not fit its CPU moves to a bigger idle one, and stays on
# one of the biggest. No emulated CPU is small, so scx_roost reads a copy of /sys that says so:
# CPUs 4 to 7 have half of the capacity.
# topology: 8
# accel: icount
# timeout: 150
# quick: 6.16 6.18 7.0 7.3
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
# The CPU where the task ran last.
cpu_of() { sed 's/.*) //' "/proc/$1/stat" | cut -d' ' -f37; }
is_on_big() { [ "$(cpu_of "$hog")" -lt 4 ]; }

start_roost --preset mainline --enable claim --enable core_claim
taskset -c 4-7 sh -c 'while :; do :; done' &
hog=$!
sleep 0.5
check "with small CPUs alone it stays (CPU $(cpu_of $hog))" [ "$(cpu_of $hog)" -ge 4 ]
check "and no move is counted" [ "$(fired misfit)" = 0 ]
case $(uname -r) in
6.* | 7.0*)
	taskset -p ff $hog >/dev/null
	sleep 0.2
	check "no tick moves a running task before Linux 7.1" [ "$(fired misfit)" = 0 ]
	;;
*)
	# Another task may come to its CPU at that moment: an idle CPU then takes one of the two.
	for _ in $(seq $ROUNDS); do
		taskset -p f0 $hog >/dev/null
		sleep 0.1
		taskset -p ff $hog >/dev/null
		check "it moves to a big CPU" wait_for 1 is_on_big
	done
	moves=$(fired misfit)
	check "ticks move it, once a round (got $moves of $ROUNDS)" within 1 $ROUNDS "$moves"
	sleep 0.5
	check "it stays on a big CPU (CPU $(cpu_of $hog))" is_on_big
	check "and does not move between these (got $(($(fired misfit) - moves)))" [ "$(fired misfit)" = "$moves" ]
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
