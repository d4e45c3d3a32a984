# SPDX-License-Identifier: GPL-2.0-only
# What a running scheduler keeps of root's privileges: in every thread what the next load needs, and
# nothing else. It can load again with that, and removes its sockets.
# topology: 8
# accel: icount
# timeout: 200
# quick: 6.16
. /tests/lib.sh
LOAD=000000c000000000
NONE=0000000000000000

# each_thread NAME VALUE: every thread has this value
each_thread() {
	for task in /proc/$ROOST_PID/task/*/status; do
		got=$(sed -n "s/^$1:[[:space:]]*//p" "$task")
		[ "$got" = "$2" ] || { echo "# $task: $1 $got" && return 1; }
	done
}
limits() { grep '^Max' "/proc/$1/limits" | grep -v nice; }
check "doctor tells what is kept" sh -c 'scx_roost doctor | grep -q "then keeps only CAP_BPF and CAP_PERFMON"'

# A limit of locked memory, which nothing raises.
ulimit -l 8192
before_limits=$(limits self)
late_goes
start_roost --stats-group nogroup --ctl-group nogroup
check "more than one thread" [ "$(ls /proc/$ROOST_PID/task | wc -l)" -gt 2 ]
check "CAP_BPF and CAP_PERFMON are permitted" each_thread CapPrm $LOAD
check "and effective" each_thread CapEff $LOAD
check "none is inherited" each_thread CapInh $NONE
check "none is ambient" each_thread CapAmb $NONE
check "the bounding set is empty" each_thread CapBnd $NONE
check "no_new_privs" each_thread NoNewPrivs 1
check "the log names them" grep -q 'it keeps the privileges CAP_BPF and CAP_PERFMON' $LOG
check "no limit was changed but that of nice levels" [ "$(limits $ROOST_PID)" = "$before_limits" ]
nice_limit() { sed -n 's/^Max nice priority *//p' /proc/$ROOST_PID/limits; }
check "it may raise itself to nice level -20 (got $(nice_limit))" [ "$(nice_limit | tr -s ' ')" = "40 40 " ]
nice_of() { cut -d' ' -f19 /proc/$ROOST_PID/stat; }
check "and gives that back when it is loaded" [ "$(nice_of)" = 0 ]
# systemd.sh tests a group's access without CAP_CHOWN.
check "the sockets are the group's" [ "$(stat -c %a:%g /run/scx/root/stats /run/scx/root/ctl | sort -u)" = 660:65534 ]
check "libbpf says nothing" sh -c "! grep -q libbpf: $LOG"
late_comes
check "nothing came back" each_thread CapPrm $LOAD
stop_roost

# A socket in a folder in which only root's capability allows writing: that capability is kept, to
# remove the socket.
mkdir -m 700 /run/theirs
chown nobody /run/theirs
start_roost --stats-path /run/theirs/stats
check "CAP_DAC_OVERRIDE is kept besides" each_thread CapPrm 000000c000000002
check "and reported" grep -q 'CAP_DAC_OVERRIDE' $LOG
served() { totals /run/theirs/stats >/tmp/totals; }
check "a client is served" served
end_roost INT 0
check "the sockets are gone" [ "$(ls /run/theirs)" = scx_roost.run ]
finish
