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
echo change >/sys/devices/system/cpu/cpu0/uevent
sleep 0.4
now=$(period)
check "after an event it looks again at once, and often (period $now ms)" [ "$now" -lt 1000 ]
stop_roost
finish
