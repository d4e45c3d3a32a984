# SPDX-License-Identifier: GPL-2.0-only
# Loads, is enabled, leaves on SIGINT and on SIGTERM.
# topology: 8
# accel: icount
# timeout: 120
# always: yes
# rustland: 8
# quick: yes
. /tests/lib.sh
start_roost
# Verifiers differ: a program that is fast to verify on one kernel can take minutes on another, and
# the kernel gives up at a million instructions. The most is select_cpu's: about 118,000 on 6.18,
# and 147,000 on 6.12, which prunes less. A program whose loops are checked pass by pass exceeds
# this.
VERIFIED_LIMIT=120000
case $(uname -r) in 6.12.*) VERIFIED_LIMIT=150000 ;; esac
# Lines 'prog_id: ID' and, of a program and not of a link, 'verified_insns: COUNT'; several
# descriptors may be of one program.
cat /proc/$ROOST_PID/fdinfo/* | awk '/^prog_id:/ { id = $2 } /^verified_insns:/ { of[id] = $2 }
	END { for (id in of) print id, of[id] }' >/tmp/verified
echo "# verified instructions of all programs: $(awk '{ sum += $2 } END { print sum + 0 }' /tmp/verified)"
verified=$(awk '$2 > most { most = $2 } END { print most + 0 }' /tmp/verified)
check "no program takes the verifier more than $VERIFIED_LIMIT instructions (most: $verified)" within 1 $VERIFIED_LIMIT "$verified"
check "the kernel names it" grep -q '^roost' $SCX/root/ops
stop_roost
start_roost
end_roost TERM 0
finish
