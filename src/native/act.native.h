/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The second half of the port, over a machine that the caller plays; policy/port.h says what each
 * function means. A world without struct kernel supports none of it; a caller that only places, or
 * only orders queues, needs none.
 */
#ifndef ROOST_ACT_NATIVE_H
#define ROOST_ACT_NATIVE_H

/* The kernel's values, of Linux 7.2 (enum scx_enq_flags, scx_kick_flags, scx_wake_flags). */
#define ENQ_WAKEUP   (1ULL << 0)
#define ENQ_PREEMPT  (1ULL << 32)
#define IMMED	     (1ULL << 33)
#define ENQ_IMMED    (the_world->immed)
#define ENQ_REENQ    (1ULL << 40)
#define ENQ_LAST     (1ULL << 41)
#define ENQ_PLACED   (1ULL << 62) /* our own: select_cpu was called (kernel: ENQUEUE_RQ_SELECTED) */
#define KICK_IDLE    (1ULL << 0)
#define KICK_PREEMPT (1ULL << 1)
#define SLICE_INF    (~0ULL)
#define WAKE_FORK    (1ULL << 2)
#define WAKE_SYNC    (1ULL << 4)

static __always_inline const struct kernel *kernel(void)
{
	if (__builtin_expect(!the_world->kernel, 0))
		out_of_range("kernel", 0, 0);
	return the_world->kernel;
}

/* ---- tasks ---- */

static __always_inline struct task_state *task_state_if(port_task *p)
{
	return p->state;
}

static __always_inline u32 task_pid(port_task *p)
{
	return p->pid;
}

static __always_inline u64 task_ran(port_task *p)
{
	return p->ran;
}

static __always_inline bool task_pinned(port_task *p)
{
	return p->pinned;
}

/* Tasks of the model may always migrate. */
static __always_inline bool held_from_mask(port_task *p)
{
	(void)p;
	return false;
}

static __always_inline bool pcpu_kthread(port_task *p)
{
	return p->kthread && p->pinned;
}

static __always_inline bool task_runnable(port_task *p)
{
	return p->runnable;
}

static __always_inline bool task_sleeps(port_task *p)
{
	return p->sleeps;
}

static __always_inline bool task_is_idle(port_task *p)
{
	return !p->state;
}

static __always_inline bool task_exits(port_task *p)
{
	return p->exits;
}

static __always_inline bool ask_return(port_task *p)
{
	return p->in_kernel;
}

static __always_inline u64 task_key(port_task *p)
{
	return p->key;
}

static __always_inline u64 task_slice(port_task *p)
{
	return p->slice;
}

static __always_inline port_task *current_task(void)
{
	if (__builtin_expect(!the_world->current, 0))
		out_of_range("current task", 0, 0);
	return the_world->current;
}

/* Interrupts only come while the idle task runs. */
static __always_inline bool in_task(void)
{
	return current_task()->state;
}

static __always_inline bool enq_placed(u64 enq_flags)
{
	return enq_flags & ENQ_PLACED;
}

/*
 * There are no rules: the caller sets the arm of a task it makes. A caller with cgroups sweeps them
 * by roost_cgroup_sweep().
 */
static __always_inline void arm_follow(port_task *p, struct task_state *ts)
{
	(void)p;
	(void)ts;
}

static __always_inline u32 sweep_cgroups(u64 now)
{
	(void)now;
	return 0;
}

/* ---- CPUs ---- */

static __always_inline s32 this_cpu(void)
{
	return the_world->this_cpu;
}

static __always_inline u64 cpu_clock(void)
{
	return the_world->clock;
}

static __always_inline const struct run_view *run_view(s32 cpu)
{
	return &the_world->runs[in_range("cpu", cpu, the_world->machine.nr_cpu_ids)];
}

static __always_inline bool cpu_curr_idle(s32 cpu)
{
	return run_view(cpu)->curr_idle;
}

static __always_inline bool cpu_taken(s32 cpu)
{
	return run_view(cpu)->taken;
}

static __always_inline bool cpu_is_ours(s32 cpu)
{
	return cpu_facts(cpu)->online && !run_view(cpu)->taken;
}

/* No callback is called for such a CPU here. */
static __always_inline bool cpu_leaves(s32 cpu)
{
	return !cpu_facts(cpu)->online;
}

static __always_inline u32 local_length(s32 cpu)
{
	return run_view(cpu)->local;
}

static __always_inline u32 cpu_speed(s32 cpu)
{
	return run_view(cpu)->speed;
}

static __always_inline void ask_speed(s32 cpu, u32 speed)
{
	kernel()->ask_speed(the_world->self, cpu, speed);
}

static __always_inline void kick_cpu(s32 cpu, u64 flags)
{
	kernel()->kick(the_world->self, cpu, flags);
}

/* ---- where tasks go ---- */

static __always_inline void insert_local(port_task *p, u64 slice, u64 enq_flags)
{
	kernel()->insert_local(the_world->self, p, NO_CPU, slice, enq_flags);
}

static __always_inline void insert_on(port_task *p, s32 cpu, u64 slice, u64 enq_flags)
{
	kernel()->insert_local(the_world->self, p, cpu, slice, enq_flags);
}

static __always_inline void insert_queued(port_task *p, u32 queue, u64 slice, u64 key,
					  u64 enq_flags)
{
	p->slice = slice;
	kernel()->insert_queued(the_world->self, p, queue, slice, key, enq_flags);
}

static __always_inline bool set_slice(port_task *p, u64 slice)
{
	p->slice = slice;
	return true;
}

static __always_inline port_task *queue_head(u32 queue)
{
	/* A caller that only orders queues has no tasks in them. */
	return the_world->queue_next
		       ? the_world->queue_next(the_world->queues, queue, &(struct cursor){})
		       : NULL;
}

#define for_each_queued(p, queue)                                                                  \
	for (struct cursor cursor_ = {};                                                           \
	     (p = the_world->queue_next(the_world->queues, queue, &cursor_));)
#define queued_move_here(p)		  the_world->queued_move(the_world->queues, p, NO_CPU)
#define queued_move_to(p, cpu, enq_flags) the_world->queued_move(the_world->queues, p, cpu)
#define queued_requeue(p, q, key)	  the_world->queued_requeue(the_world->queues, p, q, key)

/* ---- timers ---- */

static __always_inline s32 start_slice_timer(s32 cpu, u64 ns)
{
	kernel()->start_timer(the_world->self, TIMER_SLICE, cpu, ns);
	return 0;
}

static __always_inline s32 start_delay_timer(s32 cpu, u64 ns)
{
	kernel()->start_timer(the_world->self, TIMER_DELAY, cpu, ns);
	return 0;
}

static __always_inline s32 start_park_timer(u32 queue, u64 ns)
{
	kernel()->start_timer(the_world->self, TIMER_PARK, queue, ns);
	return 0;
}

#define spin_gap()

#endif /* ROOST_ACT_NATIVE_H */
