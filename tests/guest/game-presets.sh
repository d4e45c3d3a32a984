# SPDX-License-Identifier: GPL-2.0-only
# As game: each trick, under each preset. Prints a row for each.
# topology: 1
# accel: icount
# timeout: 900
# long: yes
. /tests/lib.sh
# rows: of each trick the figures under EEVDF, and under the preset that uses most of its band (0:
# as EEVDF, 1: the end): the share in percent; longest wait, lateness and response time in ms.
rows() {
	for preset in $presets; do
		paste -d' ' /tmp/eevdf "/tmp/play-$preset" | sed "s/^/$preset /"
	done | awk '
		function figures(i) {
			return sprintf("%.1f, %.1f, %.1f, %.1f", $i, $(i + 1) / 1000,
				$(i + 2) / 1000, $(i + 3) / 1000)
		}
		{ name = $2 ($3 > 1 ? " x" $3 : "")
		  used = ($4 - $10) / (0.1 * $4 + 3)
		  for (i = 5; i < 8; i++) {
			late = ($(i + 6) - $i) / ($i + 1000)
			used = late > used ? late : used
		  }
		  if (!(name in row) || used > most[name]) {
			most[name] = used
			row[name] = name " | " figures(4) " | " $1 ": " figures(10)
		  } }
		END { for (name in row) print "# | " row[name] }'
}
# The first seconds of a boot are not like the others.
sleep 4
plays /tmp/eevdf
start_roost
second_arm
presets=$(scx_roost presets --json | sed -n 's/^    "name": "\(.*\)",/\1/p')
for preset in $presets; do
	scx_roost ctl set --preset "$preset" >/dev/null
	plays "/tmp/play-$preset"
	check "preset $preset: the same as under EEVDF" fair /tmp/eevdf "/tmp/play-$preset"
done
rows
stop_roost
finish
