# SPDX-License-Identifier: GPL-2.0-only
# Idle periods are ended by what arrives; searches that they are not worth are left out, and who waits is fetched all the same.
# topology: 8
# accel: icount
# timeout: 240
. /tests/lib.sh
count_of() { totals >/tmp/totals && counter "$1" /tmp/totals; }
# Children end the idle periods of CPUs 2 to 7 soon, and what waits may run on CPUs 0 and 1 only: they search in vain.
short_idles() {
	hog -w 0 -t 60 cpus=0-1,n=4 >/dev/null &
	HOGS=$!
	for _ in 1 2 3 4 5; do
		forks 1000 2
		[ "$(count_of steal_skipped)" = 0 ] || break
	done
	kill $HOGS
	wait $HOGS 2>/dev/null
}
# Whether one of them is short enough differs with the course, 0 to 5 per start: another start may have to follow.
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
finish
