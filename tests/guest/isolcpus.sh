# SPDX-License-Identifier: GPL-2.0-only
# With isolcpus= the kernel loads no sched_ext scheduler. 'doctor' and the start report it first.
# topology: 4
# accel: tcg
# timeout: 60
# append: isolcpus=2,3
. /tests/lib.sh
check "the kernel isolates CPUs 2 and 3" [ "$(cat /sys/devices/system/cpu/isolated)" = 2-3 ]
scx_roost doctor >/tmp/doctor 2>&1
check "doctor: exit status is 1" [ $? = 1 ]
check "it says why" grep -q '^FAIL *isolation.*isolcpus=, which isolates CPUs 2-3' /tmp/doctor
scx_roost >$LOG 2>&1
check "a start fails" [ $? = 1 ]
check "it says the same" grep -q 'isolcpus=, which isolates CPUs 2-3' $LOG
check "the kernel was not asked" [ -z "$(dmesg | grep 'Not compatible')" ]
finish
