# SPDX-License-Identifier: GPL-2.0-only
# The same icount boot, done twice, prints the same bytes: times, switches and clocks of a load.
# topology: 2
# accel: icount
# timeout: 120
# twice: yes
. /tests/lib.sh
start_roost
hackbench -p -g 2 -f 4 -l 60
hog -t 2 n=10
affine 16 2
grep -E '^(ctxt|processes|cpu)' /proc/stat
cat $SCX/root/events $SCX/nr_rejected /proc/uptime
stop_roost
finish
