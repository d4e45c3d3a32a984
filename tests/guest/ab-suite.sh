# SPDX-License-Identifier: GPL-2.0-only
# ab --suite runs all built-in workloads; after an interruption --resume continues. The machine has
# its own scheduler afterwards.
# topology: 4
# accel: tcg
# long: yes
# timeout: 600
. /tests/lib.sh
SUITE="--suite placement --variant mainline --variant roost -n 1 --warmups 0"
files() { ls /tmp/ab-*.jsonl 2>/dev/null | wc -l; }
is_at() { [ $(files) -ge $1 ]; }
runs() { cat /tmp/ab-*.jsonl | grep -c '"number".*"block":0'; }

ab_starts $SUITE
wait_for 100 is_at 2
ab_interrupted
ab $SUITE
check "an existing result file is not overwritten" ab_says 'ab-ping-pong.jsonl exists: continue it with --resume'
ab $SUITE --resume
check "it goes on to its end" [ $? = 0 ]
patterns=$(grep -c '1 block of 2 variants' $AB_LOG)
check "each workload has its report and its file ($patterns, $(files))" [ $patterns -ge 7 -a $patterns = $(files) ]
check "each has a run of each variant" [ $(runs) = $((2 * patterns)) ]
ab_restored "at its end"
rm -f /tmp/ab-*.jsonl
finish
