# SPDX-License-Identifier: GPL-2.0-only
# A group at its limit holds no lock of the kernel for which others wait: a task writes a byte to a
# file to which tasks of the group write much, and programs start beside 60 that start in the group.
# topology: 2
# accel: icount
# timeout: 240
. /tests/lib.sh
grep -q bpf_task_work_schedule_resume /sys/kernel/btf/vmlinux ||
	skip "before Linux 6.18 no BPF program hears that a task returns to user mode"
CG=/sys/fs/cgroup/lim
mkdir $CG
in_group() { (echo 0 >$CG/cgroup.procs && exec "$@"); }
# The longest write outside, and the longest of some starts outside, us.
waits() {
	echo 10000 100000 >$CG/cpu.max
	for _ in 1 2; do in_group writes /tmp/file 262144 0 5000 >/dev/null & done
	sleep 1
	writes /tmp/file 1 5000 4000 | tee "/tmp/$1-writes"
	wait_writers
	echo 5000 100000 >$CG/cpu.max
	for i in $(seq 60); do in_group writes "/tmp/own$i" 262144 0 3000 >/dev/null & done
	sleep 1
	starts | tee "/tmp/$1-starts"
	wait_writers
	echo max >$CG/cpu.max
}
wait_writers() { for pid in $(pidof writes); do kill -9 "$pid"; done; sleep 1; }
# Starts and the longest of them, us, over 3 s.
starts() {
	n=0 longest=0 end=$(($(now) + 3000000))
	while [ "$(now)" -lt $end ]; do
		begin=$(now)
		sh -c :
		took=$(($(now) - begin))
		n=$((n + 1))
		[ $took -le $longest ] || longest=$took
	done
	echo "$n $longest"
}
now() { read -r up _ </proc/uptime && echo "${up%.*}${up#*.}0000"; }
# longest WHICH: at most twice EEVDF's and 20 ms; /proc/uptime has steps of 10 ms.
longest() {
	paste -d' ' "/tmp/eevdf-$1" "/tmp/roost-$1" | awk -v what="$1" '
		{ printf "# %s: EEVDF %d, longest %d us; here %d, %d us\n", what, $1, $2, $3, $4
		  exit !($4 <= 2 * $2 + 20000 && $3 >= $1 / 2) }'
}
used_ms() { scx_roost ctl show --limits | sed -n 's/.* used \([0-9]*\) ms.*/\1/p'; }
sleep 4
waits eevdf
start_roost
waits roost
check "writes outside wait as long as under EEVDF" longest writes
check "programs outside start as fast" longest starts
echo 10000 100000 >$CG/cpu.max
for _ in 1 2 3; do in_group hog -t 12 n=1 >/dev/null & done
sleep 1
begin=$(now) before=$(used_ms)
sleep 8
used=$(($(used_ms) - before)) due=$((($(now) - begin) / 10000))
check "the limit holds within 5 % (due $due ms, got $used)" within $((due * 95 / 100)) $((due * 105 / 100)) $used
stop_roost
finish
