# SPDX-License-Identifier: GPL-2.0-only
# Pinned and free hogs on one CPU share it by weight.
# topology: 2
# accel: icount
# timeout: 120
. /tests/lib.sh
# The free hogs may run on both CPUs, but one is offline.
echo 0 >/sys/devices/system/cpu/cpu1/online
start_roost
check "two pinned, two free" hog -t 4 -p 10 cpus=0,n=1 cpus=0,n=1 cpus=0-1,n=1 cpus=0-1,n=1
check "the same with nice 5 among each" hog -t 6 -p 10 cpus=0 cpus=0,nice=5,weight=335 cpus=0-1 \
	cpus=0-1,nice=5,weight=335
stop_roost
finish
