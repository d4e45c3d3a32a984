# SPDX-License-Identifier: GPL-2.0-only
# A second scheduler is refused with one sentence; the first keeps running.
# topology: 8
# accel: icount
# timeout: 90
# rustland: 8
. /tests/lib.sh
start_roost
scx_roost >/tmp/second.log 2>&1
rc=$?
sed 's/^/# second: /' /tmp/second.log
check "exit status is 1 (got $rc)" [ $rc = 1 ]
check "one sentence" [ "$(wc -l </tmp/second.log)" = 1 ]
# So is one that fails before it looks whether one runs.
(ulimit -n 24 && exec scx_roost) >/tmp/second.log 2>&1
check "too few files are refused" [ $? = 1 ]
check "the note is of the first, which has not ended" grep -q '"end":null' /run/scx/root/scx_roost.run
stop_roost
scx_roost status >/tmp/out
check "status says how the first ended" grep -q '  ended     .*ended by SIGINT' /tmp/out
finish
