# SPDX-License-Identifier: GPL-2.0-only
# Counters come over the socket, which is gone afterwards.
# topology: 8
# accel: icount
# timeout: 120
. /tests/lib.sh
start_roost --stats 1
stress-ng -q --pipe 1 -t 3 &
sleep 2.2
check "--stats prints something" [ "$(wc -l <$LOG)" -ge 2 ]
timeout -s INT 2.2 scx_roost --monitor 1 >/tmp/monitor 2>&1
check "--monitor prints something" [ -s /tmp/monitor ]
head -n 5 /tmp/monitor | sed 's/^/# monitor: /'
stop_roost
check "no socket is left" [ -z "$(find /run -type s | head -n 1)" ]
finish
