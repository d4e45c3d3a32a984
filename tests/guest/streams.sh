# SPDX-License-Identifier: GPL-2.0-only
# Readers of the log that have gone, stopped or have no room, and streams that are closed: the
# scheduler goes on, is loaded again, and ends with the usual exit status.
# topology: 2
# accel: icount
# timeout: 200
. /tests/lib.sh
pipe() {
	rm -f /tmp/pipe
	mkfifo /tmp/pipe
	# It reads nothing.
	tail -f /dev/null </tmp/pipe &
	READER=$!
}
enabled() {
	wait_for $LOAD_LIMIT_S enabled_or_gone
	check "$1: enabled" roost_enabled
	roost_enabled || finish
}

late_goes
pipe
scx_roost >/tmp/pipe 2>&1 &
ROOST_PID=$!
enabled "a reader that goes"
kill -KILL $READER
late_comes
# Names of tasks are any bytes, and the kernel's debug dump has them.
naps 1 1000000 1000 100000 &
NAMED=$!
printf '\377\376' >/proc/$NAMED/comm
echo 1 >/proc/sys/kernel/sysrq
echo S >/proc/sysrq-trigger
wait $ROOST_PID
rc=$?
check "a reader that has gone, SysRq-S: its exit status (got $rc)" [ $rc = 70 ]

pipe
# What a pipe holds.
dd if=/dev/zero of=/tmp/pipe bs=65536 count=1 2>/dev/null
scx_roost -v >/tmp/pipe 2>&1 &
ROOST_PID=$!
enabled "a reader that has stopped"
check "a reader that has stopped: it answers" scx_roost ctl set --set slice-us=2000
begin=$(up)
end_roost INT 0
check "a reader that has stopped: it ends at once" within 0 5 "$(awk "BEGIN { print $(up) - $begin }")"
scx_roost --stats 0.1 >/tmp/pipe 2>$LOG &
ROOST_PID=$!
enabled "statistics that nobody reads"
begin=$(up)
end_roost INT 0
check "statistics that nobody reads: it ends" within 0 5 "$(awk "BEGIN { print $(up) - $begin }")"
kill $READER

scx_roost >/dev/full 2>&1 &
ROOST_PID=$!
enabled "no room"
end_roost INT 0

scx_roost <&- >&- 2>&- &
ROOST_PID=$!
enabled "closed streams"
end_roost TERM 0
kill $NAMED

# client STATUS WORDS: the exit status of a client with such streams
client() {
	eval "scx_roost $2"
	rc=$?
	check "scx_roost $2: status $1 (got $rc)" [ $rc = "$1" ]
}
client 2 'topology --bogus 2>&-'
client 2 'topology --bogus 2>/dev/full'
client 0 'topology >&-'
client 1 'topology >/dev/full 2>/dev/full'
finish
