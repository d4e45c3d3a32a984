# SPDX-License-Identifier: GPL-2.0-only
# A change of affinity, policy or weight does not restart a task's wait: none waits for a quarter of
# the watchdog's 10 s.
# topology: 2
# accel: icount
# timeout: 200
# rustland: 2
. /tests/lib.sh
start_roost
hog -w 0 -t 120 cpus=0,n=12 cpus=1,n=12 >/dev/null &
sleep 0.5

# stirred WAY EVERY_MS PROBE...
stirred() {
	way=$1 every=$2
	shift 2
	probe "$@" spin 9 2500 1 >/tmp/probe &
	victim=$!
	sleep 0.1
	stir $way $every $victim >/tmp/stir &
	wait $victim
	rc=$?
	cat /tmp/probe
	wait $!
	check "the longest wait is at most 2.5 s: $way changes every $every ms ($*)" [ $rc = 0 ]
	check "the scheduler stays: $way" roost_enabled
	roost_enabled || start_roost
}
for way in affinity policy nice stop; do
	stirred $way 300 -i
done
stirred affinity 5 -n 19
killall hog
stop_roost
finish
