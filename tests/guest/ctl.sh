# SPDX-License-Identifier: GPL-2.0-only
# Features and tunables change at runtime, without a reload, at once and as a whole. A wrong request
# changes nothing. Changes survive a restart.
# topology: 8
# accel: icount
# timeout: 200
# always: yes
# quick: 6.16
. /tests/lib.sh
late_goes
start_roost --preset mainline
seq0=$(cat $SCX/enable_seq)

ctl() { scx_roost ctl "$@"; }

# grows COUNTER: it grows during wakeups
grows() {
	totals >/tmp/before
	probe sleep 0.3 100000 >/dev/null
	totals >/tmp/after
	[ "$(counter "$1" /tmp/after)" -gt "$(counter "$1" /tmp/before)" ]
}
still() { ! grows "$1"; }

# refused TEXT ARGUMENT...
refused() {
	text=$1
	shift
	ctl show >/tmp/shown
	ctl "$@" >/tmp/out 2>/tmp/err
	rc=$?
	check "refused: $*" [ $rc = 1 ]
	check "it says why: $text" grep -q "$text" /tmp/err
	ctl show >/tmp/shown-then
	check "nothing changed" cmp -s /tmp/shown /tmp/shown-then
}

check "the control socket is the owner's alone" [ "$(stat -c %a /run/scx/root/ctl)" = 600 ]
check "mainline has no prev_core" still prev_core
check "prev_core is switched on" ctl set --enable prev_core
check "it acts" grows prev_core
check "the statistics show it" grep -q '"features":"[^"]*prev_core' /tmp/after
check "reset" ctl reset
check "it acts no more" still prev_core
check "a tunable is set" ctl set --set slice-us=1500 --preset roost
check "it is shown" sh -c 'scx_roost ctl show | grep -q "slice-us 1500"'
refused "unknown feature 'magic': expected one of prev_idle" set --enable magic --disable prev_core
refused 'slice-us 99: 100 to 100000 us are possible' set --set slice-us=99 --enable prev_core
refused "no arm 'x': expected one of default" set --arm x --enable prev_core
check "no reload so far" [ "$(cat $SCX/enable_seq)" = "$seq0" ]

totals /run/scx/root/stats '{"req":"ctl","args":{"op":"reset","arm":"default"}}' >/tmp/answer
check "the statistics socket changes nothing" grep -q "unknown request 'ctl'" /tmp/answer

check "an arm" ctl arms add x --preset mainline
late_comes
check "the tunable is still set" sh -c 'scx_roost ctl show | grep -q "slice-us 1500"'
check "the feature still acts" grows prev_core
check "the arm is still there" ctl show --arm x
check "scheduler still enabled" roost_enabled
end_roost INT 0
finish
