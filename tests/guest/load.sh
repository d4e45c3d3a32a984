# SPDX-License-Identifier: GPL-2.0-only
# Loads, is enabled, leaves on SIGINT and on SIGTERM.
# topology: 8
# accel: icount
# timeout: 120
# quick: yes
. /tests/lib.sh
start_roost
# Verifiers differ: a program that is fast to verify on one kernel can take minutes on another, and
# the kernel gives up at a million instructions. The most on any kernel of the matrix is about
# 64,000 today (dispatch on 6.18).
VERIFIED_LIMIT=120000
most_verified() { awk '/^verified_insns:/ && $2 > most { most = $2 } END { print most + 0 }' /proc/$ROOST_PID/fdinfo/*; }
verified=$(most_verified)
check "no program takes the verifier more than $VERIFIED_LIMIT instructions (most: $verified)" within 1 $VERIFIED_LIMIT "$verified"
check "the kernel names it" grep -q '^roost' $SCX/root/ops
stop_roost
start_roost
end_roost TERM 0
finish
