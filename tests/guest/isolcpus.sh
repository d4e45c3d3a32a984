# SPDX-License-Identifier: GPL-2.0-only
# Kernels that load no sched_ext scheduler: with isolcpus=, or locked down for confidentiality.
# 'doctor' and the start say so first.
# topology: 4
# accel: tcg
# timeout: 60
# append: isolcpus=2,3 lockdown=confidentiality
. /tests/lib.sh
check "the kernel isolates CPUs 2 and 3" [ "$(cat /sys/devices/system/cpu/isolated)" = 2-3 ]
scx_roost doctor >/tmp/doctor 2>&1
check "doctor: exit status is 1" [ $? = 1 ]
check "it says why" grep -q '^FAIL *isolation.*isolcpus=, which isolates CPUs 2-3' /tmp/doctor
check "and that the kernel is locked down" grep -q '^FAIL *lockdown.*confidentiality' /tmp/doctor
scx_roost >$LOG 2>&1
check "a start fails" [ $? = 1 ]
check "it says the same" grep -q 'isolcpus=, which isolates CPUs 2-3' $LOG
check "the kernel was not asked" [ -z "$(dmesg | grep 'Not compatible')" ]
finish
