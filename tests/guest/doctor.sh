# SPDX-License-Identifier: GPL-2.0-only
# 'doctor' finds a machine that can run it, and names the group whose CPU limit is lost.
# topology: 8
# accel: icount
# timeout: 60
# quick: yes
. /tests/lib.sh
scx_roost doctor >/tmp/doctor 2>&1
rc=$?
sed 's/^/# /' /tmp/doctor
check "exit status is 0 (got $rc)" [ $rc = 0 ]
check "no check failed" [ "$(grep -c '^FAIL' /tmp/doctor)" = 0 ]
check "it says so as JSON" sh -c "scx_roost doctor --json | grep -q '\"runnable\": *true'"
mkdir /sys/fs/cgroup/limited
echo "20000 100000" >/sys/fs/cgroup/limited/cpu.max
check "it names the group with a limit" sh -c "scx_roost doctor | grep -q /limited"
start_roost
check "so does the start" grep -q /limited $LOG
stop_roost
finish
