# SPDX-License-Identifier: GPL-2.0-only
# After suspend to memory the scheduler runs again. Suspends are counted and are not confused with a
# changed date.
# topology: 2
# accel: tcg
# timeout: 120
# own-boot: yes
. /tests/lib.sh
grep -q mem /sys/power/state || skip "this kernel offers no suspend to memory (/sys/power/state: $(cat /sys/power/state))"
# told SUSPENDS JUMPS
told() { totals >/tmp/totals && [ "$(counter suspends /tmp/totals) $(counter clock_jumps /tmp/totals)" = "$1 $2" ]; }
# tells SUSPENDS JUMPS: these counts, and the same a second later
tells() {
	wait_for 5 told "$1" "$2"
	sleep 1
	told "$1" "$2"
	check "it has counted $1 suspends, and $2 dates (got $(counter suspends /tmp/totals), $(counter clock_jumps /tmp/totals))" told "$1" "$2"
}
# The emulator may wake the machine at once: its clocks do not show a suspend without length, and
# the daemon cannot count one.
suspends() {
	for try in 1 2 3 4; do
		before=$(asleep)
		rtcwake -m mem -s 3 || return 1
		slept=$(($(asleep) - before))
		[ $slept -lt 100 ] || return 0
		echo "# woken at once, after $slept ms: try $try"
	done
	return 1
}
start_roost
tells 0 0
for n in 1 2; do
	check "suspend and wake by the clock" suspends
	wait_for $RESTART_LIMIT_S roost_enabled
	check "enabled again within $RESTART_LIMIT_S s, same process" roost_enabled
	tells $n 0
done
check "the machine is alive" forks 200 2
check "no date was set (clock_jump)" [ "$(condition clock_jump /tmp/totals)" = 0 ]
date -s "@$(($(date +%s) + 3600))" >/dev/null
tells 2 1
check "its condition lasts" [ "$(condition clock_jump /tmp/totals)" = 1 ]
check "it says by how much" grep -q '"clock_jump":{"active":1,"count":1,"text":"the wall clock was set by +3[56][0-9][0-9]' /tmp/totals
date -s "@$(($(date +%s) - 3600))" >/dev/null
tells 2 2
check "still one condition, of another date" grep -q '"clock_jump":{"active":1,"count":1,"text":"the wall clock was set by -3[56][0-9][0-9]' /tmp/totals
check "scheduler still enabled" roost_enabled
end_roost INT 0
finish
