# SPDX-License-Identifier: GPL-2.0-only
# Loads and unloads 8 times, 50 times in a full run, under load.
# topology: 2
# accel: tcg
# timeout: 1500
. /tests/lib.sh
# Tasks that come and go all the time, but leave most of the emulated CPUs' time for loading.
probe sleep 1500 100000 >/dev/null &
probe sleep 1500 100000 >/dev/null &
[ "$TIMES" -gt 1 ] && CYCLES=50 || CYCLES=8
n=0
while [ $n -lt $CYCLES ]; do
	scx_roost >$LOG 2>&1 &
	ROOST_PID=$!
	wait_for $LOAD_LIMIT_S enabled_or_gone
	roost_enabled || break
	kill -INT $ROOST_PID
	wait $ROOST_PID || break
	wait_for 5 state_is disabled || break
	n=$((n + 1))
done
check "$CYCLES cycles (got $n)" [ $n = $CYCLES ]
finish
