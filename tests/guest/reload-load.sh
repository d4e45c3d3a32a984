# SPDX-License-Identifier: GPL-2.0-only
# Loading on a busy machine takes at most twice as long as on an idle one: 40 tasks want the CPU,
# which the kernel's own scheduler shares. Emulated CPUs share a clock, so there is only one.
# topology: 1
# accel: icount
# timeout: 400
. /tests/lib.sh
# The time of the last load, as the scheduler logs it, ms.
loaded_ms() { sed -n 's/.*loaded in \([0-9]*\) ms.*/\1/p' $LOG | tail -n 1; }

start_roost
idle=$(loaded_ms)
end_roost INT 0
hog -w 0 -t 300 n=40 >/dev/null &
sleep 1
start_roost
busy=$(loaded_ms)
kill $(pidof hog)
ratio=$(awk "BEGIN { print $busy / $idle }")
check "a load takes $idle ms, and beside 40 tasks $busy ms: $ratio times (at most 2)" within 0 2 "$ratio"
end_roost INT 0
finish
