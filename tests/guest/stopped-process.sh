# SPDX-License-Identifier: GPL-2.0-only
# Scheduling continues while the scheduler's process is stopped, and it reports that afterwards.
# topology: 8
# accel: icount
# timeout: 120
. /tests/lib.sh
start_roost
totals >/tmp/totals
check "nothing was late so far" [ "$(counter periods_late /tmp/totals) $(condition period_late /tmp/totals)" = "0 0" ]
kill -STOP $ROOST_PID
check "stress-ng ends well meanwhile" stress-ng -q --cpu 4 --pipe 2 --fork 1 -t $((2 * TIMES))
check "still enabled" state_is enabled
kill -CONT $ROOST_PID
sleep 0.5
totals >/tmp/totals
late=$(counter periods_late /tmp/totals) skipped=$(counter periods_skipped /tmp/totals)
check "one look was late (got ${late:-nothing})" [ "$late" = 1 ]
# Naps last 0.1 to 1 s.
check "so were those left out (got ${skipped:-nothing})" [ "$skipped" -ge $((2 * TIMES - 1)) ]
check "the condition says so" [ "$(condition period_late /tmp/totals)" = 1 ]
stop_roost
finish
