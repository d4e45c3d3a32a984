# SPDX-License-Identifier: GPL-2.0-only
# Loads where /boot has no configuration of the kernel.
# topology: 8
# accel: tcg
# timeout: 120
# quick: yes
. /tests/lib.sh
mv /boot /boot.away
start_roost
mv /boot.away /boot
stop_roost
finish
