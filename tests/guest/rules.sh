# SPDX-License-Identifier: GPL-2.0-only
# Rules put tasks on arms: by cgroup, with and without the cpu controller, by name, and by process.
# The nearest and the strongest rule counts.
# topology: 8
# accel: icount
# timeout: 200
. /tests/lib.sh
CG=/sys/fs/cgroup
start_roost
for arm in a b c d; do
	scx_roost ctl arms add $arm --preset mainline
done

rule() { check "rule $*" scx_roost ctl rules "$@"; }
# A task that wakes every 2 ms.
waker() { probe sleep 100 100000 >/dev/null & }

# cgroups. $CG/top enables no controller below, so the cpu controller does not see moves below it.
mkdir -p $CG/top/deep $CG/other
waker
pid=$!
rule add --cgroup $CG/top --arm a
rule add --cgroup $CG/top/deep --arm b
on_arms "outside" ""
echo $pid >$CG/top/cgroup.procs
on_arms "moved in" a
echo $pid >$CG/top/deep/cgroup.procs
on_arms "moved down, without the cpu controller" b
mkdir $CG/top/deep/er
echo $pid >$CG/top/deep/er/cgroup.procs
on_arms "two below: the nearest counts" b
rule del --cgroup $CG/top/deep
on_arms "that rule is gone" a
echo $pid >$CG/other/cgroup.procs
on_arms "moved out" ""
start into $CG/top probe sleep 100 100000 >/dev/null &
on_arms "cloned into it" a
kill "$(cat $CG/top/cgroup.procs)"
wait $!
echo 0 >$CG/top/cgroup.procs
waker
two=$!
on_arms "forked within" a
echo $$ >$CG/cgroup.procs
kill $two

# A cgroup that is removed and created again is another one with the same path.
wait $two
rmdir $CG/top/deep/er $CG/top/deep $CG/top
sleep 0.3
mkdir $CG/top
sleep 0.3
echo $pid >$CG/top/cgroup.procs
on_arms "the cgroup was created again" a

# A rule about a process is stronger than one about its cgroup.
rule add --pid $pid --arm c
on_arms "by number" c
scx_roost exec --arm d -- probe sleep 100 100000 >/dev/null &
three=$!
rule add --pid $three --arm c
on_arms "exec is stronger than a rule" "c d"
kill $three
wait $three
rule del --pid $pid
on_arms "its cgroup again" a
echo $pid >$CG/cgroup.procs
on_arms "none" ""
start thread /tmp/go probe sleep 100 100000 >/dev/null &
four=$!
sleep 0.1
rule add --pid $four --arm c
touch /tmp/go
on_arms "one of its threads became the process" c
kill $four
wait $four
scx_roost exec --arm d -- start headless &
five=$!
on_arms "its first thread has ended" d
rule add --pid $five --arm c
on_arms "exec is stronger there too" d
kill $five
wait $five
start headless &
six=$!
sleep 0.1
rule add --pid $six --arm c
on_arms "a rule about a process without its first thread" c
kill $six
wait $six
rule add --pid $pid --arm c
kill $pid
wait $pid
sleep 0.3
check "a rule ends with its process" sh -c '! scx_roost ctl rules | grep pid'

# Names.
ln -s "$(command -v probe)" /tmp/worker-1
ln -s "$(command -v probe)" /tmp/idler-1
rule add --comm 'worker-?' --arm a
/tmp/worker-1 sleep 100 100000 >/dev/null &
pid=$!
/tmp/idler-1 sleep 100 100000 >/dev/null &
on_arms "by name, at exec" a
rule add --comm 'idler*' --arm b
on_arms "a rule for running processes" "a b"
rule del --comm 'idler*'
on_arms "without it" a
kill $pid
probe -c worker-2 sleep 100 100000 >/dev/null &
on_arms "another name" ""
touch /tmp/rename
on_arms "renamed" a
scx_roost ctl arms del a 2>/tmp/err
check "an arm with rules is not deleted" grep -q "arm 'a' has 2 rules: delete them first" /tmp/err
stop_roost
finish
