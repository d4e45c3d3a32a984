# SPDX-License-Identifier: GPL-2.0-only
# ab --concurrent runs two copies at once, each on one cache and on its arm. A variant keeps the
# command to CPUs. Nothing is left behind.
# topology: 8
# accel: tcg
# timeout: 600
. /tests/lib.sh
counted() { grep -c "\"json:/cpus\":$1" $AB_RESULT; }
# Prints how many CPUs it may use. It sleeps, so that both copies run at once.
cat >/tmp/counts <<'EOF'
#!/bin/sh
sleep 0.2
echo "{\"cpus\": $(nproc)}"
EOF
chmod +x /tmp/counts

check "two at once" ab --concurrent --variant mainline --variant roost -n 2 --metric json:/cpus -- /tmp/counts
sed 's/^/# /' $AB_LOG
check "the report says so" ab_says 'two copies at once, on CPUs 0-3 and 4-7, sides swapped in each block'
# Two that warm up, eight that count, and up to four that settle, by the seed.
check "each had half of the machine" [ "$(counted 4)" -ge 10 ]
check "and none another part" [ "$(counted 4)" = "$(counted '[0-9]')" ]
ab_restored "two at once"
ab --concurrent --variant mainline --variant eevdf -n 2 -- true
check "eevdf is refused" ab_says 'eevdf is the kernel.s own scheduler, which schedules the whole machine'
ab_restored "refused"
check "a variant keeps the command to CPUs" ab --variant eevdf --variant eevdf@cpus=0-1 --variant roost@cpus=3 -n 1 --warmups 0 \
	--metric json:/cpus -- /tmp/counts
check "all of them, two and one" [ "$(counted 8) $(counted 2) $(counted 1)" = "1 1 1" ]
ab_restored "restricted to CPUs"
rm -f /tmp/counts
finish
