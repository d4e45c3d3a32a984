# SPDX-License-Identifier: GPL-2.0-only
# status says what runs, what it has done and what to do; stop ends it. Also for a user without
# rights.
# topology: 4
# accel: icount
# timeout: 90
# rustland: 4
. /tests/lib.sh
told() { grep -qF "$1" /tmp/out; }
status() { scx_roost status "$@" >/tmp/out 2>&1; }

status
check "without a scheduler the status is 3" [ $? = 3 ]
check "and it says how to start one" told "start it: sudo scx_roost"
scx_roost stop >/tmp/out 2>&1
check "there is nothing to stop" [ $? = 1 ]
check "which is said" told "scx_roost does not run"

start_roost --disable wide_idle
stress-ng -q --switch 2 --switch-ops 2000
check "it runs" status
sed 's/^/# /' /tmp/out
check "with a change of the preset" grep -q 'runs: preset roost.* -wide_idle.*, for ' /tmp/out
check "its health is good" told "  health    good"
check "and it has placed wakeups" told "to a wholly idle core"
check "as JSON, too" status --json
check "with the time of its start" [ "$(sed -n 's/.*"uptime_s": \([0-9]*\).*/\1/p' /tmp/out)" -lt 600 ]
check "a user without rights" su nobody -s /bin/sh -c "scx_roost status" >/tmp/out
check "learns that it runs" told "scx_roost runs"
check "and who may read more" told "no permission to read the statistics"
su nobody -s /bin/sh -c "scx_roost stop" >/tmp/out 2>&1
check "and cannot stop it" [ $? = 1 ]
check "which is said" told "no permission to write to"
check "scheduler still enabled" roost_enabled

check "stop" scx_roost stop
check "has waited for its end" [ ! -d /proc/$ROOST_PID ]
wait $ROOST_PID
check "its exit status is 0 (got $?)" [ $? = 0 ]
check "the kernel's own runs" [ "$(cat /sys/kernel/sched_ext/state)" = disabled ]
finish
