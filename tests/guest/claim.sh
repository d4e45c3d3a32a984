# SPDX-License-Identifier: GPL-2.0-only
# Wakeups at one instant choose the same idle CPU without claims, and different ones with claims. A
# special build spins between the look at a CPU and the insertion there, so that the race happens.
# How often it happens without the spin is printed.
# topology: 8
# accel: icount
# timeout: 240
# always: yes
# needs: faults
. /tests/lib.sh
# Each LLC has two wakers (one core) and two idle CPUs: 16 rounds are 64 wakeups for 64 idle CPUs.
ROUNDS=16
WAKERS="0 1 4 5"

# stacked ARGS...: runs with these arguments; sets $stacked to the number of stacked tasks, and
# writes all counters to /tmp/totals
stacked() {
	start_roost "$@"
	check "64 wakeups at 16 instants ($*)" stack $ROUNDS $WAKERS
	stop_roost
	stacked=$(counter stacked /tmp/totals)
}

# sum COUNTER...: their sum
sum() {
	total=0
	for name in "$@"; do total=$((total + $(counter "$name" /tmp/totals))); done
	echo $total
}

no_claim_lost() {
	set=$(counter claim_set /tmp/totals)
	left=$((set - $(sum claim_clear_run claim_clear_idle claim_expired claim_release)))
	echo "# $set claims, $left of them stand; $(counter claim_seen /tmp/totals) seen by others," \
		"$(counter claim_release /tmp/totals) given back"
	[ "$set" -ge 64 ] && within 0 "$NCPU" "$left"
}

# A third task that comes and goes on a claimed CPU during the spin ends a plain claim, as in the
# source. The spin is a thousand times as long as the window that it stands for: in 3 of 15 runs one
# task was stacked. Without claims 30 to 40 are.
MET=4

stacked --preset mainline
echo "# without the spin $stacked tasks are stacked"

scx_roost() { exec scx_roost_spin "$@"; }
stacked --preset mainline
check "without claims tasks are stacked (got $stacked)" [ "$stacked" -ge $ROUNDS ]
check "and nothing is claimed" [ "$(counter claim_set /tmp/totals)" = 0 ]
# The spin lasts as long as a claim does by default.
stacked --preset mainline --enable claim --claim-ttl-us 100000
check "with claims none is (got $stacked)" [ "$stacked" = 0 ]
check "every claim has ended, or stands" no_claim_lost
stacked --preset patra
check "with the source's plain claims none but $MET at most (got $stacked)" within 0 $MET "$stacked"
stacked --preset mainline --enable claim --claim-ttl-us 100000 --enable core_claim
check "with all of claim's switches none is (got $stacked)" [ "$stacked" = 0 ]
check "every claim has ended, expired, or stands" no_claim_lost
stacked --preset roost --claim-ttl-us 100000
check "with the preset roost none is (got $stacked)" [ "$stacked" = 0 ]
finish
