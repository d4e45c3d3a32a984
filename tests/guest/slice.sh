# SPDX-License-Identifier: GPL-2.0-only
# sched_attr.sched_runtime, the custom slice, is accepted. A shorter slice means more switches; one
# that is longer than the arm's does not make others wait.
# topology: 1
# accel: icount
# timeout: 120
. /tests/lib.sh
start_roost --slice-us 8000
hog -t 2 -p 10 cpus=0,slice_us=500 cpus=0,slice_us=500 >/tmp/short || not_ok "short slices: set, kept, shared"
hog -t 2 -p 10 cpus=0,slice_us=20000 cpus=0,slice_us=20000 >/tmp/long || not_ok "long slices: set, kept, shared"
cat /tmp/short /tmp/long
switches() { sed -n 's/.* \([0-9]*\) switches$/\1/p' "$1" | awk '{ n += $1 } END { print n + 0 }'; }
check "slices of 0.5 ms switch at least 4 times as often as slices of 20 ms" \
	[ "$(switches /tmp/short)" -ge $((4 * $(switches /tmp/long))) ]
stop_roost
finish
