# SPDX-License-Identifier: GPL-2.0-only
# Counters come as a table, as JSON, over the socket, and as OpenMetrics. The socket is removed at
# the end.
# topology: 8
# accel: icount
# timeout: 120
# rustland: 8
. /tests/lib.sh
start_roost --stats 1 --stats-group 4242
stress-ng -q --pipe 1 -t 7 &
STRESS=$!
sleep 2.2
grep -A 3 '^scx_roost roost: ' $LOG | sed 's/^/# stats: /'
check "--stats prints the head of its table" grep -q '^scx_roost roost: .*; [0-9.]* s$' $LOG
check "--stats prints a counter that moved" grep -q '^  placed_prev  *[1-9]' $LOG
timeout -s INT 2.2 scx_roost --monitor 1 --json >/tmp/monitor 2>/tmp/err
sed 's/^/# monitor said: /' /tmp/err
running=$(counter running /tmp/monitor) placed=$(counter placed_prev /tmp/monitor)
check "--monitor sees it running (got ${running:-nothing})" [ "${running:-0}" = 1 ]
check "--monitor sees a counter move (got ${placed:-nothing})" [ "${placed:-0}" -gt 0 ]
totals >/tmp/totals
all=$(counter placed_prev /tmp/totals)
check "the totals have counted more (got ${all:-nothing})" [ "${all:-0}" -gt "${placed:-0}" ]
# As a user who has only this group. -n: otherwise start-stop-daemon takes another process for the
# one to start.
as_reader() { start-stop-daemon -S -q -c "65534:$1" -n reader -a "$(command -v scx_roost)" -- export --once; }
as_reader 4242 >/tmp/open 2>/tmp/err
sed 's/^/# export said: /' /tmp/err
check "the exporter sees it" grep -q '^roost_up 1' /tmp/open
exported=$(sed -n 's/^roost_placed_prev_total{arm="default"} //p' /tmp/open)
check "the exporter tells of no less (got ${exported:-nothing})" [ "${exported:-0}" -ge "${all:-1}" ]
as_reader 65534 >/tmp/open 2>/tmp/err
check "others may not read" grep -q 'no permission' /tmp/err
check "and get no data" [ ! -s /tmp/open ]
wait $STRESS
stop_roost
finish
