# SPDX-License-Identifier: GPL-2.0-only
# util_fits and bias_prev: hackbench with threads and pipes moves half as often as under mainline,
# and the sums of estimates are what the tasks have added. Groups have 20 pairs, as in the source.
# With 4 pairs, tasks run for milliseconds between waits, and most moves are steals by idle CPUs.
# topology: 8
# accel: icount
# timeout: 400
. /tests/lib.sh
# drift_now: sets drift, and shows the result of the audit
drift_now() { audit && sed 's/^/# /' /tmp/audit; }
audited() { drift_now && [ "$drift" = 0 ]; }
fires() { [ "$(counter "$1" /tmp/totals)" -gt 0 ]; }
CACHE=$(cat /sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list)
# hackbench_moves WHERE GROUPS LOOPS: adds to `moved` the moves of that many groups on the CPUs of a
# list
hackbench_moves() {
	n=$(moves taskset -c "$1" hackbench -T -p -g "$2" -f 20 -l "$3" -s 100 2>/tmp/out)
	grep -q '^Time' /tmp/out || not_ok "hackbench: $(cat /tmp/out)"
	echo "# $2 groups on CPUs $1: $n moves, $(grep '^Time' /tmp/out)"
	moved=$((moved + n))
}
# moves_under PRESET: sets `beside`, the moves on CPUs that share a cache, and `anywhere`
moves_under() {
	start_roost --preset "$1"
	moved=0
	hackbench_moves "$CACHE" 1 100
	hackbench_moves "$CACHE" 2 60
	hackbench_moves "$CACHE" 3 40
	beside=$moved moved=0
	hackbench_moves 0-7 2 100
	hackbench_moves 0-7 4 60
	hackbench_moves 0-7 6 40
	anywhere=$moved
	totals >/tmp/totals
	check "$1: the sums have not drifted" audited
	grep -o -E '"(fits|bias)_[a-z_]*":[0-9]+|"placed_prev":[0-9]+' /tmp/totals | tr '\n' ' ' | sed 's/^/# /'
	echo
}
moves_under mainline
check "mainline: util_fits is off" [ "$(counter fits_target /tmp/totals)$(counter fits_reject /tmp/totals)" = 00 ]
check "mainline: no task waits because of it" [ "$(arm_hist default fits_wait /tmp/totals)" = 0 ]
mainline_beside=$beside mainline_anywhere=$anywhere
stop_roost
moves_under desnoyers
waits=$(arm_hist default fits_wait /tmp/totals)
placed=$(($(counter fits_target /tmp/totals) + $(counter fits_prev /tmp/totals) + $(counter fits_recent /tmp/totals)))
check "desnoyers: the waits of the tasks that it placed (got $waits of $placed)" within $((placed * 9 / 10)) $placed "$waits"
for name in fits_target fits_prev fits_recent fits_reject bias_prev_first bias_prev_last; do
	check "desnoyers: $name fires" fires $name
done
check "desnoyers: on one cache at most half of the $mainline_beside moves (got $beside)" within 0 $((mainline_beside / 2)) "$beside"
check "desnoyers: everywhere at most three quarters of the $mainline_anywhere moves (got $anywhere)" \
	within 0 $((mainline_anywhere * 3 / 4)) "$anywhere"
# Under load, while everything changes.
stress-ng -q --fork 2 --pipe 2 --affinity 2 --timer 1 -t 4 &
STRESS=$!
sleep 2
drift_now
# While they are counted, a task may be on its way from one CPU to another.
check "under load the sums are right but for two tasks (got $drift)" within 0 2048 "$drift"
kill $STRESS
wait $STRESS
sleep 1
check "after it too" audited
stop_roost
finish
