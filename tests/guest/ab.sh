# SPDX-License-Identifier: GPL-2.0-only
# ab tells the truth. The same variant twice is not better, and a scheduler that is slow on purpose
# is worse. A comparison of the kernel's own scheduler with ours on three workloads ends. Afterwards
# the machine has its own scheduler.
# topology: 4
# accel: icount
# timeout: 900
# needs: faults
. /tests/lib.sh
# verdict VARIANT: its verdict on the first metric
verdict() { sed -n "s/^  $1 .*  \([a-z ]*\)\(:.*\)*$/\1/p" $AB_LOG | head -n 1; }
switches="stress-ng -q --switch 2 --switch-ops 300"
shows() { sed 's/^/# /' $AB_LOG; }

check "the same in other words is compared" ab --variant mainline --variant mainline+prev_idle=on -n 12 --seed 1 -- $switches
shows
said=$(verdict 'mainline+prev_idle=on')
check "no difference is found ($said)" [ "$said" = inconclusive -o "$said" = equivalent ]
check "state is disabled" state_is disabled
ab_anew
check "one that spins at each wakeup is compared" ab --variant mainline --variant scx:scx_roost_spin -n 6 --warmups 0 --seed 2 -- $switches
shows
said=$(verdict scx:scx_roost_spin)
check "it is worse ($said)" [ "$said" = worse ]
check "state is disabled" state_is disabled
for workload in "hackbench -p -g 2 -f 4 -l 40" "sh -c 'seq 20000 | gzip | md5sum'" "$switches"; do
	ab_anew
	eval check "'eevdf and roost: ${workload%% *}'" ab --variant eevdf --variant roost -n 6 --warmups 0 -- $workload
	said=$(verdict roost)
	check "it comes to a verdict ($said)" [ -n "$said" ]
	check "state is disabled" state_is disabled
done
shows
finish
