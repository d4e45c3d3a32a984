# SPDX-License-Identifier: GPL-2.0-only
# Shares of one CPU follow nice levels within 10 %.
# topology: 1 4
# accel: icount
# timeout: 120
# long: 1
. /tests/lib.sh
start_roost
# Weights are those of the kernel's sched_prio_to_weight.
check "nice -5, 0, 5, 10" hog -t 5 -p 10 cpus=0,nice=-5,weight=3121 cpus=0,nice=0,weight=1024 \
	cpus=0,nice=5,weight=335 cpus=0,nice=10,weight=110
check "three of nice 0 against three of nice 3" hog -t 4 -p 10 cpus=0,n=3 cpus=0,n=3,nice=3,weight=526
stop_roost
finish
