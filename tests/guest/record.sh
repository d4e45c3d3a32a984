# SPDX-License-Identifier: GPL-2.0-only
# Recordings of this kernel: they are whole, are replayed, and leave nothing behind.
# topology: 8
# accel: icount
# timeout: 400
# share: 4
# needs: rt-app
. /tests/lib.sh
T=/sys/kernel/tracing
[ -d $T/instances ] || skip "this kernel has no tracefs"
[ -d $T/events/sched/sched_waking ] || skip "this kernel has no events of the scheduler"
DIR=/tmp/recorded
# Percent by which a replay's length, work and switches may differ from the recording's. The model's
# kernel is far faster than an emulated one, which shows in the waits.
TOLERANCE=15

record() { scx_roost record -o $DIR "$@" >/tmp/record 2>&1; }
records() { ls -d $T/instances/scx_roost* >/dev/null 2>&1; }
alone() { ! records; }
told() { grep -q -e "$1" /tmp/record || { sed 's/^/# record: /' /tmp/record && false; }; }
same_machine() { [ "$(scx_roost topology --json --sysfs $DIR/sys)" = "$(scx_roost topology --json)" ]; }

# near FIELD: the field of the first variant's row differs little from that of the recording.
near() {
	off=$(awk -F '[:, ]+' -v field="\"$1\"" '$2 == field { value[++n] = $3 }
		END { print 100 * (value[2] / value[1] - 1) }' /tmp/replay)
	check "$1 of the replay is within $TOLERANCE % (got $off)" within -$TOLERANCE $TOLERANCE "$off"
}

record -- rt-app /tests/agree.json
check "a command is recorded (got $?)" [ $? = 0 ]
grep -e wakeup -e events /tmp/record | sed 's/^/# /'
check "nothing is left" alone
check "the scheduler is named" grep -q "^# scheduler: the kernel's" $DIR/sched.txt
check "the machine reads as /sys does" same_machine
for file in picture.svg trace.json; do
	check "$file is drawn" [ -s $DIR/$file ]
done
scx_roost sim --replay $DIR --json >/tmp/replay 2>&1
check "it is replayed (got $?)" [ $? = 0 ]
for field in mean busy_cpus switches; do
	near $field
done
scx_roost sim --replay $DIR --check 2>&1 | grep -e variant -e recorded -e eevdf -e roost | sed 's/^/# /'
record -- rt-app /tests/agree.json
check "an existing folder is kept" told "$DIR exists: name another folder"
rm -r $DIR

record --buffer-kb 64 -- rt-app /tests/agree.json
check "lost events are an error (got $?)" [ $? = 1 ]
check "and named" told 'events were lost (cpu[0-9]* [0-9]'
check "nothing is written" [ ! -e $DIR ]
check "nothing is left" alone

record --seconds 0.2 -- sh -c 'exit 7'
check "the status of a command is passed on (got $?)" [ $? = 7 ]
check "and the recording is kept" [ -s $DIR/picture.svg ]
rm -r $DIR
record -- sh -c 'kill -KILL $$'
check "so is the signal that ended it (got $?)" [ $? = 137 ]
rm -r $DIR
record -- /no/such/program
check "a command that cannot be run is an error (got $?)" [ $? = 1 ]
check "and named" told 'cannot start /no/such/program'
check "nothing is written" [ ! -e $DIR ]
check "nothing is left" alone

# Names that threads may have, and that look like parts of the text.
cat >/tmp/odd-names.sh <<'END'
for name in 'a\nb' '\n# cpus of 1: 0' ' ==> next_comm=' 'x child_pid=5\n' '\001\033[7m' \
	'CPU:1 [LOST 2' '-1 [000] 1.0: x' '"<&>'; do
	(printf -- "$name" >/proc/self/comm; sleep 0.02; sleep 0.02)
done
END
recorded() { grep -q -F -e "$1" $DIR/sched.txt; }
record -- sh /tmp/odd-names.sh
check "odd names of threads are no obstacle (got $?)" told 'replays it'
for text in 'comm= ==> next_comm= ' 'comm="<&> ' 'comm=CPU:1 [LOST 2 '; do
	check "'$text' is in the text" recorded "$text"
done
check "it is replayed" scx_roost sim --replay $DIR --variant eevdf
rm -r $DIR

# Under sudo the command runs as the invoking user, who gets the recording.
export SUDO_UID=65534 SUDO_GID=65534 SUDO_USER=nobody
record -- sh -c 'id -u >/tmp/who; id -g >>/tmp/who'
check "under sudo the command runs as the user" [ "$(cat /tmp/who)" = "65534
65534" ]
rm -f /tmp/who
check "who gets the recording" [ "$(stat -c %u $DIR $DIR/* $DIR/sys/*/* | sort -u)" = 65534 ]
unset SUDO_UID SUDO_GID SUDO_USER
rm -r $DIR

# begins [COMMAND...]: a long recording in the background, as $RECORD.
begins() {
	record --seconds 600 "$@" &
	wait_for 10 records
	RECORD=$(ls $T/instances | sed 's/scx_roost_//')
	sleep 1
}
begins
kill -INT $RECORD
wait
check "Ctrl-C ends a recording, which is whole" [ -s $DIR/picture.svg ]
check "nothing is left" alone
rm -r $DIR

begins -- sh -c 'sleep 600 & echo $! >/tmp/sleeper; wait'
kill -TERM $RECORD
wait
check "SIGTERM ends a recording, which is whole" [ -s $DIR/picture.svg -a -s $DIR/trace.json ]
check "nothing is left" alone
rm -r $DIR
kill $(cat /tmp/sleeper)

begins
kill -KILL $RECORD
wait
check "a killed recorder leaves its instance" [ -d $T/instances/scx_roost_$RECORD ]
start_roost --preset roost
record --seconds 1
check "which the next one removes" alone
check "the scheduler is named" grep -q '^# scheduler: roost' $DIR/sched.txt
stop_roost
finish
