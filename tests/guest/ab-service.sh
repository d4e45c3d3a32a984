# SPDX-License-Identifier: GPL-2.0-only
# ab stops a scheduler that runs as a service and restores it, whatever fails. It does not stop one
# in which ctl has changed what is not saved.
# topology: 4
# accel: tcg
# long: yes
# timeout: 600
. /tests/lib.sh
# A fake systemctl: it knows one unit, which runs a scheduler of ours in the unit's cgroup. A file
# holds what it shows as Transient.
UNIT=/sys/fs/cgroup/system.slice/scx.service
mkdir -p $UNIT /tmp/sbin
cat >/tmp/sbin/systemctl <<'EOF'
#!/bin/sh
procs=/sys/fs/cgroup/system.slice/scx.service/cgroup.procs
case $1 in
start)
	[ -z "$(cat $procs)" ] || exit 0
	setsid sh -c "echo \$\$ >$procs; exec scx_roost" >/tmp/roost.log 2>&1 &
	;;
show)
	printf 'Transient=%s\nCanStart=yes\nCanStop=yes\nMainPID=%s\n' "$(cat /tmp/transient)" "$(head -n 1 $procs)"
	;;
stop)
	kill $(cat $procs)
	while [ -n "$(cat $procs)" ]; do sleep 0.05; done
	;;
esac
EOF
chmod +x /tmp/sbin/systemctl
echo no >/tmp/transient
PATH=/tmp/sbin:$PATH
answers() { state_is enabled && scx_roost ctl show >/dev/null 2>&1; }
set_by_ctl() { scx_roost ctl show 2>/dev/null | grep -v -i generation && scx_roost ctl rules 2>/dev/null; }
as_before() {
	answers || { echo "sched_ext is $(state), and ctl show: $(scx_roost ctl show 2>&1 | head -n 1)"; return 1; }
	now=$(set_by_ctl)
	[ "$now" = "$was" ] || { echo "set by ctl is: $now; and was: $was"; return 1; }
	ab_cleared
}
AB_BACK=as_before
AB_BACK_WHAT="the service is attached, with what ctl had saved, and nothing is left"
runs_sleep() { pidof sleep >/dev/null; }
guardian() { grep -l ab-guardian /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3 | head -n 1; }

systemctl start scx.service
wait_for $LOAD_LIMIT_S answers
check "the service is attached" answers
begun=$(set_by_ctl)
scx_roost ctl set --enable claim --set slice-us=1500
scx_roost ctl arms add quiet --preset roost
scx_roost ctl set --arm quiet --disable sync_local --set min-slice-us=500
scx_roost ctl rules add --comm 'quiet*' --arm quiet
was=$(set_by_ctl)
check "ctl has set something" [ "$was" != "$begun" ]

pid=$(cat $UNIT/cgroup.procs)
ab --variant eevdf --variant mainline -n 1 -- true
check "status 1: changes that are not saved" [ $? = 1 ]
check "reported: changes that are not saved" ab_says 'save or reset them first'
check "it was not stopped, and has them" [ "$(cat $UNIT/cgroup.procs) $(set_by_ctl)" = "$pid $was" ]
check "they are saved" scx_roost ctl save
systemctl stop scx.service
systemctl start scx.service
wait_for $LOAD_LIMIT_S answers
was=$(set_by_ctl)
check "the next start has them" [ "$was" != "$begun" ]
pid=$(cat $UNIT/cgroup.procs)
echo yes >/tmp/transient
ab_anew
ab --variant eevdf --variant mainline -n 1 -- true
check "status 1: a unit that disappears when it is stopped" [ $? = 1 ]
check "reported: a unit that disappears when it is stopped" ab_says 'in scx.service, which disappears when it is stopped: end it first'
check "it was not stopped" [ "$(cat $UNIT/cgroup.procs)" = "$pid" ]
echo no >/tmp/transient

for case in "false|the command failed" "sleep 100|did not end within 1 s" "sleep 100 &|forked away" "setsid sleep 100 & sleep 0.3|daemonised" \
	"echo 5 apples|output has no match for"; do
	ab --variant mainline --variant roost -n 6 --timeout 1 --metric 'regex:took ([0-9]+)' -- sh -c "${case%%|*}"
	check "status 1: ${case%%|*}" [ $? = 1 ]
	check "reported:  ${case%%|*}" ab_says "${case#*|}"
	ab_restored "${case%%|*}"
done

check "a comparison without a failure" ab --variant eevdf --variant mainline -n 1 --warmups 0 -- true
check "what is not put back is reported" ab_says 'rules about processes are not put back'
ab_restored "without a failure"

ab_starts --variant eevdf --variant mainline -n 6 -- sleep 60
wait_for 60 runs_sleep
first=$(guardian)
kill -KILL $first
replaced() { [ -n "$(guardian)" ] && [ "$(guardian)" != "$first" ]; }
wait_for 10 replaced
check "the restoring process is replaced when it was killed" replaced
is_reported() { grep -q 'killed has ended early (signal: 9 (SIGKILL)): another was started' $AB_LOG; }
wait_for 5 is_reported
check "that is reported" is_reported
kill -KILL $AB
ab_restored "both killed"

systemctl stop scx.service
wait_for 5 state_is disabled
rm -r /etc/scx_roost
rmdir $UNIT ${UNIT%/*}
finish
