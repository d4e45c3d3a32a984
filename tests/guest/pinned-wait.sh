# SPDX-License-Identifier: GPL-2.0-only
# A task pinned to a CPU with 8 hogs never waits more than 100 ms.
# topology: 2
# accel: icount
# timeout: 200
. /tests/lib.sh
start_roost
hog -w 0 -t 60 cpus=1,n=8 >/dev/null &
HOG=$!
sleep 1
check "it computes, against pinned hogs" probe spin 3 100 1
check "it sleeps and wakes, against pinned hogs" probe sleep 2 100 1
kill -KILL $HOG
sleep 0.2
hog -w 0 -t 60 n=8 >/dev/null &
HOG=$!
sleep 1
check "it computes, against free hogs on both CPUs" probe spin 3 100 1
check "it sleeps and wakes, against free hogs on both CPUs" probe sleep 3 100 1
kill -KILL $HOG
stop_roost
finish
