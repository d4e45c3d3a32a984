# SPDX-License-Identifier: GPL-2.0-only
# Placement as the kernel compiles it: the decision tables and random machines run by BPF_PROG_RUN
# (src/bpf/test.bpf.c). And the scheduler's own object loads for machines of every shape.
# topology: 2
# accel: tcg
# timeout: 600
# needs: policy
. /tests/lib.sh
# tested NAME: an ignored test of the native suite, which needs a kernel with sched_ext
tested() {
	ROOST_TABLES=/tests/cases policy --exact --ignored --nocapture "$1" >/tmp/out 2>&1 &&
		grep -q '^test result: ok. 1 passed' /tmp/out && return
	tail -n 30 /tmp/out | sed 's/^/# /'
	return 1
}
for name in cases::decision_tables_as_bpf arms::no_reader_in_the_kernel_sees_parts_of_two random::random_cases_as_bpf idle_time::the_table_as_bpf load::the_scheduler_loads_for_every_machine; do
	check "$name" tested $name
done
finish
