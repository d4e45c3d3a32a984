# SPDX-License-Identifier: GPL-2.0-only
# Tasks that yield while another has their lock (games, Wine): turns beside those under the kernel's
# own scheduler, and none is without where the lock changes hands often.
# topology: 2
# accel: icount
# timeout: 90
. /tests/lib.sh
both() { for free in 0 20; do turns 8 2 $free; done; }
both >/tmp/kernel
start_roost
both >/tmp/ours
all() { sed -n "$2s/^turns \([0-9]*\) .*/\1/p" "$1"; }
least() { sed -n "$2s/.* least //p" "$1"; }
for line in 1 2; do
	most=$(all /tmp/kernel $line)
	got=$(all /tmp/ours $line)
	check "turns: at least three quarters of the kernel's $most (got $got)" [ "$got" -ge $((most * 3 / 4)) ]
done
most=$(least /tmp/kernel 2)
got=$(least /tmp/ours 2)
check "each task has turns: at least half of the kernel's least, $most (got $got)" [ "$got" -ge $((most / 2 + 1)) ]
stop_roost
finish
