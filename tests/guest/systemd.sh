# SPDX-License-Identifier: GPL-2.0-only
# systemd is the first process and runs the unit of contrib/ in its sandbox: the scheduler loads,
# answers, loads again when a CPU comes, and leaves nothing behind. Then a unit with the
# restrictions of scx_loader.service.
# topology: 4
# accel: icount
# timeout: 200
# own-boot: yes
# needs: systemd
. /tests/lib.sh
[ ! -f /tests/no-systemd ] || skip "$(cat /tests/no-systemd)"
UNITS=/run/systemd/system
LOADER=scx_loader
mkdir -p /usr/local/bin
ln -s /bin/scx_roost /usr/local/bin/scx_roost
mkdir -p $UNITS/scx_roost.service.d /run/log

# There is no journal, so the log is a file.
logged() {
	printf '[Service]\nStandardError=append:%s\nEnvironment=SCX_TIMEOUT_MS=%s\n' "$LOG" "${SCX_TIMEOUT_MS:-30000}"
}
logged >$UNITS/scx_roost.service.d/log.conf

main_pid() { systemctl show -p MainPID --value "$1"; }
is_active() { [ "$(systemctl is-active "$1")" = active ]; }
status_of() { sed -n "s/^$1:[[:space:]]*//p" "/proc/$ROOST_PID/status"; }

# begin UNIT: starts it, and waits until the scheduler is enabled
begin() {
	: >$LOG
	late_goes
	systemctl start "$1"
	ROOST_PID=$(main_pid "$1")
	wait_for $LOAD_LIMIT_S enabled_or_gone
	check "$1: enabled" roost_enabled
	roost_enabled || finish
}

# all_threads NAME VALUE: each thread has this value
all_threads() {
	for task in /proc/"$ROOST_PID"/task/*/status; do
		[ "$(sed -n "s/^$1:[[:space:]]*//p" "$task")" = "$2" ] || return 1
	done
}

answers() { totals >/tmp/totals && [ -n "$(counter wakeups /tmp/totals)$(counter restarts /tmp/totals)" ]; }

# works UNIT: checks of a running scheduler, and of one that was loaded again
works() {
	check "$1: statistics answer" answers
	check "$1: an arm is added" scx_roost ctl arms add a --preset mainline
	sleep 1000 &
	check "$1: a rule about a process" scx_roost ctl rules add --pid $! --arm a
	check "$1: the sums add up" audit
	late_comes
	check "$1: statistics answer after it" answers
	check "$1: the rule is still there" sh -c 'scx_roost ctl rules | grep -q pid'
	kill $!
}

end_unit() {
	systemctl stop "$1"
	wait_for 5 state_is disabled
	check "$1: state is disabled after stop" state_is disabled
	result=$(systemctl show -p Result --value "$1")
	check "$1: it ended well ($result)" [ "$result" = success ]
}

check "systemd is the first process" grep -q systemd /proc/1/comm
begin scx_roost
check "all threads keep CAP_BPF and CAP_PERFMON" all_threads CapPrm 000000c000000000
check "no thread can gain any" all_threads NoNewPrivs 1
check "a system call filter" all_threads Seccomp 2
check "the log tells what is kept" grep -q 'it keeps the privileges CAP_BPF and CAP_PERFMON' $LOG
check "no warning but of the CPU that is offline" sh -c "! grep -e WARN -e ERROR $LOG | grep -v cpus_offline:"
works scx_roost

# scx_loader, with the restrictions of its unit; there the scheduler is its child.
cat >$UNITS/$LOADER.service <<'UNIT'
[Service]
ExecStart=scx_roost --stats-group nogroup
KillSignal=SIGINT
ProtectSystem=full
ProtectHome=true
PrivateTmp=true
PrivateDevices=true
PrivateMounts=true
ProtectKernelTunables=true
ProtectKernelModules=true
ProtectKernelLogs=true
ProtectControlGroups=true
LockPersonality=true
RestrictRealtime=true
ProtectClock=true
MemoryDenyWriteExecute=true
RestrictAddressFamilies=AF_UNIX
CapabilityBoundingSet=~CAP_BLOCK_SUSPEND CAP_CHOWN CAP_IPC_LOCK CAP_MKNOD CAP_NET_RAW CAP_SYS_BOOT
CapabilityBoundingSet=~CAP_SYS_CHROOT CAP_SYS_MODULE CAP_SYS_PACCT CAP_SYS_PTRACE CAP_SYS_TIME CAP_SYSLOG CAP_WAKE_ALARM
SystemCallErrorNumber=EPERM
SystemCallFilter=~@aio @chown @clock @cpu-emulation @debug @keyring @memlock @module @mount @obsolete @pkey
SystemCallFilter=~@raw-io @reboot @sandbox @setuid @swap @sync @timer
UNIT
logged >>$UNITS/$LOADER.service
systemctl daemon-reload
begin $LOADER
check "the unit of scx_roost gives way to scx_loader" [ "$(systemctl is-active scx_roost)" = inactive ]
check "without CAP_CHOWN and chown() the group may read" su nobody -s /bin/sh -c 'totals >/tmp/nobody'
check "and it has its answer" [ -s /tmp/nobody ]
check "it may not control" su nobody -s /bin/sh -c '! scx_roost ctl show 2>/dev/null'
check "a deaf daemon says so" grep -q 'the next look notices its end' $LOG
works $LOADER

# A drop-in with a group, and an arm that is made when it runs.
cat >$UNITS/scx_roost.service.d/more.conf <<'UNIT'
[Service]
ExecStart=
ExecStart=scx_roost --stats-group nogroup
ExecStartPost=-scx_roost ctl --wait 20 arms add late --preset mainline
UNIT
systemctl daemon-reload
begin scx_roost
check "in its unit, too, the group may read" su nobody -s /bin/sh -c 'totals >/tmp/nobody2'
check "and it has its answer" [ -s /tmp/nobody2 ]
check "ctl works within the sandbox" scx_roost ctl show --arm late
check "scx_loader gives way to the unit of scx_roost" [ "$(systemctl is-active $LOADER)" = inactive ]
end_unit scx_roost
finish
