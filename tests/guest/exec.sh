# SPDX-License-Identifier: GPL-2.0-only
# scx_roost exec: the command and all that it starts are on the arm. Its arguments, input, output
# and status pass through.
# topology: 8
# accel: icount
# timeout: 200
. /tests/lib.sh
late_goes
start_roost
scx_roost ctl arms add x --preset mainline
scx_roost ctl arms add y --preset mainline

run() { scx_roost exec --arm x -- "$@"; }

for status in 0 1 42 255; do
	run sh -c "exit $status"
	rc=$?
	check "exit status $status (got $rc)" [ $rc = $status ]
done
for signal in TERM KILL SEGV; do
	run sh -c "kill -$signal \$\$" 2>/dev/null
	rc=$?
	sh -c "kill -$signal \$\$" 2>/dev/null
	plain=$?
	check "ended by SIG$signal as without (got $rc, $plain)" [ $rc = $plain ]
done
lines=$(printf 'one\ntwo')
got=$(echo input | LINES2="$lines" run sh -c 'cat; echo "$LINES2"; echo "$1"' sh 'a  b')
check "stdin, environment and arguments" [ "$got" = "$(printf 'input\none\ntwo\na  b')" ]
run /no/such/program 2>/tmp/err
check "no such program is 127" [ $? = 127 ]
scx_roost exec --arm z -- true 2>/tmp/err
check "no such arm is 1" [ $? = 1 ]
check "the error lists the arms" grep -q "no arm 'z': expected one of default, x, y" /tmp/err

on_arms "nothing yet" ""
scx_roost exec --arm x -- probe sleep 100 100000 >/dev/null &
child=$!
on_arms "a command" x
kill $child
wait $child
on_arms "it has ended" ""
run sh -c 'setsid sh -c "probe sleep 100 100000 >/dev/null & exit" & wait' &
wait $!
on_arms "a daemon, two forks and a setsid away" x
check "an exec within an arm" scx_roost exec --arm y -- sh -c 'probe sleep 100 100000 >/dev/null &'
on_arms "and one on the other" "x y"

late_comes
on_arms "after it" "x y"
check "an arm is deleted" scx_roost ctl arms del x
on_arms "its tasks are on default" y
check "another takes its place" scx_roost ctl arms add z --preset roost
on_arms "it has no tasks" y
check "scheduler still enabled" roost_enabled
end_roost INT 0
finish
