# SPDX-License-Identifier: GPL-2.0-only
# Hostile clients at both sockets, as root and as a user who may only read. They get errors, the
# scheduler stays, a task that runs meanwhile is not late, memory and open files stay as they were.
# topology: 4
# accel: icount
# timeout: 150
# always: yes
. /tests/lib.sh
STATS=/var/run/scx/root/stats CTL=/var/run/scx/root/ctl
start_roost --stats-group 4242
# As a user who has only this group. -n: otherwise start-stop-daemon takes another process for the
# one to start.
as_reader() { start-stop-daemon -S -q -c "65534:$1" -n reader -a "$(command -v hostile)" -- "$2" "$3" "$4"; }
told_right() { sed -n 's/.*right \([0-9]*\).*/\1/p' "$1"; }
told_errors() { sed -n 's/.*errors \([0-9]*\).*/\1/p' "$1"; }
as_reader 65534 $STATS 1 0 2>/tmp/err
check "others may not come to the statistics" grep -q 'Permission denied' /tmp/err
as_reader 4242 $CTL 1 0 2>/tmp/err
check "the group may not come to the control socket" grep -q 'Permission denied' /tmp/err
# Memory that is allocated at the first request is allocated now.
hostile $CTL 2000 300 >/dev/null
hostile $STATS 1000 300 >/dev/null
sleep 6
kb=$(roost_kb) files=$(roost_files)
scx_roost ctl show >/tmp/arms
probe sleep 20 100 >/tmp/probe &
PROBE=$!
as_reader 4242 $STATS $((2000 * TIMES)) 300 >/tmp/reader &
READER=$!
hostile $STATS $((2000 * TIMES)) 300 >/tmp/stats &
STATISTICS=$!
hostile $CTL $((10000 * TIMES)) 300 >/tmp/ctl &
CONTROL=$!
wait $PROBE
late=$?
check "a task that sleeps 2 ms is not late ($(cat /tmp/probe))" [ $late = 0 ]
wait $READER $STATISTICS $CONTROL
for who in reader stats ctl; do
	sed "s/^/# $who: /" /tmp/$who
	check "$who: right requests are answered" [ "$(told_right /tmp/$who)" -gt 0 ]
	check "$who: the others are errors" [ "$(told_errors /tmp/$who)" -gt 100 ]
done
# A client that sent half of a request, or reads no answer, is dropped after five seconds.
files_are_back() { [ "$(roost_files)" -le "$files" ]; }
check "no file is left open ($files before)" wait_for 15 files_are_back
grown=$(($(roost_kb) - kb))
check "memory stays ($kb kB, and $grown more)" [ $grown -lt 4096 ]
scx_roost ctl show | sed 's/^generation.*//' >/tmp/arms-now
sed -i 's/^generation.*//' /tmp/arms
check "the arms are what they were" cmp -s /tmp/arms /tmp/arms-now
check "nothing of it is in the log" [ "$(grep -c 'cannot serve a client' $LOG)" = 0 ]
stop_roost
finish
