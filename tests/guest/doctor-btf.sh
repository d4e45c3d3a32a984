# SPDX-License-Identifier: GPL-2.0-only
# A kernel whose BTF describes kfuncs wrongly: 'doctor' and the start say why in one sentence.
# topology: 8
# accel: icount
# timeout: 60
# always: yes
# kernels: 7.1
. /tests/lib.sh
scx_roost doctor >/tmp/doctor 2>&1
rc=$?
grep '^FAIL' /tmp/doctor | sed 's/^/# /'
check "doctor's exit status is 1 (got $rc)" [ $rc = 1 ]
check "doctor blames the BTF, and nothing else" [ "$(grep -c '^FAIL' /tmp/doctor)-$(grep -c '^FAIL.*BTF' /tmp/doctor)" = 1-1 ]
scx_roost >/tmp/start 2>&1
rc=$?
sed 's/^/# /' /tmp/start
check "the start's exit status is 1 (got $rc)" [ $rc = 1 ]
check "one sentence about the BTF" [ "$(wc -l </tmp/start)-$(grep -c BTF /tmp/start)" = 1-1 ]
finish
