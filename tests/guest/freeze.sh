# SPDX-License-Identifier: GPL-2.0-only
# --freeze: the verifier drops disabled features, placement is the same as without it, and nothing
# can be changed. A restart keeps it frozen.
# topology: 8
# accel: icount
# timeout: 200
. /tests/lib.sh

# The verified instructions of all programs.
verified() { awk '/^verified_insns:/ { sum += $2 } END { print sum + 0 }' /proc/$ROOST_PID/fdinfo/*; }

# refused ARGUMENT...
refused() {
	scx_roost "$@" >/tmp/out 2>/tmp/err
	rc=$?
	check "refused: $*" [ $rc = 1 ]
	check "it says why" grep -q 'runs with --freeze' /tmp/err
}

start_roost --preset mainline
live=$(verified)
stop_roost

start_roost --preset mainline --freeze
frozen=$(verified)
check "the verifier drops what is off ($live instructions live, $frozen frozen)" [ "$frozen" -lt "$live" ]
probe sleep 0.3 100000 >/dev/null
totals >/tmp/t
check "it places" [ "$(counter placed_prev /tmp/t)" -gt 0 ]
check "prev_core does not" [ "$(counter prev_core /tmp/t)" = 0 ]
refused ctl set --enable wide_idle
refused ctl arms add x
refused exec --arm default -- true
check "it shows that it is frozen" sh -c 'scx_roost ctl show | grep -q "^generation 0, frozen"'
stop_roost

late_goes
start_roost --freeze
probe sleep 0.3 100000 >/dev/null
totals >/tmp/t
check "what is on acts: prev_core" [ "$(counter prev_core /tmp/t)" -gt 0 ]
late_comes
refused ctl set --disable prev_core
end_roost INT 0
finish
