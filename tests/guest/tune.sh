# SPDX-License-Identifier: GPL-2.0-only
# tune tries changes of a preset and ends; after an interruption --resume continues. The machine has
# its own scheduler afterwards.
# topology: 4
# accel: tcg
# long: yes
# timeout: 600
. /tests/lib.sh
HOW="tune --base mainline -n 6 --warmups 0 --result /tmp/tune"
COMMAND="seq 3"
# The file may not be there yet.
# shellcheck disable=SC2002
lines() { cat /tmp/tune/pass.jsonl 2>/dev/null | wc -l; }
has_runs() { [ $(lines) -ge 8 ]; }

scx_roost $HOW --seed 3 -- $COMMAND >$AB_LOG 2>&1 &
AB=$!
wait_for 60 has_runs
ab_interrupted
before=$(lines)
scx_roost $HOW --resume -- $COMMAND >$AB_LOG 2>&1
check "it goes on to its end" [ $? = 0 ]
check "with the seed of the file" grep -q '"seed":3' /tmp/tune/pass.jsonl
check "behind what was there" [ $(lines) -gt $before ]
check "the tried changes are printed" ab_says 'Changes of mainline, by wall, in %'
check "the search ends" ab_says 'Compared with new runs: \|No change was better than mainline'
ab_restored "at its end"
sed 's/^/# /' $AB_LOG
rm -rf /tmp/tune
finish
