# SPDX-License-Identifier: GPL-2.0-only
# 'topology' finds the CPUs, cores, LLCs and nodes that the kernel shows.
# topology: 1 4 8 2node 64
# accel: icount
# timeout: 60
. /tests/lib.sh
SYS=/sys/devices/system
scx_roost topology | sed 's/^/# /'
scx_roost topology --json >/tmp/json
check "exit status is 0" scx_roost topology >/dev/null

# many FILES...: how many different contents
many() { cat "$@" 2>/dev/null | sort -u | wc -l; }
found() { grep -o "\"$1\":" /tmp/json | wc -l; }
check "CPUs" [ "$(found siblings)" = "$NCPU" ]
cores=$(many $SYS/cpu/cpu*/topology/core_cpus_list)
check "cores" grep -q "\"nr_cores\": *$cores\b" /tmp/json
check "LLCs" [ "$(found kind)" = "$(many $SYS/cpu/cpu*/cache/index3/shared_cpu_list)" ]
check "nodes" [ "$(found first_llc)" = "$(ls -d $SYS/node/node* | wc -l)" ]
finish
