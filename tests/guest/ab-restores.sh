# SPDX-License-Identifier: GPL-2.0-only
# ab leaves the machine with its own scheduler and no process or file of its own, whatever fails:
# the workload, a scheduler, Ctrl-C, SIGKILL.
# topology: 4
# accel: tcg
# timeout: 600
. /tests/lib.sh
runs_sleep() { pidof sleep >/dev/null; }

cat >/tmp/nest.sh <<'EOF'
mkdir -p /sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup)/a/b/c
exit 3
EOF
for case in "false|the command failed" "sleep 100|did not end within 1 s" "sleep 100 &|forked away" "setsid sleep 100 & sleep 0.3|daemonised" \
	"echo 5 apples|output has no match for" "sh /tmp/nest.sh|the command failed"; do
	ab --variant mainline --variant roost -n 6 --timeout 1 --metric 'regex:took ([0-9]+)' -- sh -c "${case%%|*}"
	check "status 1: ${case%%|*}" [ $? = 1 ]
	check "reported:  ${case%%|*}" ab_says "${case#*|}"
	ab_restored "${case%%|*}"
done

ab --variant mainline --variant 'scx:sh -c "sleep 300 & exit 3"' -n 6 -- true
check "a scheduler that ends is reported" ab_says 'it ended before it was attached (exit status: 3)'
ab_restored "a scheduler that ends"

ab_starts --variant mainline --variant roost -n 6 -- sh -c 'setsid sleep 60 & sleep 60'
wait_for 60 runs_sleep
kill -KILL $AB
ab_restored "killed in a run"

ab_starts --variant "scx:sh -c 'sleep 300 & scx_roost & wait'" --variant eevdf -n 6 -- sleep 60
wait_for 60 state_is enabled
kill -KILL $AB
ab_restored "killed with a wrapped scheduler"

ab_starts --variant "scx:sh -c 'scx_roost; true'" --variant eevdf -n 6 -- sleep 60
wait_for 60 state_is enabled
sleep 1
kill -INT $AB
wait $AB
check "interrupted in a run: status 1" [ $? = 1 ]
check "interrupted in a run: how to continue is printed" ab_says 'stopped; continue with --resume and'
check "the result stays" [ -s $AB_RESULT ]
ab_restored "interrupted in a run"

ab_starts --variant mainline --variant eevdf -n 6 --seed 1 -- true
wait_for 10 test -s $AB_RESULT
sleep 0.5
kill -INT $AB
wait $AB
check "interrupted while a scheduler is loaded: this is no failure" ab_says 'stopped; continue with --resume and'
check "the result stays" [ -s $AB_RESULT ]
ab --variant mainline --variant eevdf -n 5 --resume -- true
check "another plan is not gone on with" \
	ab_says 'it is of another comparison: plan is {"fixed":6} there and {"fixed":5} here'
ab --variant mainline --variant eevdf -n 6 --timeout 60 --resume -- true
check "it goes on to its end" ab_says '6 runs of each of 2 variants'
ab_restored "interrupted while a scheduler is loaded"

ab --variant eevdf --variant mainline -n 6 -- sh -c 'scx_roost >/dev/null 2>&1 & pid=$!; sleep 20; kill -INT $pid; wait $pid'
check "a scheduler that came and went during a run is seen" ab_says 'schedulers were attached again'
ab_restored "a scheduler that came and went"

check "the command alone is on an arm" ab --scope workload --variant mainline --variant mainline+slice-us=1000 -n 6 -- sh -c 'for i in 1 2 3 4; do echo | cat; done'
check "the report names the scope" ab_says 'on the command alone'
check "its wakeups are counted" [ "$(sed -n 's/.*"placed_prev":\([0-9]*\).*/\1/p' $AB_RESULT | sort -n | tail -n 1)" -gt 0 ]
ab_restored "the command alone"
ab --scope workload --variant mainline --variant eevdf -n 6 -- true
check "the kernel's own scheduler schedules the whole machine" ab_says 'eevdf schedules the whole machine'

# counted VARIANT N: each of its runs had N CPUs.
counted() {
	runs=$(grep '"number"' $AB_RESULT | grep "\"variant\":\"$1\"")
	[ -n "$runs" ] && ! echo "$runs" | grep -v "\"json:/cpus\":$2"
}
ab_anew
check "a variant keeps the command to CPUs" \
	ab --variant eevdf --variant eevdf@cpus=0-1 --variant roost@cpus=3 -n 6 --warmups 0 --seed 1 \
	--metric json:/cpus -- sh -c 'echo "{\"cpus\": $(nproc)}"'
check "all of them" counted eevdf 4
check "two" counted eevdf@cpus=0-1 2
check "one" counted roost@cpus=3 1
ab_restored "restricted to CPUs"

start_roost
ab --variant mainline --variant eevdf -n 6 -- true
check "a foreign scheduler is not taken off" ab_says "is attached: end it first, by 'scx_roost stop'"
check "it is still there" roost_enabled
end_roost INT 0
finish
