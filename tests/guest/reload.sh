# SPDX-License-Identifier: GPL-2.0-only
# 50 times loaded and unloaded, with work going on.
# topology: 2
# accel: tcg
# timeout: 1500
. /tests/lib.sh
# Tasks that come and go all the time, but leave most of the (emulated) CPUs' time to the loading.
probe sleep 1500 100000 >/dev/null &
probe sleep 1500 100000 >/dev/null &
n=0
while [ $n -lt 50 ]; do
	scx_roost >$LOG 2>&1 &
	ROOST_PID=$!
	wait_for $LOAD_LIMIT_S enabled_or_gone
	roost_enabled || break
	kill -INT $ROOST_PID
	wait $ROOST_PID || break
	wait_for 5 state_is disabled || break
	n=$((n + 1))
done
check "50 cycles (got $n)" [ $n = 50 ]
finish
