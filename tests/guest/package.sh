# SPDX-License-Identifier: GPL-2.0-only
# The Debian package is installed, started, upgraded, fails, is removed and purged, under a real
# systemd and a real dpkg.
# topology: 4
# accel: icount
# timeout: 600
# own-boot: yes
# needs: package
. /tests/lib.sh
[ ! -f /tests/no-systemd ] || skip "$(cat /tests/no-systemd)"
export PATH=/usr/sbin:/usr/bin:/bin
# Not the applet of busybox.
DPKG=/usr/sbin/dpkg
NOTE=/run/scx/root/scx_roost.run
mkdir -p /var/lib/dpkg/info /var/lib/dpkg/updates /var/log
# The lab's own, which a test of the package must not find.
mv /bin/scx_roost /tmp/scx_roost
find / -xdev -name '*scx*roost*' | sort >/tmp/files
# There is no journal, so the log is a file. Eight starts, as in the unit, would take long.
for unit in scx_roost scx_roost-export; do
	mkdir -p /run/systemd/system/$unit.service.d
	log=/tmp/${unit#scx_}.log
	printf '[Unit]\nStartLimitBurst=3\n[Service]\nStandardError=append:%s\n' "$log" >/run/systemd/system/$unit.service.d/log.conf
done

main_pid() { systemctl show -p MainPID --value "$1"; }
is_active() { [ "$(systemctl is-active "$1")" = active ]; }
is_failed() { [ "$(systemctl is-active scx_roost)" = failed ]; }
# runs: waits until the scheduler of the unit is enabled.
runs() {
	ROOST_PID=$(main_pid scx_roost)
	wait_for $LOAD_LIMIT_S state_is enabled
	state_is enabled && is_active scx_roost
}
exported() { wget -q -O - http://127.0.0.1:10849/metrics 2>/dev/null | grep -q "^roost_$1 1"; }
packaged() { $DPKG-query --show --showformat '${Version} ${db:Status-Status}' scx-roost 2>/dev/null; }

check "it is installed" $DPKG --install /tests/1.deb
[ -x /usr/bin/scx_roost ] || finish
check "dpkg says so" [ "$(packaged)" = "0.1.0-1 installed" ]
check "nothing is started" state_is disabled
check "its settings are a conffile" grep -q stats-group /etc/scx_roost/config.d/10-package.toml
check "nothing is enabled" [ "$(systemctl is-enabled scx_roost scx_roost-export 2>&1 | sort -u)" = disabled ]
check "the group is there" grep -q '^scx_roost:' /etc/group
check "the configuration is good" scx_roost config check
check "and sets nothing" sh -c '! scx_roost config show | grep -q config.toml'
check "completions and manual pages" [ -f /usr/share/man/man1/scx_roost-ctl.1.gz -a -f /usr/share/zsh/vendor-completions/_scx_roost ]

check "the scheduler starts" systemctl start scx_roost
check "it runs" runs
runs || finish
check "the exporter starts" systemctl start scx_roost-export
wait_for 20 exported up
check "it may read the statistics" exported up
old=$(main_pid scx_roost)
echo 'slice-us = 4000' >/etc/scx_roost/config.d/20-other.toml
check "it reads its files again" systemctl reload scx_roost
check "and has them" wait_for 10 sh -c 'scx_roost ctl show | grep -q "slice-us 4000"'
check "the same process" [ "$(main_pid scx_roost)" = "$old" ]
rm /etc/scx_roost/config.d/20-other.toml

sed -i 's/^#slice-us = .*/slice-us = 3210/' /etc/scx_roost/config.toml
check "it is upgraded" $DPKG --install /tests/2.deb </dev/null
check "dpkg says so" [ "$(packaged)" = "0.1.0-2 installed" ]
check "the upgraded scheduler runs" runs
check "with the settings of its file" sh -c 'scx_roost ctl show | grep -q "slice-us 3210"'
check "as another process" [ "$(main_pid scx_roost)" != "$old" ]

# A configuration that cannot be: no other start is tried.
echo 'slice-us = 1' >/etc/scx_roost/config.d/20-other.toml
systemctl restart scx_roost
wait_for 10 is_failed
sleep 7
check "a bad configuration is tried once" is_failed
check "its status says so" [ "$(systemctl show -p ExecMainStatus --value scx_roost)" = 78 ]
check "status says why" sh -c 'scx_roost status | tr -s " \n" "  " | grep -q " failed .* ago: .*slice-us 1: "'
check "it failed once" [ "$(systemctl show -p NRestarts --value scx_roost)" = 0 ]
check "an upgrade does not mind" $DPKG --install /tests/2.deb
echo '# of another package' >/etc/scx_roost/config.d/20-other.toml

# It is killed until systemd gives up. The starts before do not count.
systemctl reset-failed scx_roost
systemctl restart scx_roost
for n in 1 2 3; do
	runs || break
	kill -KILL "$(main_pid scx_roost)"
	[ $n = 3 ] || { sleep 6 && echo "# started again: $n"; }
done
wait_for 10 is_failed
check "it was started again twice" [ $n = 3 ]
check "then it has failed" is_failed
sed 's/^/# note: /' $NOTE
check "status says so" sh -c 'scx_roost status | grep -q "  failed    it was killed .* or it crashed"'
wait_for 5 exported failed
check "the exporter reports it" exported failed

systemctl reset-failed scx_roost
check "it starts again" systemctl start scx_roost
check "it runs again" runs
wait_for 5 exported up
check "the exporter sees it" exported up

echo 1 >/proc/sys/kernel/sysrq
echo S >/proc/sysrq-trigger
wait_for 10 is_failed
sleep 7
check "after SysRq-S it is not started again" state_is disabled
check "status says so" sh -c 'scx_roost status | grep -q "  failed    .* ago: SysRq-S ended"'

systemctl reset-failed scx_roost
systemctl start scx_roost
check "it runs before it is removed" runs
check "it is enabled before it is removed" systemctl --quiet enable scx_roost
scx_roost ctl set --set slice-us=3000 >/dev/null
check "ctl save" scx_roost ctl save
check "it is removed" $DPKG --remove scx-roost
check "the kernel's own scheduler runs" state_is disabled
check "nothing runs it" sh -c '! pidof scx_roost'
check "nor is it enabled" sh -c '! find /etc/systemd | grep roost'
check "settings stay" grep -q 3210 /etc/scx_roost/config.toml
check "settings stay" [ -f /etc/scx_roost/config.d/90-ctl.toml ]
check "no note and no control socket is left" [ ! -e $NOTE -a ! -e /run/scx/root/ctl ]
check "it is purged" $DPKG --purge scx-roost
check "what others put there stays" [ "$(find /etc/scx_roost -type f)" = /etc/scx_roost/config.d/20-other.toml ]
rm -r /etc/scx_roost
check "dpkg knows it no longer" [ -z "$(packaged)" ]
rm -r /run/systemd/system/scx_roost*.d
left=$(find / -xdev -name '*scx*roost*' | sort | diff /tmp/files - | tr '\n' ' ')
check "nothing is left ($left)" [ -z "$left" ]
mv /tmp/scx_roost /bin/
finish
