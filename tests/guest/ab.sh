# SPDX-License-Identifier: GPL-2.0-only
# ab: variants are switched, verdicts come, and the machine is left on the kernel's own scheduler whatever happens.
# topology: 4
# accel: tcg
# timeout: 900
. /tests/lib.sh
LOG=/tmp/ab.log
ab() { scx_roost ab --result /tmp/ab.jsonl "$@" >$LOG 2>&1; }
anew() { rm -f /tmp/ab.jsonl; }
says() { grep -q -e "$1" $LOG; }

check "kernel's own, ours, and the same in other words" \
	ab --variant eevdf --variant mainline --variant mainline+prev_idle=on -n 6 --seed 1 -- sh -c 'for i in 1 2 3; do true | cat; done'
check "state is disabled" state_is disabled
check "nothing of it is better" sh -c "! grep -q ' better' $LOG"
cat $LOG | sed 's/^/# /'
anew
for case in "false|the command failed" "sleep 100|did not end within 1 s" "sleep 100 &|left processes behind"; do
	ab --variant mainline --variant roost -n 6 --timeout 1 -- sh -c "${case%%|*}"
	check "refused: ${case%%|*}" says "${case#*|}"
	check "state is disabled" state_is disabled
	anew
done
ab --variant mainline --variant roost -n 6 --metric 'regex:took ([0-9]+)' -- true
check "a number that is not printed" says "printed nothing that"
anew
scx_roost ab --variant mainline --variant roost -n 6 --result /tmp/ab.jsonl -- sleep 60 >$LOG 2>&1 &
AB=$!
wait_for 60 state_is enabled
sleep 1
kill -KILL $AB
wait_for 10 state_is disabled
check "killed: state is disabled" state_is disabled
wait_for 5 sh -c '! pidof sleep'
check "killed: the command is gone" sh -c '! pidof sleep'
anew
start_roost
ab --variant mainline --variant eevdf -n 6 -- true
check "a foreign scheduler is not taken off" says "is attached, and no service"
check "it is still there" roost_enabled
end_roost INT 0
finish
