# SPDX-License-Identifier: GPL-2.0-only
# ab tells the truth. The same variant twice is not better, and a scheduler that is slow on purpose
# is worse. A comparison of the kernel's own scheduler with ours ends. Afterwards
# the machine has its own scheduler.
# topology: 4
# accel: icount
# timeout: 900
# needs: faults
. /tests/lib.sh
switches="stress-ng -q --switch 2 --switch-ops 300"
shows() { sed 's/^/# /' $AB_LOG; }

# The same in other words. At a level of 5 %, one comparison in twenty finds a difference that is
# not there, and each change of the code is another comparison. Two in a row are one in 400.
no_difference() {
	ab_anew
	check "the same is compared with seed $1" ab --variant mainline --variant mainline+prev_idle=on -n 12 --seed $1 -- $switches
	shows
	said=$(verdict 'mainline+prev_idle=on')
	case $said in inconclusive | equivalent) ;; *) false ;; esac
}
no_difference 1 || no_difference 2
check "a difference is not found twice in a row" [ $? = 0 ]
check "state is disabled" state_is disabled
ab_anew
check "one that spins at each wakeup is compared" ab --variant mainline --variant scx:scx_roost_spin -n 6 --warmups 0 --seed 2 -- $switches
shows
said=$(verdict scx:scx_roost_spin)
check "it is worse ($said)" [ "$said" = worse ]
check "state is disabled" state_is disabled
eevdf_and_roost() {
	ab_anew
	check "eevdf and roost: $1" ab --variant eevdf --variant roost -n 6 --warmups 0 -- "$@"
	said=$(verdict roost)
	check "it comes to a verdict ($said)" [ -n "$said" ]
	check "state is disabled" state_is disabled
}
eevdf_and_roost hackbench -p -g 2 -f 4 -l 40
if [ "$TIMES" -gt 1 ]; then
	eevdf_and_roost sh -c 'seq 20000 | gzip | md5sum'
	# shellcheck disable=SC2086 # words
	eevdf_and_roost $switches
fi
shows
finish
