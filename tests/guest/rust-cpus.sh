# SPDX-License-Identifier: GPL-2.0-only
# CPUs that go and come, and tasks that change what they may use, under --backend rust: each such
# change of the machine loads it again in the same process, and no task is lost.
# topology: 4
# accel: icount
# timeout: 300
# needs: rustland
# long: yes
. /tests/lib.sh
start_roost
hog -t 250 n=6 n=2,cpus=3 n=2,cpus=1 >/dev/null &
probe sleep 250 100000 >/dev/null &
sleep 1
for cpu in 3 1; do
	for on in 0 1; do
		loads=$(cat $SCX/enable_seq)
		turn $cpu $on 30
		wait_for 40 loaded_anew
		check "CPU $cpu to $on: loaded again, by the same process" loaded_anew
		roost_enabled || finish
	done
done
check "it places tasks" forks 200 2
before=$(idle_ticks)
sleep 2
idle=$(($(idle_ticks) - before))
check "the hogs keep four CPUs busy (idle for $idle of 800 ticks)" [ $idle -lt 120 ]
end_roost TERM 0
finish
