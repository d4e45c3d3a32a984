# SPDX-License-Identifier: GPL-2.0-only
# Decisions in userspace: scx_roost with the cargo feature rustland and --backend rust. Other tests
# run over it, then its own: what it refuses, what it counts, and whether it uses all CPUs.
# topology: 4
# accel: icount
# timeout: 600
# needs: rustland
# long: yes
mkdir -p /tmp/rust
cat >/tmp/rust/scx_roost <<'END'
#!/bin/sh
# A run decides in userspace; commands are as they are.
case "$1" in '' | -*) exec rustland --backend rust "$@" ;; esac
exec rustland "$@"
END
chmod +x /tmp/rust/scx_roost
PATH=/tmp/rust:$PATH
export PATH

for test in forks affinity load; do
	echo "# over it: $test"
	sh /tests/$test.sh
done
. /tests/lib.sh

scx_roost --enable util_fits >/tmp/out 2>&1
check "a feature that needs utilisation is refused" [ $? = 1 ]
check "with the reason" grep -q "has no util_fits: utilisation is not known" /tmp/out
scx_roost --rescue-us 5000 >/tmp/out 2>&1
check "so is a tunable without effect" [ $? = 1 ]

start_roost
check "the kernel names it" grep -q '^roost_rust' $SCX/root/ops
stress-ng -q --switch 2 --switch-ops 2000
totals >/tmp/totals
for name in prev_core enq_idle placed_idle_core; do
	check "it counts $name ($(counter $name /tmp/totals))" [ "$(counter $name /tmp/totals)" -gt 100 ]
done
check "status says what runs" sh -c "scx_roost status | grep -q 'runs: preset roost'"
before=$(idle_ticks)
hog -w 0 -t 2 n=4 >/dev/null
idle=$(($(idle_ticks) - before))
check "four hogs keep four CPUs busy (idle for $idle of 800 ticks)" [ $idle -lt 120 ]
scx_roost ctl disable wide_idle >/tmp/out 2>&1
check "its settings cannot be changed" [ $? = 1 ]
check "scheduler still enabled" roost_enabled
check "stop ends it" scx_roost stop
finish
