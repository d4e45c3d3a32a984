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
# 106,000 today (select_cpu on 6.18). A program whose loops are checked pass by pass exceeds this.
VERIFIED_LIMIT=120000
# A line 'prog_id: ID verified_insns: COUNT' for each program; several descriptors may be of one.
grep -hE '^(prog_id|verified_insns):' /proc/$ROOST_PID/fdinfo/* | paste - - | sort -u >/tmp/verified
echo "# verified instructions of all programs: $(awk '{ sum += $4 } END { print sum + 0 }' /tmp/verified)"
verified=$(awk '$4 > most { most = $4 } END { print most + 0 }' /tmp/verified)
check "no program takes the verifier more than $VERIFIED_LIMIT instructions (most: $verified)" within 1 $VERIFIED_LIMIT "$verified"
check "the kernel names it" grep -q '^roost' $SCX/root/ops
stop_roost
start_roost
end_roost TERM 0
finish
