# SPDX-License-Identifier: GPL-2.0-only
# 'doctor' finds a machine that can run it, and names the group whose CPU limit is lost.
# topology: 8
# accel: icount
# timeout: 120
# quick: 6.12 7.3
. /tests/lib.sh
scx_roost doctor >/tmp/doctor 2>&1
rc=$?
sed 's/^/# /' /tmp/doctor
# Linux 6.17 and later report CPU limits; under PREEMPT_RT there are no timers to enforce them.
grep -q cgroup_set_bandwidth /sys/kernel/btf/vmlinux && ! grep -q PREEMPT_RT /proc/version && enforced=1
check "exit status is 0 (got $rc)" [ $rc = 0 ]
check "it has loaded the programs" grep -q '^ok *load .* nothing was attached' /tmp/doctor
lacking=0
[ "$enforced" ] || lacking=1
check "it says what this kernel lacks" [ "$(grep -c '^ok *kernel .*limits of groups' /tmp/doctor)" = $lacking ]
check "no check failed" [ "$(grep -c '^FAIL' /tmp/doctor)" = 0 ]
# without_btf WORDS: as on a kernel that is built without BTF
without_btf() { unshare -m sh -c 'mount -t tmpfs none /sys/kernel/btf && exec scx_roost "$@"' - "$@"; }
without_btf doctor >/tmp/out 2>&1
check "without BTF: it fails (got $?)" [ $? = 1 ]
check "without BTF: and says so" grep -q '^FAIL *btf' /tmp/out
without_btf topology >/tmp/out 2>&1
check "without BTF: the topology needs none (got $?)" [ $? = 0 ]
without_btf >/tmp/out 2>&1
check "without BTF: a start is refused (got $?)" [ $? = 1 ]
check "without BTF: in one line" [ "$(grep -c . /tmp/out)" = "$(grep -c -e '^scx_roost: .*BTF' -e 'INFO' /tmp/out)" ]
mkdir /sys/fs/cgroup/limited
echo "20000 100000" >/sys/fs/cgroup/limited/cpu.max
# Each call loads the programs, if nothing else fails.
scx_roost doctor --json >/tmp/json
check "it names the group with a limit" grep -q /limited /tmp/json
if [ "$enforced" ]; then
	check "and says that it is enforced" grep -q ' 1 control group is enforced' /tmp/json
	check "it may run, as JSON" grep -q '"runnable": *true' /tmp/json
	start_roost
else
	scx_roost >$LOG 2>&1
	check "the start refuses (got $?)" [ $? = 1 ]
	check "and names the group and the option" grep -q -e '--ignore-cpu-max.*/limited' $LOG
	start_roost --ignore-cpu-max
	check "so does a start that may" grep -q /limited $LOG
fi
stop_roost
finish
