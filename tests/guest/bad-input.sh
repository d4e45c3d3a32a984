# SPDX-License-Identifier: GPL-2.0-only
# Bad input: one sentence, status 1, nothing left behind.
# topology: 8
# accel: icount
# timeout: 120
. /tests/lib.sh
# refused WHAT COMMAND...
refused() {
	case_=$1
	shift
	"$@" >/tmp/out 2>&1
	rc=$?
	sed 's/^/# said: /' /tmp/out
	check "$case_: exit status is 1 (got $rc)" [ $rc = 1 ]
	check "$case_: one sentence" [ "$(wc -l </tmp/out)" = 1 ]
	check "$case_: not loaded" state_is disabled
	check "$case_: no socket and no pinned map left" [ -z "$(find /run -type s; find /sys/fs/bpf -mindepth 1)" ]
}
mkdir -p /tmp/empty
refused "unknown preset" timeout 20 scx_roost --preset no-such-preset
refused "no such sysfs root" timeout 20 scx_roost --sysfs /no/such/dir
refused "sysfs root without CPUs" timeout 20 scx_roost --sysfs /tmp/empty
refused "not root" su nobody -s /bin/sh -c "timeout 20 scx_roost"
finish
