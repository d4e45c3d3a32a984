# SPDX-License-Identifier: GPL-2.0-only
# scx_loader with the patch of contrib/scx starts the scheduler, switches its mode, restarts and
# stops it, over a message bus of its own with polkit.
# topology: 4
# accel: icount
# timeout: 200
# own-boot: yes
# long: yes
# needs: loader
. /tests/lib.sh
BUS=/run/dbus/system_bus_socket

# ---- a bus that allows everything, and polkit, which lets root do what a policy names ----
mkdir -p /run/dbus /etc/polkit-1/rules.d /usr/share/polkit-1/rules.d /usr/share/polkit-1/actions
mkdir -p /run/systemd/seats /run/systemd/sessions /run/systemd/users /run/systemd/machines
echo 'polkitd:x:990:990::/:/bin/false' >>/etc/passwd
echo 'polkitd:x:990:' >>/etc/group
cat >/tmp/bus.conf <<FILE
<busconfig>
  <type>system</type>
  <listen>unix:path=$BUS</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*"/>
    <allow eavesdrop="true"/>
  </policy>
</busconfig>
FILE
cat >/usr/share/polkit-1/actions/org.scx.Loader.policy <<-'FILE'
	<policyconfig>
	  <action id="org.scx.loader.manage-schedulers">
	    <description>schedulers</description>
	    <message>schedulers</message>
	    <defaults>
	      <allow_any>no</allow_any>
	      <allow_inactive>no</allow_inactive>
	      <allow_active>no</allow_active>
	    </defaults>
	  </action>
	</policyconfig>
FILE

# send DESTINATION PATH METHOD [ARGUMENT]...: prints the answer.
send() {
	to=$1 path=$2 method=$3
	shift 3
	dbus-send --system --print-reply=literal --dest="$to" "$path" "$method" "$@" 2>&1
}
loader() {
	method=$1
	shift
	send org.scx.Loader /org/scx/Loader "org.scx.Loader.$method" "$@"
}
says() {
	property=$1
	shift
	send org.scx.Loader /org/scx/Loader org.freedesktop.DBus.Properties.Get \
		string:org.scx.Loader "string:$property" | tee /tmp/says | grep -qw "$@"
}
is_there() {
	send org.freedesktop.DBus / org.freedesktop.DBus.NameHasOwner "string:$1" | grep -q true
}

dbus-daemon --config-file=/tmp/bus.conf --nofork &
bus=$!
wait_for 10 [ -S $BUS ]
/lib/polkit-1/polkitd --no-debug >/tmp/polkit.log 2>&1 &
check "polkit is on the bus" wait_for 20 is_there org.freedesktop.PolicyKit1
scx_loader >$LOG 2>&1 &
loader=$!
check "scx_loader is on the bus" wait_for 20 is_there org.scx.Loader
check "it knows scx_roost" says SupportedSchedulers scx_roost
check "nothing runs" says CurrentScheduler unknown

# runs PROFILE: whether another process than $old runs with it. It is started by the loader.
runs() {
	ROOST_PID=$(pidof scx_roost) && [ "$ROOST_PID" != "$old" ] && state_is enabled &&
		scx_roost status >/tmp/status 2>&1 && grep -q "profile $1" /tmp/status
}
old=
# becomes WHAT PROFILE: checks that it does so in time, and shows what it is.
becomes() {
	wait_for $LOAD_LIMIT_S runs "$2"
	check "$1: status has the profile $2" runs "$2"
	sed -n '1s/^/# /p' /tmp/status
	check "$1: the kernel has loaded it" grep -q '^roost' $SCX/root/ops
	check "$1: the loader says so" says CurrentScheduler scx_roost
	old=$ROOST_PID
}

loader StartScheduler string:scx_roost uint32:1 >/tmp/out
becomes "start in mode Gaming" gaming
for mode in "2 PowerSave powersave" "3 LowLatency lowlatency" "4 Server server" "0 Auto auto"; do
	# shellcheck disable=SC2086 # three words
	set -- $mode
	loader SwitchScheduler string:scx_roost "uint32:$1" >/tmp/out
	becomes "switch to mode $2" "$3"
done
loader SwitchSchedulerWithArgs string:scx_roost array:string:--profile,server >/tmp/out
becomes "switch with arguments" server
loader RestartScheduler >/tmp/out
becomes "restart" server

loader StopScheduler >/tmp/out
wait_for 20 state_is disabled
check "stop: the kernel's own scheduler runs" state_is disabled
check "stop: the process has ended" wait_for 5 [ ! -d "/proc/$old" ]
scx_roost status >/tmp/status 2>&1
check "stop: status says that nothing runs (got $?)" [ $? != 0 ]
check "stop: the loader says so" says CurrentScheduler unknown
check "it never had to start it twice" sh -c "! grep -q attempt $LOG"
kill $loader
wait $loader
kill $bus
wait $bus
rm -f $BUS
finish
