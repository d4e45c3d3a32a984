# SPDX-License-Identifier: GPL-2.0-only
# The files below /etc/scx_roost: what they say is in force, SIGHUP returns to them, a bad one
# changes nothing, and ctl save keeps what ctl has changed.
# topology: 4
# accel: icount
# timeout: 120
. /tests/lib.sh
ETC=/etc/scx_roost
mkdir -p $ETC/config.d
shows() {
	scx_roost ctl show >/tmp/show
	grep -qF "$1" /tmp/show || { sed 's/^/# show: /' /tmp/show && false; }
}
log_has() { grep -qF "$1" $LOG; }
hup() { kill -HUP $ROOST_PID; }

# Without a terminal, as a service; with one, SIGHUP would mean that it is gone.
start_detached() {
	setsid scx_roost --run-id 7 "$@" >$LOG 2>&1 &
	ROOST_PID=$!
	# During the start it waits.
	wait_for 20 log_has "run_id: 7" && hup
	wait_for $LOAD_LIMIT_S enabled_or_gone
	check "scheduler enabled" roost_enabled
	roost_enabled || finish
}

cat >$ETC/config.toml <<-'FILE'
	preset = "mainline"
	slice-us = 1000
	[arms.games]
	enable = ["wide_idle"]
	[[rules]]
	cgroup = "/sys/fs/cgroup/later"
	arm = "games"
FILE
echo 'slice-us = 2000' >$ETC/config.d/10-slice.toml
check "the files are good" scx_roost config check
chmod o+w $ETC/config.toml
scx_roost config check >/tmp/out 2>&1
check "a file that others may write is refused" [ $? = 1 ]
check "with its name" grep -q "config.toml is not used: others than root may write" /tmp/out
chmod o-w $ETC/config.toml

start_detached --min-slice-us 300
check "the preset of config.toml" shows "arm default: preset mainline"
check "the slice of the drop-in" shows "slice-us 2000"
check "the command line above both" shows "min-slice-us 300"
check "an arm of its own" shows "arm games: preset mainline+wide_idle+min-slice-us=300+slice-us=2000, 1 rules"
mkdir /sys/fs/cgroup/later
sh -c 'echo $$ >/sys/fs/cgroup/later/cgroup.procs && exec stress-ng -q --switch 2' &
LOAD=$!
on_arms "a cgroup that came after the start" games
kill $LOAD
wait $LOAD 2>/dev/null

scx_roost ctl set --disable sis_util >/dev/null
echo 'slice-us = 3000' >$ETC/config.d/10-slice.toml
hup
check "SIGHUP: the new slice" wait_for 5 shows "slice-us 3000"
check "what ctl had changed is gone" shows "on        prev_idle sis_util"
check "which is logged" log_has "what ctl had changed was dropped: disable"
check "with what the files have" log_has "the configuration was read again: 1 arm beside arm default, 1 rule"
for slice in 3100 3200; do
	echo "slice-us = $slice" >$ETC/config.d/10-slice.toml
	hup
done
check "two SIGHUPs at once: the last file" wait_for 5 shows "slice-us 3200"
echo 'slice-us = 3000' >$ETC/config.d/10-slice.toml
hup
check "and back" wait_for 5 shows "slice-us 3000"
echo 'slice-us = 3' >$ETC/config.d/10-slice.toml
hup
check "a bad file is one line" wait_for 5 log_has "10-slice.toml, line 1: slice-us 3: 100 to 100000 us are possible"
check "and nothing changes" shows "slice-us 3000"
printf 'slice-us = 4000\nfreeze = true\n' >$ETC/config.d/10-slice.toml
hup
check "freeze is refused beside arms" wait_for 5 log_has "with --freeze there are no arms"
printf 'slice-us = 4000\nexit-dump-len = 65536\n' >$ETC/config.d/10-slice.toml
hup
check "what needs a restart is named" wait_for 5 log_has "need a restart: exit-dump-len"
check "scheduler still enabled" roost_enabled

scx_roost ctl set --disable sis_util >/dev/null
check "ctl save" scx_roost ctl save
check "writes what ctl has changed" grep -q '^disable = \["sis_util"\]' $ETC/config.d/90-ctl.toml
scx_roost ctl set --set claim-ttl-us=700 >/dev/null
check "ctl save again" scx_roost ctl save
# Arm games keeps what it had: it begins as the file has it, not as ctl has changed the default.
check "adds to the older file" [ "$(grep -c '^disable = \["sis_util"\]\|^claim-ttl-us = 700' $ETC/config.d/90-ctl.toml)" = 2 ]
rm $ETC/config.d/10-slice.toml
check "scheduler ends" scx_roost stop
echo 'stats-path = "/run/scx/other/stats"' >$ETC/config.d/20-sockets.toml
start_detached
check "the sockets are where a file says; clients look there" \
	[ -S /run/scx/other/stats -a ! -e /run/scx/root/stats ]
check "saved: it is there after a restart" shows "on        prev_idle avg_idle"
check "and the rest is that of config.toml" shows "slice-us 1000"

check "auto" scx_roost ctl set --profile auto
check "a profile" shows "arm default: profile auto"
check "status shows it" sh -c "scx_roost status | grep -q 'runs: profile auto'"
check "scheduler ends" scx_roost stop
rmdir /sys/fs/cgroup/later
rm -r $ETC
finish
