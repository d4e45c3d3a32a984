# SPDX-License-Identifier: GPL-2.0-only
# Arrivals end idle periods. Searches that are not worth an idle period are skipped, and waiting
# tasks are fetched nevertheless. Scans at wakeups are bounded by idle periods.
# topology: 8
# accel: icount
# timeout: 300
. /tests/lib.sh
count_of() { totals >/tmp/totals && counter "$1" /tmp/totals; }
# Children end the idle periods of CPUs 2 to 7 soon. The waiting tasks may run on CPUs 0 and 1 only,
# so those CPUs search without success.
short_idles() {
	hog -w 0 -t 60 cpus=0-1,n=4 >/dev/null &
	HOGS=$!
	rounds="1 2 3 4 5"
	[ "$features" != "--disable avg_idle" ] || rounds=1
	for _ in $rounds; do
		forks 1000 2
		[ "$(count_of steal_skipped)" = 0 ] || break
	done
	kill $HOGS
	wait $HOGS 2>/dev/null
}
# Whether an idle period is short enough varies, 0 to 5 per start: it may need another start.
begin() {
	# shellcheck disable=SC2086 # an option and its argument
	start_roost --preset mainline $features
	short_idles >/tmp/forks.out
	skipped=$(count_of steal_skipped)
}
for features in "--disable avg_idle" "--enable avg_idle" "--enable avg_idle_every"; do
	begin
	for _ in 1 2 3; do
		[ "$features" = "--disable avg_idle" ] || [ "$skipped" -gt 0 ] && break
		stop_roost
		begin
	done
	if [ "$features" = "--disable avg_idle" ]; then
		check "$features: every search is made" [ "$skipped" = 0 ]
	else
		check "$features: searches were left out ($skipped)" [ "$skipped" -gt 0 ]
	fi
	for end in wakeup fork; do
		n=$(count_of avg_idle_$end)
		check "$features: idle periods were ended by a $end ($n)" [ "$n" -gt 0 ]
	done
	hog -w 1 -t 2 n=12 >/tmp/hog.out &
	HOGS=$!
	sleep 1.5
	before=$(idle_ticks)
	sleep 1
	ticks=$(($(idle_ticks) - before))
	wait $HOGS
	check "$features: 12 free hogs leave 8 CPUs no idle time (got $ticks of 800 ticks)" within 0 16 $ticks
	stop_roost
done

# avg_idle_scan, on a machine described as one cache of eight cores. A cache of four CPUs is always
# searched completely.
one_cache() {
	mkdir -p "$1"
	echo 0-7 | tee "$1/possible" >"$1/online"
	for cpu in 0 1 2 3 4 5 6 7; do mkdir "$1/cpu$cpu"; done
}
# scans COMMAND...: counts the scans meanwhile that were bounded (bound), those cut short (cut), and
# those not bounded because no recent value was known (unknown)
scans() {
	before="$(count_of idle_scan_bound) $(count_of idle_scan_out) $(count_of idle_scan_unknown)"
	"$@"
	after="$(count_of idle_scan_bound) $(count_of idle_scan_out) $(count_of idle_scan_unknown)"
	# shellcheck disable=SC2046,SC2086 # numbers
	set -- $before $after
	bound=$(($4 - $1))
	cut=$(($5 - $2))
	unknown=$(($6 - $3))
}
# Userspace is stopped while the command runs, after it has published short idle periods.
and_stopped() {
	"$@" &
	sleep 0.15
	kill -STOP $ROOST_PID
	wait $!
	kill -CONT $ROOST_PID
}
one_cache /tmp/one/devices/system/cpu
start_roost --sysfs /tmp/one --preset mainline --enable avg_idle_scan
scans naps 12 400 3000 1000
check "long idle periods bound no scan (got $bound)" [ "$bound" = 0 ]
scans naps 12 400 60 20
check "short ones bound scans (got $bound)" [ "$bound" -gt 0 ]
check "and cut some (got $cut)" [ "$cut" -gt 0 ]
scans and_stopped naps 12 1000 60 20
check "values of userspace expire when it is stopped ($bound bound, then $unknown not)" [ "$unknown" -gt "$bound" ]
scx_roost ctl set --disable avg_idle_scan
scans naps 12 400 60 20
check "nor with the feature off (got $bound, $unknown unknown)" [ $((bound + unknown)) = 0 ]
stop_roost
finish
