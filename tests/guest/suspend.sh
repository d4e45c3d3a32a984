# SPDX-License-Identifier: GPL-2.0-only
# After suspend to memory the scheduler runs again.
# topology: 2
# accel: tcg
# timeout: 120
# own-boot: yes
. /tests/lib.sh
grep -q mem /sys/power/state || skip "this kernel offers no suspend to memory (/sys/power/state: $(cat /sys/power/state))"
start_roost
check "suspend and wake by the clock" rtcwake -m mem -s 3
wait_for $RESTART_LIMIT_S roost_enabled
check "enabled again within $RESTART_LIMIT_S s, same process" roost_enabled
check "the machine is alive" forks 200 2
check "scheduler still enabled" roost_enabled
end_roost INT 0
finish
