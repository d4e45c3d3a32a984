# SPDX-License-Identifier: GPL-2.0-only
# No CPU stays idle while tasks wait that may run there.
# topology: 8
# accel: icount
# timeout: 120
. /tests/lib.sh
start_roost
hog -w 1 -t 6 n=12 >/tmp/hog.out &
HOG=$!
sleep 2
before=$(idle_ticks)
sleep 4
ticks=$(($(idle_ticks) - before))
wait $HOG
cat /tmp/hog.out
check "12 free hogs leave 8 CPUs no idle time (got $ticks of 3200 ticks)" within 0 32 $ticks
# Short kernel tasks cost an emulated CPU milliseconds, hence the wide limit. Two hogs on one CPU
# would be off by 50 %.
check "8 hogs have a CPU each" hog -w 1 -t 4 -p 45 n=1 n=1 n=1 n=1 n=1 n=1 n=1 n=1
stop_roost
finish
