# SPDX-License-Identifier: GPL-2.0-only
# What ends a CPU's idle periods is counted; with every kind of mean, who waits is fetched.
# topology: 8
# accel: icount
# timeout: 120
. /tests/lib.sh
idle() { awk '$1 == "cpu" { print $5 + $6 }' /proc/stat; }
for features in "--disable avg_idle" "--enable avg_idle" "--enable avg_idle_every"; do
	# shellcheck disable=SC2086 # an option and its argument
	start_roost --preset mainline $features
	check "$features: forks" forks 100 2
	totals >/tmp/before
	hog -w 1 -t 3 n=12 >/tmp/hog.out &
	HOG=$!
	sleep 2
	before=$(idle)
	sleep 1
	ticks=$(($(idle) - before))
	wait $HOG
	check "$features: 12 free hogs leave 8 CPUs no idle time (got $ticks of 800 ticks)" within 0 16 $ticks
	for end in wakeup fork; do
		n=$(counter avg_idle_$end /tmp/before)
		check "$features: idle periods were ended by a $end ($n)" [ "$n" -gt 0 ]
	done
	echo "# $features: skipped $(counter steal_skipped /tmp/before)"
	[ "$features" != "--disable avg_idle" ] || check "nothing is skipped" [ "$(counter steal_skipped /tmp/before)" = 0 ]
	stop_roost
done
finish
