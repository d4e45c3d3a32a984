# SPDX-License-Identifier: GPL-2.0-only
# What a period of the daemon costs in instructions, its own and the kernel's for it, with everything that it may sample.
# topology: 8 64
# accel: icount
# timeout: 120
. /tests/lib.sh
# A third more than was measured (docs/userspace.md): so many a period, and so many for each CPU.
LIMIT=350000 LIMIT_CPU=14000
FREQS=/tmp/freqs
mkdir -p $FREQS /sys/fs/cgroup/x
for cpu in $(seq 0 $((NCPU - 1))); do echo 2000000 >$FREQS/cpu"$cpu"; done
start_roost --freq-source $FREQS --freq-threshold 1200000 --enable delay_migration --enable avg_idle_scan
# Rules about cgroups keep its naps at 0.1 s, and samples as frequent as under work.
scx_roost ctl rules add --cgroup /sys/fs/cgroup/x --arm default >/dev/null
sleep 3
# The clock is counted in instructions (-icount shift=1: 2 ns each), by all CPUs: but for the daemon they are idle.
NS_PER_INSTRUCTION=2
ran() { cat /proc/$ROOST_PID/task/*/schedstat | awk '{ ns += $1 } END { printf "%.0f", ns }'; }
totals >/tmp/before
ns=$(ran)
sleep 10
ns=$(($(ran) - ns))
totals >/tmp/after
looks=$(($(counter periods /tmp/after) - $(counter periods /tmp/before)))
check "about ten looks a second (got $looks in 10 s)" within 80 110 "$looks"
cost=$((ns / NS_PER_INSTRUCTION / looks))
limit=$((LIMIT + NCPU * LIMIT_CPU))
check "a period of 0.1 s takes $cost instructions, of at most $limit" within 1 $limit "$cost"
rmdir /sys/fs/cgroup/x
stop_roost
finish
