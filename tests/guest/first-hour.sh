# SPDX-License-Identifier: GPL-2.0-only
# docs/tutorial/first-hour.md, word by word: the commands are taken from the page and run in its
# order, and each must do what the page says of it. The page's words are searched in the page and in
# what the program prints, so neither may change without the other.
# topology: 8
# accel: icount
# timeout: 900
# needs: page
. /tests/lib.sh
PAGE=/tests/first-hour.md
# As the page starts it.
LOG=/tmp/log
OUT=/tmp/out

# section: the part of the page with the number $step.
section() { awk -v step="$step." '/^## / { here = $2 == step } here' $PAGE; }

# blocks KIND: the lines of its code blocks, command or output, without sudo, which is not here.
blocks() {
	section | awk -v kind="$1" '
		!/^    / { inside = ""; next }
		inside == "" { inside = /^    (sudo |git |scx_roost)/ ? "command" : "output" }
		inside == kind { sub(/^    /, ""); sub(/ +# .*/, ""); gsub(/sudo /, ""); print }'
}

# step NUMBER COMMANDS: the page has so many commands there.
step() {
	step=$1
	count=$(blocks command | wc -l)
	check "step $1 of the page has $2 commands (got $count)" [ "$count" = "$2" ]
}
command() { blocks command | sed -n "$1p"; }

# page_says WORDS: as code in the text of the section, wherever its lines end.
page_says() { section | tr -s '\n ' '  ' | grep -qF "\`$1\`"; }
named() { check "step $step names '$1'" page_says "$1"; }
printed() { grep -qF -e "$1" $OUT || { sed 's/^/# out: /' $OUT && false; }; }
# says WORDS: the page quotes it, and the last command has printed it.
says() {
	named "$1"
	check "step $step: '$1' is printed" printed "$1"
}

# run NUMBER [WITH FOR]: runs a command of the step, with words in place of others, if given.
run() {
	line=$(command "$1")
	if [ $# -gt 1 ]; then
		check "step $step: '$line' has '$3'" [ "${line#*"$3"}" != "$line" ]
		line="${line%%"$3"*}$2${line#*"$3"}"
	fi
	eval "$line" >$OUT 2>&1
	rc=$?
	check "step $step: $line" [ $rc = 0 ]
	[ $rc = 0 ] || sed 's/^/# out: /' $OUT
}
# also COMMAND: the same of one in the text of the section.
also() {
	named "$1"
	eval "${1#sudo }" >$OUT 2>&1
	rc=$?
	check "step $step: $1" [ $rc = 0 ]
}

# The machine is the one of step 2: its prompt has no sudo and no second terminal.
PATH=/usr/local/bin:$PATH
mkdir -p /tmp/home/target/release /usr/local/bin
cd /tmp/home || exit 1

step 1 3
# In place of the clone and the build: the program under test. busybox has no install.
cp /bin/scx_roost target/release/
install() { cp "$@"; }
run 3
check "the program is installed" [ -x /usr/local/bin/scx_roost ]

step 2 1
run 1
sed '$d' $OUT | grep -v -e '^\(ok  \|WARN\|FAIL\)  [a-z_.]' -e '^                    ' >/tmp/odd
sed 's/^/# odd: /' /tmp/odd
check "a line for each check" [ ! -s /tmp/odd ]
check "the answer in the last line" [ "$(tail -n 1 $OUT)" = "scx_roost can run on this machine." ]
for name in $(blocks output | sed '$d' | cut -c7- | cut -d' ' -f1); do
	check "there is the check $name" grep -q "^[A-Za-z ]*  $name " $OUT
done
su nobody -s /bin/sh -c "scx_roost doctor" >$OUT
named privileges
check "without sudo privileges fails" grep -q '^FAIL  privileges ' $OUT
check "the last line is the page's" [ "$(tail -n 1 $OUT)" = "$(blocks output | tail -n 1)" ]
START='scx_roost >/tmp/log 2>&1 &'
named "$START"
WORK='hackbench -g 1 -f 2 -l 1000000 &'
named "$WORK"

step 3 1
run 1
pairs() { grep -o '\[[^]]*\]' $OUT | tr -d '[]' | awk '{ $1 = $1; print }' | sort; }
cores() { cat /sys/devices/system/cpu/cpu*/topology/core_cpus_list | tr ',-' '  ' | sort -u; }
check "each core is a pair of brackets with its threads" [ "$(pairs)" = "$(cores)" ]
# The same lines as those of the Threadripper but for numbers, and for frequencies, which are not
# here.
shape() { sed -n "s/[0-9][0-9]*/N/g; $1p" "$2"; }
blocks output >/tmp/page
for line in 1 2 3; do
	check "line $line is as the page's" [ "$(shape $line $OUT)" = "$(shape $line /tmp/page)" ]
done
sed -n 's/^\([a-z][a-z ]\{10\}\) .*/\1/p' /tmp/page | grep -v range >/tmp/labels
check "the page has labels" [ "$(wc -l </tmp/labels)" -ge 4 ]
while read -r label; do
	check "there is the line '$label'" grep -q "^$label  *[a-z0-9A-Z]" $OUT
done </tmp/labels

step 4 1
[ "$(command 1)" = scx_roost ]
check "it is started without options" [ $? = 0 ]
# start: in place of the second terminal, in the background, as step 2 says.
start() {
	eval "$START"
	ROOST_PID=$!
	wait_for $LOAD_LIMIT_S enabled_or_gone
	check "$START" roost_enabled
	roost_enabled || finish
}
start
wait_for 5 grep -q 'scx_roost runs' $LOG
grep 'scx_roost runs' $LOG >$OUT
sed 's/^/# /' $OUT
says 'scx_roost runs: preset roost'
on=$(scx_roost ctl show | sed -n 's/^  on  *//p')
check "it has the features that are on" printed "$on"
check "the slice, the machine, and how long the load took" \
	grep -q 'slice [0-9]* us.*; 8 CPUs of 8 online.*; loaded in [0-9]* ms$' $OUT
check "it schedules all ordinary tasks" [ "$(cat $SCX/switch_all)" = 1 ]
also 'sudo scx_roost status'
sed 's/^/# /' $OUT
check "status: what runs" printed "runs: preset roost"
check "how well" printed "  health "
check "what it has done" printed "  wakeups "
also 'sudo scx_roost stop'
check "the kernel's own scheduler takes over" wait_for 5 state_is disabled
wait $ROOST_PID
scx_roost status >$OUT
check "status: when and why it ended" grep -q '  ended     .* ago: ended by SIGTERM' $OUT
start

step 5 1
# In place of the screen, which needs a terminal: without one the monitor prints lines.
eval "$WORK"
work=$!
sleep 1
check "the work are four tasks" [ "$(cat /proc/[0-9]*/status | grep -c "^PPid:.$work\$")" = 4 ]
run 1 "timeout -s INT 2.5 scx_roost monitor" "scx_roost monitor"
check "what counts most is shown" grep -q '^  enq_idle  *[1-9]' $OUT
for name in $(section | sed -n 's/^| \([a-z_]*_[a-z_]*\)  *[0-9]* \/s .*/\1/p'); do
	check "$name is a counter" grep -q "\"$name\":" <<-TOTALS
		$(totals)
	TOTALS
done

step 6 6
spreads() {
	totals >/tmp/totals
	echo $(($(counter spread_wakeup /tmp/totals) + $(counter spread_none /tmp/totals)))
}
grows() { [ "$(spreads)" != "$before" ]; }
before=$(spreads)
named spread_wakeup
named spread_none
check "with smt_spread its counters grow" wait_for 10 grows
run 1
check "show: features that are on and off, and tunables" \
	[ "$(grep -c -e '^  on  *[a-z]' -e '^  off  *[a-z]' -e '^  tunables  *[a-z]' $OUT)" = 3 ]
run 2
says 'default: smt_spread on -> off'
says 'generation 2 is in force'
before=$(spreads)
sleep 2
check "without it they do not" [ "$(spreads)" = "$before" ]
run 3
check "reset undoes it" printed 'default: smt_spread off -> on'
check "with the number of the policy" printed 'generation 3 is in force'
check "and they grow again" wait_for 10 grows
kill $work
wait $work
run 4
# In place of the build: there is no make.
run 5 "stress-ng -q --switch 2 --timeout 6 &" "make -j8"
on_arms "exec: the command and what it starts" games
wait $!
check "its exit status (got $?)" [ $? = 0 ]
run 6
scx_roost ctl arms >$OUT
check "the arm is gone" sh -c "! grep -q games $OUT"

step 7 1
# In place of Ctrl-C.
end_roost INT 0
printf '#!/bin/sh\nexec hackbench -g 1 -f 2 -l 40\n' >my-workload
chmod +x my-workload
run 1
sed 's/^/# /' $OUT
check "at which run it is, and how long the rest takes" \
	grep -q ' run [0-9]* of at most [0-9]*: .*, at most [0-9]* .* left' $OUT
# The page's number of what.
number() { section | tr '\n' ' ' | sed -n "s/.* \([0-9][0-9]*\) $1.*/\1/p"; }
counted=$(number 'runs that count') all=$(number 'runs in all')
count=$(grep -c '"turn":[0-9]' ab.jsonl)
check "${counted:-no} runs count (got $count)" [ "$count" = "$counted" ]
count=$(grep -c '"turn":' ab.jsonl)
check "${all:-no} runs in all (got $count)" [ "$count" = "$all" ]
for variant in eevdf mainline roost; do
	check "the median of $variant" grep -q "^  $variant  *[0-9.][0-9.]*  *[0-9.]" $OUT
done
# The page's table: the verdicts, a line each.
section | sed -n 's/^| \(`[^|]*\) |.*/\1/p' | tr ',' '\n' | tr -d '`' | sed 's/^ //' >/tmp/verdicts
for variant in mainline roost; do
	said=$(verdict $variant $OUT)
	check "the verdict on $variant is in the table (got $said)" grep -qx "$said" /tmp/verdicts
done
check "the machine is as it was" ab_alone
also 'scx_roost ab show ab.jsonl'
check "the report is shown again" grep -q '^roost against eevdf: ' $OUT
finish
