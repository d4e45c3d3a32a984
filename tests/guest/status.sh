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

# Of an earlier test.
rm -f /run/scx/root/scx_roost.run
status
check "without a scheduler the status is 3" [ $? = 3 ]
check "and it says how to start one" told "start it: sudo scx_roost"
scx_roost stop >/tmp/out 2>&1
check "there is nothing to stop" [ $? = 1 ]
check "which is said" told "scx_roost does not run"

check "nothing is said of a run that never was" sh -c "! grep -q -e '  ended ' -e '  failed ' /tmp/out"

# Its socket is there early in the load, which takes some seconds.
scx_roost --disable wide_idle >$LOG 2>&1 &
ROOST_PID=$!
answers() { status && told "$1"; }
wait_for $LOAD_LIMIT_S answers "is loading: "
check "while it loads, it says what" grep -q 'is loading: preset roost.*+wide_idle=off' /tmp/out
check "and calls nothing good" sh -c "! grep -q -e health -e '0 CPUs' /tmp/out"
sed 's/^/# /' /tmp/out
wait_for $LOAD_LIMIT_S enabled_or_gone
check "it is loaded" roost_enabled
wait_for 10 answers " runs: preset "
stress-ng -q --switch 2 --switch-ops 2000
check "it runs" status
sed 's/^/# /' /tmp/out
check "with a change of the preset" grep -q 'runs: preset roost.*+wide_idle=off, for ' /tmp/out
if [ -z "$in_rust" ]; then
	says() { scx_roost ctl set --disable claim >/tmp/said && grep -q "$1" /tmp/said; }
	check "a change says what it changes" says '^default: claim on -> off$'
	check "the same again changes nothing" says '^nothing changed: generation '
	scx_roost ctl show >/tmp/said
	check "the preset is shown with it" grep -q '^arm default: preset roost+[^ ]*claim=off' /tmp/said
	check "by status, too" sh -c "scx_roost status | grep -q 'runs: preset roost+[^ ]*claim=off'"
fi
status
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
su nobody -s /bin/sh -c "scx_roost status" >/tmp/out 2>&1
sed 's/^/# /' /tmp/out
check "anyone learns how it ended" grep -q '  ended  .* ago: ended by SIGTERM$' /tmp/out
check "and where its log is" told "  log       $LOG"
scx_roost export --once >/tmp/out
check "that is no failure" told "roost_failed 0"
check "the note belongs to root alone" [ "$(stat -c '%a %u' /run/scx/root/scx_roost.run)" = "644 0" ]

# A note that cannot be written hurts nothing.
rm /run/scx/root/scx_roost.run
mount -t tmpfs -o size=4k none /run/scx/root
head -c 9999 /dev/zero >/run/scx/root/full 2>/dev/null
start_roost
check "a full disk is a warning" grep -q 'WARN.* cannot write .*scx_roost.run' $LOG
end_roost INT 0
check "and one only" [ "$(grep -c 'cannot write' $LOG)" = 1 ]
check "no note is left" [ ! -e /run/scx/root/scx_roost.run ]
umount /run/scx/root
finish
