# SPDX-License-Identifier: GPL-2.0-only
# CPUs go and come under load, beside tasks bound to them and parked ones: the scheduler stays, no
# task is lost. A CPU that was offline at the load causes a reload, in the same process.
# topology: 8
# accel: icount
# timeout: 400
. /tests/lib.sh
CG=/sys/fs/cgroup

# The time that CPU $1 was busy, in ticks.
busy() { awk "/^cpu$1 / { print \$2 + \$3 + \$4 }" /proc/stat; }
works() { [ "$(busy "$1")" -gt "$was" ]; }
comes_back() {
	turn "$1" 1
	was=$(busy "$1")
	wait_for 5 works "$1"
	check "CPU $1 has work again" works "$1"
}
# On which CPUs hogs are that want to run.
places() { for task in $(pidof hog); do awk '$3 == "R" { print $39 }' /proc/$task/stat; done; }
leaves() {
	turn "$1" 0
	check "no task is left there" sh -c "! echo '$(places)' | grep -qx $1"
}

start_roost
loads=$(cat $SCX/enable_seq)
mkdir $CG/limited
echo "20000 100000" >$CG/limited/cpu.max
probe sleep 200 100000 >/dev/null &
hog -t 200 n=10 n=6,cpus=7 n=6,cpus=2 n=4,cgroup=$CG/limited n=4,cgroup=$CG/limited,cpus=7 n=2,cpus=7,idle=1 >/dev/null &
sleep 1
for cpu in 7 2; do
	leaves $cpu
	sleep 1
	comes_back $cpu
done
# A core with one thread, then a whole cache.
leaves 5
leaves 4
leaves 6
leaves 7
sleep 1
for cpu in 7 6 5 4; do comes_back $cpu; done
for n in 1 2 3 4 5 6; do
	turn 7 0
	turn 3 0
	turn 7 1
	turn 3 1
done
kill $(pidof hog)
hog -t 200 n=400,cpus=7 n=8 >/dev/null &
sleep 2
turn 7 0
sleep 1
turn 7 1
check "it was not loaded again" [ "$(cat $SCX/enable_seq)" = "$loads" ]
check "scheduler still enabled" roost_enabled
kill $(pidof hog)
sleep 1
check "no sum is off" audit
[ -z "$drift" ] || echo "# $drift"
leaves 3
offline() { totals >/tmp/totals && [ "$(condition cpus_offline /tmp/totals)" = 1 ]; }
wait_for 5 offline
check "it tells of the CPU that is offline" offline
check "no bad event" events_clean
end_roost INT 0

turn 3 1
late_goes
start_roost
begin=$(up)
late_comes
took=$(awk "BEGIN { print $(up) - $begin }")
check "in time ($took s, limit $RESTART_LIMIT_S s)" within 0 $RESTART_LIMIT_S "$took"
turn 7 0
turn 7 1
check "that CPU is known now" [ "$(cat $SCX/enable_seq)" = "$((loads + 1))" ]
check "no bad event" events_clean
end_roost INT 0
finish
