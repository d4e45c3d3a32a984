# SPDX-License-Identifier: GPL-2.0-only
# ab compares decisions in userspace with those in BPF: each run is on the scheduler of its variant,
# and the machine has its own scheduler afterwards. A build without the feature says so.
# topology: 4
# accel: icount
# timeout: 400
# needs: rustland
# long: yes
. /tests/lib.sh
# The scheduler that is attached while the command runs, and some wakeups.
cat >/tmp/command.sh <<'EOF'
stress-ng -q --switch 1 --switch-ops 200
echo "{\"in_rust\": $(grep -c '^roost_rust' /sys/kernel/sched_ext/root/ops), \"in_bpf\": $(grep -c '^roost_[0-9]' /sys/kernel/sched_ext/root/ops)}"
EOF
VARIANTS="--variant roost --variant rust:roost"

/bin/scx_roost ab --result $AB_RESULT $VARIANTS -n 4 -- true >$AB_LOG 2>&1
check "a build without the feature fails (status $?)" [ $? = 2 ]
check "with one sentence" [ "$(wc -l <$AB_LOG)" = 1 ]
check "which says what to do" ab_says 'cannot decide in userspace: build it with the cargo feature rustland'
check "and measures nothing" [ ! -e $AB_RESULT ]

ab $VARIANTS -n 4 --warmups 0 --seed 1 --metric json:/in_rust --metric json:/in_bpf --metric wall -- sh /tmp/command.sh
check "it ends well (status $?)" [ $? = 0 ]
sed 's/^/# /' $AB_LOG
# runs VARIANT VALUES: it has runs, and in each the command printed that.
runs() {
	runs=$(grep '"number"' $AB_RESULT | grep "\"variant\":\"$1\"")
	[ -n "$runs" ] && ! echo "$runs" | grep -v "$2"
}
check "the result names both variants" grep -q '"variants":\["roost","rust:roost"\]' $AB_RESULT
in_bpf='"json:/in_bpf":1.0,"json:/in_rust":0.0' in_rust='"json:/in_bpf":0.0,"json:/in_rust":1.0'
check "each run in BPF is" runs roost "$in_bpf"
check "each run in Rust is" runs rust:roost "$in_rust"
check "there is a verdict on the time" [ -n "$(verdict rust:roost)" ]
ab_restored "at its end"

ab_starts $VARIANTS -n 3 --warmups 0 --seed 1 -- sleep 60
in_rust() { grep -q '^roost_rust' $SCX/root/ops 2>/dev/null; }
wait_for 100 state_is enabled
ab_interrupted

ab_starts --variant rust:roost --variant eevdf -n 6 --warmups 0 -- sh -c 'setsid sleep 60 & sleep 60'
wait_for 100 in_rust
sleep 2
kill -KILL $AB
wait $AB
ab_restored "killed while it decides"

ab --variant rust:roost+util_fits=on --variant eevdf -n 3 -- true
check "a feature that does not act fails before any run (status $?)" [ $? = 1 ]
check "with the reason" ab_says 'has no util_fits'
ab_restored "refused"
finish
