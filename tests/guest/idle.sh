# SPDX-License-Identifier: GPL-2.0-only
# On an idle machine the daemon sleeps: fewer than two wakeups a second, of all its threads
# together, whatever its arms need. Events of the kernel end its nap.
# topology: 8
# accel: icount
# timeout: 180
. /tests/lib.sh
period() { totals | sed -n 's/.*"period_ms":\([0-9]*\).*/\1/p'; }
period_is() { [ "$(period)" = "$1" ]; }
FREQS=/tmp/freqs
mkdir -p $FREQS
for cpu in $(seq 0 $((NCPU - 1))); do echo 2000000 >$FREQS/cpu"$cpu"; done
start_roost --freq-source $FREQS --freq-threshold 1200000 --disable avg_idle_scan --disable delay_migration
kb() { sed -n "s/^$1:[^0-9]*\([0-9]*\) kB/\1/p" /proc/$ROOST_PID/status; }
check "it holds less than 40 MB ($(kb VmRSS) kB)" [ "$(kb VmRSS)" -lt 40000 ]
wakeups() { cat /proc/$ROOST_PID/task/*/status | awk '/^voluntary_ctxt/ { n += $2 } END { print n }'; }
# sleeps WITH: checks that it sleeps with these features
sleeps() {
	# Until the naps have become long. Requests meanwhile would keep them short.
	sleep 8
	check "with $1: its period becomes a second" period_is 1000
	before=$(wakeups)
	sleep 10
	n=$(($(wakeups) - before))
	check "with $1: less than 20 wakeups in 10 s of an idle machine (got $n)" [ $n -lt 20 ]
	check "with $1: it does look (got $n)" [ $n -ge 5 ]
}
sleeps "no samples"
scx_roost ctl set --enable delay_migration >/dev/null
sleeps delay_migration
scx_roost ctl set --enable avg_idle_scan >/dev/null
sleeps "delay_migration and avg_idle_scan"
scx_roost ctl set --disable delay_migration >/dev/null
sleeps avg_idle_scan
scx_roost ctl set --disable avg_idle_scan >/dev/null
sleep 1000 &
SLEEPER=$!
mkdir /sys/fs/cgroup/box
scx_roost ctl rules add --pid $SLEEPER --arm default >/dev/null
scx_roost ctl rules add --cgroup /sys/fs/cgroup/box --arm default >/dev/null
sleeps "rules about a process and a cgroup"
kill $SLEEPER
rmdir /sys/fs/cgroup/box
looks() { totals >/tmp/totals && counter periods /tmp/totals; }
# looks_in SECONDS [EVENT]: sets n to the number of looks; first writes to the file EVENT. Naps last
# a second, or 0.4 s under load, so 0.8 s have at most two looks. After an event looks follow after
# 0.1, 0.2 and 0.4 s.
looks_in() {
	n=$(looks)
	[ -z "$2" ] || echo change >"$2"
	sleep "$1"
	n=$(($(looks) - n))
}
for _ in 1 2 3; do
	sleep 4
	looks_in 0.8
	check "without an event it seldom looks (got $n in 0.8 s)" [ "$n" -le 2 ]
	sleep 4
	looks_in 0.8 /sys/devices/system/cpu/cpu0/uevent
	check "after one it looks again soon, and often (got $n in 0.8 s)" [ "$n" -ge 3 ]
done
stop_roost
finish
