// SPDX-License-Identifier: GPL-2.0-only
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";
UEI_DEFINE(uei);
void BPF_STRUCT_OPS(roost_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}
void BPF_STRUCT_OPS(roost_exit, struct scx_exit_info *ei)
{
	UEI_RECORD(uei, ei);
}
SCX_OPS_DEFINE(roost_ops, .enqueue = (void *)roost_enqueue, .exit = (void *)roost_exit, .timeout_ms = 5000, .name = "roost");
