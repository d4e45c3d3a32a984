# SPDX-License-Identifier: GPL-2.0-only
# The library: a program with two schedulers (examples/embed.rs) switches from one to the other and
# back, changes each while it runs, and reads its statistics without a socket.
# topology: 4
# accel: icount
# timeout: 120
# needs: embed
. /tests/lib.sh

embed >/tmp/embed 2>&1 &
pid=$!
check "the first is attached" wait_for $LOAD_LIMIT_S state_is enabled
check "it has no socket" [ ! -e /run/scx/root/stats ]
probe sleep 4 1000 >/dev/null
wait $pid
status=$?
sed 's/^/# embed: /' /tmp/embed
check "the program ends well (status $status)" [ $status = 0 ]
check "each preset ran in its turn" [ "$(sed -n 's/^\(Mainline\|Roost\): preset "\([a-z]*\).*/\2/p' /tmp/embed | xargs)" = "mainline roost mainline" ]
check "each began with avg_idle" [ "$(grep 'begins with' /tmp/embed | grep -cw avg_idle)" = 3 ]
check "each was changed as it ran" [ "$(grep -c '^[MR][a-z]*: preset' /tmp/embed)" = 3 ]
check "avg_idle is off in each" [ "$(sed -n 's/.*features "\([^"]*\)".*/\1/p' /tmp/embed | grep -cvw avg_idle)" = 3 ]
check "each was told to have ended" [ "$(grep -c 'is no longer loaded' /tmp/embed)" = 3 ]
check "each placed tasks" [ "$(sed -n 's/.* \([0-9]*\) wakeups placed.*/\1/p' /tmp/embed | grep -cv '^0$')" = 3 ]
check "the last line says which scheduler runs now" grep -q "own scheduler is back" /tmp/embed

finish
