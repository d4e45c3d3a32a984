# SPDX-License-Identifier: GPL-2.0-only
# Loads where /boot has no configuration of the kernel.
# topology: 8
# accel: icount
# timeout: 120
. /tests/lib.sh
mv /boot /boot.away
trap 'mv /boot.away /boot' EXIT
start_roost
stop_roost
finish
