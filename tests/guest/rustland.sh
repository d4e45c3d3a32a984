# SPDX-License-Identifier: GPL-2.0-only
# Decisions in userspace (--backend rust): what it refuses, what it counts, whether it uses all
# CPUs, and how it ends. Tests with a line '# rustland:' run over it too.
# topology: 4
# accel: icount
# timeout: 200
# needs: rustland
# long: yes
. /tests/lib.sh

scx_roost --enable util_fits >/tmp/out 2>&1
check "a feature that needs utilisation is refused" [ $? = 1 ]
check "with the reason" grep -q "has no util_fits: utilisation is not known" /tmp/out
scx_roost --rescue-us 5000 >/tmp/out 2>&1
check "so is a tunable without effect" [ $? = 1 ]
scx_roost --cpuperf off >/tmp/out 2>&1
check "so is an option of frequencies" [ $? = 1 ]

start_roost
check "the kernel names it" grep -q '^roost_rust' $SCX/root/ops
stress-ng -q --switch 2 --switch-ops 2000
totals >/tmp/totals
for name in prev_core enq_idle placed_idle_core; do
	check "it counts $name ($(counter $name /tmp/totals))" [ "$(counter $name /tmp/totals)" -gt 100 ]
done
check "status says what runs" sh -c "scx_roost status | grep -q 'runs: preset roost'"
before=$(idle_ticks)
hog -w 0 -t 2 n=4 >/dev/null
idle=$(($(idle_ticks) - before))
check "four hogs keep four CPUs busy (idle for $idle of 800 ticks)" [ $idle -lt 120 ]
# What it ran alone is no debt to the tasks that come later: it is light, so its turn comes late.
probe -n 19 spin 6 1000 >/tmp/light &
light=$!
sleep 1.5
hog -w 0 -t 3 n=8 >/dev/null
wait $light
light=$?
cat /tmp/light
check "beside hogs that come later, a light task waits for no second" [ $light = 0 ]
scx_roost ctl set --disable wide_idle >/tmp/out 2>&1
check "its settings cannot be changed" [ $? = 1 ]
check "scheduler still enabled" roost_enabled
check "stop ends it" scx_roost stop

# It is alone in a group, the reader of its messages goes, and SysRq-S ends it.
CG=/sys/fs/cgroup
echo +memory >$CG/cgroup.subtree_control
mkdir $CG/box
mkfifo /tmp/messages
cat /tmp/messages >$LOG &
reader=$!
(echo 0 >$CG/box/cgroup.procs && exec scx_roost) >/tmp/messages 2>&1 &
ROOST_PID=$!
wait_for $LOAD_LIMIT_S enabled_or_gone
check "it runs in a group" roost_enabled
roost_enabled || finish
kill $reader
echo 1 >/proc/sys/kernel/sysrq
echo S >/proc/sysrq-trigger
wait $ROOST_PID
rc=$?
check "SysRq-S: the exit status tells (got $rc)" [ $rc = 70 ]
scx_roost status >/tmp/out
check "and status" grep -q '  failed    .* ago: SysRq-S ended the scheduler: ' /tmp/out
rmdir $CG/box
finish
