# SPDX-License-Identifier: GPL-2.0-only
# delay_migration with frequencies from a folder: which tasks run on their parent's CPU, which move
# and when, and what may happen meanwhile (changes of affinity, death, hotplug). The rows are those
# of tests/cases/delay.txt.
# topology: 8
# accel: icount
# timeout: 300
# needs: faults
. /tests/lib.sh
FREQS=/tmp/freqs
mkdir -p $FREQS
# all_at KHZ: sets every CPU's frequency; the scheduler reads it every 20 ms
all_at() {
	for cpu in $(seq 0 $((NCPU - 1))); do echo "$1" >$FREQS/cpu"$cpu"; done
	sleep 0.2
}
# sum COUNTER...: their sum in $file
sum() {
	total=0
	for name in "$@"; do total=$((total + $(counter "$name" "$file"))); done
	echo $total
}
# grown COUNTER...: the growth of the sum since the last mark
mark() { totals >/tmp/mark; }
grown() {
	totals >/tmp/totals
	file=/tmp/mark
	was=$(sum "$@")
	file=/tmp/totals
	echo $(($(sum "$@") - was))
}
# forked ARGS...: runs `delay` with these arguments; sets $here, $away, $obeyed ... to its counts
forked() {
	mark
	delay "$@" >/tmp/out
	check "no child is lost (delay $*)" [ $? = 0 ]
	cat /tmp/out
	for name in here away obeyed disobeyed least most; do
		eval "$name=$(sed "s/.* $name \([0-9]*\).*/\1/" /tmp/out)"
	done
}
DELAYED="delay_fork delay_wake"
ENDED="delay_cancel delay_expire delay_stolen delay_overdue delay_disallowed delay_refused delay_dropped"
# Every delay has ended once, except a few that are in progress.
ledger() {
	sleep 0.1
	totals >/tmp/totals
	file=/tmp/totals
	# shellcheck disable=SC2086 # lists of names
	left=$(($(sum $DELAYED) - $(sum $ENDED)))
	check "every delay has ended, once ($left left of $(sum $DELAYED))" within -4 4 "$left"
	for name in $DELAYED $ENDED delay_idle_here delay_fast delay_unknown delay_late delay_timer_start delay_timer_fire delay_timer_spurious; do
		printf '%s %s, ' $name "$(counter $name /tmp/totals)"
	done | sed 's/^/# /'
	echo
}
none_delayed() {
	# shellcheck disable=SC2086
	n=$(grown $DELAYED)
	check "$1: no move is delayed (got $n)" [ "$n" = 0 ]
}
positive() {
	n=$(grown "$2")
	check "$1: $2 counts (got $n)" [ "$n" -gt 0 ]
}
SMOVE="--preset smove --freq-source $FREQS --freq-threshold 1200000"

all_at 1000000
start_roost --preset mainline
forked 40 wait
mainline_here=$here
none_delayed mainline
stop_roost

# shellcheck disable=SC2086
start_roost $SMOVE --delay-us 400
all_at 1000000
forked 40 wait
check "B1: children run beside a parent that waits (got $here of 40)" [ "$here" -ge 30 ]
check "B1: more than under mainline (got $mainline_here)" [ "$here" -gt "$mainline_here" ]
positive B1 delay_cancel
scx_roost ctl set --set delay-us=50
forked 40 spin
check "B2: they move from a parent that goes on (got $away of 40)" [ "$away" -ge 36 ]
positive B2 delay_expire
# Here a fork takes 260 us, so only a longer delay is visible.
scx_roost ctl set --set delay-us=1000
forked 40 spin
# Only a thief may take it earlier.
thieves() { [ "$least" -ge 998 ] || [ "$(grown delay_stolen)" -gt 0 ]; }
check "B2: none moves before 1 ms, but with a thief (got $least us)" thieves
check "B2: most do (got $away of 40)" [ "$away" -ge 20 ]
forked -n 3 20 spin
check "B12: of three at once none moves before 1 ms, but with a thief (got $least us)" thieves
check "B12: and they move (got $away of 60)" [ "$away" -ge 30 ]
scx_roost ctl set --set delay-us=50
hackbench -p -g 2 -f 4 -l 100 >/dev/null
positive "a wakeup" delay_wake
mark
delay 200 exec
# The shell forks about 15 times meanwhile.
n=$(grown delay_fork delay_wake)
check "B14: exec is not placed (got $n delays with 200 execs)" within 0 60 "$n"
all_at 1200001
forked 20 spin
none_delayed "B3"
positive B3 delay_fast
all_at 1200000
forked 20 spin
positive B5 delay_fork
for cpu in $(seq 4 $((NCPU - 1))); do echo 1200001 >$FREQS/cpu"$cpu"; done
sleep 0.2
forked -n 8 10 spin
positive "a half of the CPUs is slow" delay_fork
positive "a half of the CPUs is fast" delay_fast
scx_roost ctl set --set freq-threshold=off
forked 20 spin
none_delayed "B4"
scx_roost ctl set --set freq-threshold=1200000
for cpu in $(seq 0 $((NCPU - 1))); do : >$FREQS/cpu"$cpu"; done
sleep 0.3
forked 20 spin
none_delayed "B13, nothing to be read"
positive "B13" delay_unknown
ledger

all_at 1000000
scx_roost ctl set --set delay-us=10000
forked 20 affine
check "B9: after a change of affinity none runs elsewhere (got $disobeyed, $obeyed obeyed)" [ "$disobeyed" = 0 ]
check "B9: most were delayed when it came (got $obeyed of 20)" [ "$obeyed" -ge 10 ]
positive B9 delay_dropped
mark
delay 40 kill >/tmp/out
cat /tmp/out
positive "B11, killed during the delay" delay_fork
scx_roost ctl set --set delay-us=1000
forked -n 6 10 spin
hackbench -p -g 2 -f 4 -l 60 >/dev/null
positive "B16, it may be stolen before its time" delay_stolen
scx_roost ctl set --enable claim
hackbench -p -g 2 -f 4 -l 60 >/dev/null
positive "with claims" delay_wake
ledger
hist=$(sed -n 's/.*"delay_wait":\[\([0-9,]*\)\].*/\1/p' /tmp/totals | tail -n 1)
check "waits are in the histogram ($hist)" [ "$(echo "$hist" | tr ',' '\n' | awk '{ s += $1 } END { print s + 0 }')" -gt 0 ]
affine 8 2
check "still enabled after changes of affinity" roost_enabled
scx_roost ctl set --set delay-us=10000
delay -n 4 60 spin >/tmp/out &
STORM=$!
for _ in 1 2; do
	turn 3 0
	sleep 0.3
	turn 3 1
	sleep 0.3
done
wait $STORM
check "B10: no child is lost over hotplug" [ $? = 0 ]
cat /tmp/out
check "B10: the scheduler stays over hotplug" roost_enabled
stop_roost

start_roost --preset smove --freq-source off
forked 20 spin
none_delayed "B13, no source"
check "it is said" wait_for 5 grep -q 'delay_migration does nothing' $LOG
check "and shown" sh -c "totals | grep -q '\"freq_source\":\"none\"'"
stop_roost

# A special build that loses every timer of a delayed move: the tick of the parent's CPU releases
# the task.
scx_roost() { exec scx_roost_spin "$@"; }
all_at 1000000
# shellcheck disable=SC2086
start_roost $SMOVE
sleep 0.2
forked 20 spin
check "without timers a child waits for 2 ms and a tick at most (got $most us)" within 0 12000 "$most"
positive "lost timers" delay_late
positive "lost timers" delay_overdue
stop_roost
finish
