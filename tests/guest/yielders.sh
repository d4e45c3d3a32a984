# SPDX-License-Identifier: GPL-2.0-only
# Tasks that yield while another has their lock (games, Wine): turns beside those under the kernel's
# own scheduler, and none is without.
# topology: 2
# accel: icount
# timeout: 90
. /tests/lib.sh
turns 8 3 >/tmp/kernel
start_roost
turns 8 3 >/tmp/ours
all() { sed -n 's/^turns \([0-9]*\) .*/\1/p' "$1"; }
least() { sed -n 's/.* least //p' "$1"; }
most=$(all /tmp/kernel)
check "turns: at least three quarters of the kernel's $most (got $(all /tmp/ours))" [ "$(all /tmp/ours)" -ge $((most * 3 / 4)) ]
check "each task has turns (least $(least /tmp/ours), the kernel $(least /tmp/kernel))" [ "$(least /tmp/ours)" -gt 0 ]
stop_roost
finish
