# SPDX-License-Identifier: GPL-2.0-only
# On an idle machine the daemon sleeps: less than two wakeups a second, of all its threads together. The kernel's events
# end its nap.
# topology: 8
# accel: icount
# timeout: 120
. /tests/lib.sh
period() { totals | sed -n 's/.*"period_ms":\([0-9]*\).*/\1/p'; }
period_is() { [ "$(period)" = "$1" ]; }
start_roost --lock-memory
kb() { sed -n "s/^$1:[^0-9]*\([0-9]*\) kB/\1/p" /proc/$ROOST_PID/status; }
check "its memory is locked ($(kb VmLck) kB)" [ "$(kb VmLck)" -gt 0 ]
check "it holds less than 40 MB ($(kb VmRSS) kB)" [ "$(kb VmRSS)" -lt 40000 ]
# Until the naps have grown. To ask meanwhile would be work.
sleep 8
check "its period becomes a second" period_is 1000
wakeups() { cat /proc/$ROOST_PID/task/*/status | awk '/^voluntary_ctxt/ { n += $2 } END { print n }'; }
before=$(wakeups)
sleep 10
n=$(($(wakeups) - before))
check "less than 20 wakeups in 10 s of an idle machine (got $n)" [ $n -lt 20 ]
check "it does look (got $n)" [ $n -ge 5 ]
looks() { totals >/tmp/totals && counter periods /tmp/totals; }
# looks_in SECONDS: sets n. Naps of a second, or of 0.4 s on a machine that works, allow two in 0.8 s; after an event they follow each
# other after 0.1, 0.2 and 0.4 s.
looks_in() {
	n=$(looks)
	sleep "$1"
	n=$(($(looks) - n))
}
for _ in 1 2 3; do
	sleep 4
	looks_in 0.8
	check "without an event it seldom looks (got $n in 0.8 s)" [ "$n" -le 2 ]
	sleep 4
	echo change >/sys/devices/system/cpu/cpu0/uevent
	looks_in 0.8
	check "after one it looks again soon, and often (got $n in 0.8 s)" [ "$n" -ge 3 ]
done
stop_roost
finish
