# SPDX-License-Identifier: GPL-2.0-only
# Every machine: it loads; 'topology' and 'status' say what the kernel shows; it stays enabled under
# a mixed load whose tasks keep changing their affinity; a CPU goes and comes; it ends.
# Keep the counts that are no power of two: where the count is one, a verifier accepts bad indexes.
# topology: 1 2 3 5 7 20 48 3:1x1x2 3x2x2 2x6x2 2node 64 100 130 200
# topology: 12+maxcpus=5 12+nr_cpus=9 3x2x2+nosmt 6+spare=6 5+nomemory 5+nocpus
# always: 3 3x2x2 5+nocpus
# odd: 3 3x2x2 5+nocpus
# accel: icount
# timeout: 180
# long: 64 100 130 200
# rustland: 1 3 3x2x2 2node
. /tests/lib.sh
SYS=/sys/devices/system
scx_roost topology | sed 's/^/# /'
scx_roost topology --json >/tmp/json
check "topology ends with 0" [ $? = 0 ]

# many FILES...: how many different contents
many() { cat "$@" 2>/dev/null | sort -u | wc -l; }
found() { grep -o "\"$1\":" /tmp/json | wc -l; }
check "CPUs" [ "$(found siblings)" = "$NCPU" ]
cores=$(many $SYS/cpu/cpu*/topology/core_cpus_list)
check "cores" grep -q "\"nr_cores\": *$cores\b" /tmp/json
# kernel: match_llc(): a cache that nodes share is an LLC of each.
each_llc() {
	for cache in $SYS/cpu/cpu*/cache/index3; do
		cpu=${cache%/cache/*}
		echo $cpu/node* "$(cat $cache/shared_cpu_list)" | sed "s:$cpu/::"
	done
}
check "LLCs" [ "$(found kind)" = "$(each_llc | sort -u | wc -l)" ]
check "nodes that have CPUs" [ "$(found first_llc)" = "$(cat $SYS/node/node*/cpulist | grep -c .)" ]

start_roost
# The affinity stressor ends its children by SIGKILL, also in the middle of a count
# (stress_affinity_reap). Its count is then "untrustworthy", exit status 7. Nothing here reads the
# count. A worker that fails has status 2, which stays a failure.
stress-ng -q --cpu 2 --fork 2 --pipe 2 --affinity 4 --yield 2 --timer 1 -t $TIMES 2>/tmp/stress
status=$?
cat /tmp/stress
[ $status = 7 ] && ! grep -v 'affinity: WARNING: bogo-ops counter in non-ready state' /tmp/stress && status=0
check "stress-ng ends well (status $status)" [ $status = 0 ]
scx_roost status >/tmp/status
check "status counts the CPUs" grep -q "[^0-9]$NCPU CPUs online" /tmp/status
if [ "$NCPU" -gt 1 ]; then
	last=$(sed 's/.*[,-]//' $SYS/cpu/online)
	turn $last 0
	turn $last 1
fi
stop_roost
finish
