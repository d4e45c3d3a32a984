# SPDX-License-Identifier: GPL-2.0-only
# One file of rt-app in this kernel and in the simulator, of this very machine: how wakeups were decided, of each hundred.
# topology: 8
# accel: icount
# timeout: 240
# needs: rt-app
. /tests/lib.sh
FILE=/tests/agree.json
# of PRESET: counters of both, NAME KERNEL SIMULATOR a line
agree() {
	start_roost --preset "$1"
	scx_roost ctl arms add rt --preset "$1"
	scx_roost exec --arm rt -- rt-app $FILE >/tmp/rt 2>&1
	check "rt-app runs ($?)" grep -q Exiting /tmp/rt
	totals >/tmp/totals
	sed 's/.*"rt":{"counters":{\([^}]*\)}.*/\1/' /tmp/totals | tr ',' '\n' | tr -d '"' | tr ':' ' ' | sort >/tmp/kernel
	stop_roost
	scx_roost sim $FILE --sysfs /sys --variant "$1" --seeds 1 --json >/tmp/sim
	sed 's/.*"counters":{\([^}]*\)}.*/\1/' /tmp/sim | tr ',' '\n' | tr -d '"' | tr ':' ' ' | sort >/tmp/model
	awk 'NR == FNR { model[$1] = $2; next } $2 || model[$1] { print $1, $2, model[$1] }' /tmp/model /tmp/kernel | sed "s/^/# $1: /"
}
for preset in mainline roost; do
	agree $preset
done
finish
