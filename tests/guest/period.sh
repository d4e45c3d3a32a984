# SPDX-License-Identifier: GPL-2.0-only
# The cost of 0.1 s of the daemon in instructions, including the kernel's for it, with all samples
# on, on a busy machine.
# topology: 8 64
# accel: icount
# timeout: 120
# long: 64
. /tests/lib.sh
# A third more than measured (docs/explanation/userspace.md): instructions per period and per CPU.
LIMIT=262000 LIMIT_CPU=12600
FREQS=/tmp/freqs
mkdir -p $FREQS
for cpu in $(seq 0 $((NCPU - 1))); do echo 2000000 >$FREQS/cpu"$cpu"; done
# An idle machine is not sampled. The clock counts the instructions of all CPUs (-icount shift=1: 2
# ns each). So the load runs on the daemon's own CPU, in turn with it.
NS_PER_INSTRUCTION=2
taskset -p 1 $$ >/dev/null
start_roost --freq-source $FREQS --freq-threshold 1200000 --enable delay_migration --enable avg_idle_scan
hog -w 0 -t 40 cpus=0,n=1 >/dev/null &
HOG=$!
sleep 5
ran() { cat /proc/$ROOST_PID/task/*/schedstat | awk '{ ns += $1 } END { printf "%.0f", ns }'; }
totals >/tmp/before
ns=$(ran)
sleep 10
ns=$(($(ran) - ns))
totals >/tmp/after
looks=$(($(counter periods /tmp/after) - $(counter periods /tmp/before)))
check "it looks every 0.4 s (got $looks in 10 s)" within 20 35 "$looks"
for cpu in $(seq 0 $((NCPU - 1))); do echo 1900000 >$FREQS/cpu"$cpu"; done
all_sampled() { [ "$(scx_roost export --once | grep -cE '^roost_cpu_hertz.* 1900000000(.0)?$')" = "$NCPU" ]; }
check "frequencies are sampled" wait_for 15 all_sampled
cost=$((ns / NS_PER_INSTRUCTION / 100))
limit=$((LIMIT + NCPU * LIMIT_CPU))
check "0.1 s take $cost instructions, of at most $limit" within 1 $limit "$cost"
kill $HOG
stop_roost
finish
