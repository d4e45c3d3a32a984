# SPDX-License-Identifier: GPL-2.0-only
# Bad input: one sentence, an exit status, nothing left behind.
# topology: 8
# accel: icount
# timeout: 120
. /tests/lib.sh
# refused STATUS WHAT COMMAND...
refused() {
	status=$1 case_=$2
	shift 2
	"$@" >/tmp/out 2>&1
	rc=$?
	sed 's/^/# said: /' /tmp/out
	check "$case_: exit status is $status (got $rc)" [ $rc = $status ]
	check "$case_: one sentence" [ "$(wc -l </tmp/out)" = 1 ]
	check "$case_: not loaded" state_is disabled
	check "$case_: no socket and no pinned map left" [ -z "$(find /run -type s; find /sys/fs/bpf -mindepth 1)" ]
}
mkdir -p /tmp/empty
refused 2 "unknown preset" timeout 20 scx_roost --preset no-such-preset
refused 1 "no such sysfs root" timeout 20 scx_roost --sysfs /no/such/dir
refused 1 "sysfs root without CPUs" timeout 20 scx_roost --sysfs /tmp/empty
refused 1 "not root" su nobody -s /bin/sh -c "timeout 20 scx_roost"
finish
