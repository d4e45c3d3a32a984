# SPDX-License-Identifier: GPL-2.0-only
# Under sudo ab's command runs as the invoking user, with their home, and the written files are
# theirs. With --user root it runs as root.
# topology: 4
# accel: tcg
# timeout: 200
. /tests/lib.sh
export SUDO_UID=65534 SUDO_GID=65534 SUDO_USER=nobody
is_of() { [ "$(stat -c %u /tmp/who $AB_RESULT | tr '\n' ' ')" = "$1 65534 " ] && rm -f /tmp/who; }
for scope in machine workload; do
	check "under sudo" ab --scope $scope --variant mainline --variant mainline+prev_idle=on -n 3 \
		--warmups 0 -- sh -c 'id -u >/tmp/who; echo $HOME >>/tmp/who'
	check "the command has the caller's home" grep -q '^/$' /tmp/who
	check "what it writes is theirs, and so is the result" is_of 65534
	ab_anew
done
check "root on request" ab --user root --variant eevdf --variant mainline -n 3 --warmups 0 -- sh -c 'id -u >/tmp/who'
check "what it writes is root's" is_of 0
unset SUDO_UID SUDO_GID SUDO_USER
ab_anew
finish
