# SPDX-License-Identifier: GPL-2.0-only
"""Bugs that are planted into a copy of the policy: explorer and cbmc have to find each. A text that is no longer there is
an error."""
from dataclasses import dataclass


@dataclass
class Mutant:
    name: str
    file: str  # of src/bpf/policy
    old: str
    new: str
    scenario: str
    found: str  # what races says
    memory: str = "sc"

    def plant(self, tree):
        path = tree / "src" / "bpf" / "policy" / self.file
        text = path.read_text()
        if text.count(self.old) != 1:
            raise RuntimeError(f"mutant '{self.name}': its text stands {text.count(self.old)} times in {self.file}, "
                               "not once: adapt tests/verify/mutants.py to the code")
        path.write_text(text.replace(self.old, self.new))


MEET = "a task goes to an idle CPU, and another is there"
EARLY = "a claim has ended before its task ran"
OUTLIVED = "a claim has outlived its task"
WAITS = "some thread waits for ever"
ENDED_TWICE = "a delay has ended twice, or not at all"

MUTANTS = [
    Mutant("a claim without a compare-and-swap", "claim.h",
           "\t\treturn atomic_cas(claim, old, claim_of(now, features));\n",
           "\t\treturn (*(volatile u64 *)claim = claim_of(now, features)), true;\n", "claim_apart", EARLY),
    Mutant("a claim without a second look", "claim.h",
           "if ((features & FEATURE_claim_plain) || cpu_free(cpu, false))", "if (true)", "claim_apart", MEET),
    Mutant("a claim that is not ended", "claim.h",
           "if (claim_stamp(&cpu_state(ts->idle_cpu - 1)->claim) &&\n\t    claim_end(ts->idle_cpu - 1, ts->idle_at))",
           "if (false)", "claim_apart", OUTLIVED),
    Mutant("a claim ended by any task that comes", "claim.h",
           "return claim_made(stamp, now) && atomic_cas(claim, stamp, 0);", "return atomic_cas(claim, stamp, 0);",
           "claim_release", "a claim and no task, or the reverse"),
    Mutant("a core's claim without a compare-and-swap", "claim.h",
           "|| !claim_word(core, old, now, features))",
           "|| !(*(volatile u64 *)core = claim_of(now, features)))", "core_claim",
           "a claim of a core and no task, or the reverse"),
    Mutant("a delay that two can end", "delay_migration.h",
           "return atomic_swap(&ts->delay_at, 0) ? began : 0;",
           "u64 at = ts->delay_at;\n\n\tts->delay_at = 0;\n\treturn at ? began : 0;", "delay_steal", ENDED_TWICE),
    Mutant("a refused move that leaves its mark", "delay_queue.h", "\tif (ts)\n\t\tts->pushed = 0;\n", "\t(void)ts;\n",
           "delay_steal", "a task has run, and still counts as sent"),
    Mutant("a delay timer that does not look for the next", "delay_queue.h",
           "\t\tensure_delay_timer(cpu, cs, now, pass.next);\n", "\t\t;\n", "delay_two", WAITS),
    Mutant("a delay timer that forgets that it fired", "delay_queue.h",
           "\tcs->delay_timer_at = 0;\n\tcount(STAT_delay_timer_fire);\n", "\tcount(STAT_delay_timer_fire);\n",
           "delay_two", WAITS),
    Mutant("a slice timer without a fence", "slice_timer.h",
           "atomic_swap(&cs->timer_at, 0);", "cs->timer_at = 0;", "slice_timer",
           "a task waits, and no timer ends the slice", "tso"),
    Mutant("a parked task without a fence", "parking.h",
           "atomic_swap(&park_of(queue)->came_at, now);\n\tpark_timer_start(queue, now, park_until",
           "park_of(queue)->came_at = now;\n\tpark_timer_start(queue, now, park_until", "park",
           "a task is parked, and no timer looks after it", "tso"),
    Mutant("a park timer that is started once", "bandwidth.h",
           "\t\tif (park->timer_at == at || !park->timer_at)\n", "\t\tif (at)\n", "park_timer",
           "the timer fires at the later time"),
    Mutant("a released task that is not reported to its CPU", "parking.h",
           "\tatomic_swap(&cs->uncounted, 1);\n", "", "park_release",
           "a released task waits, and its CPU does not know"),
]

# Mutants of the ladder: the part whose proof must fail, and the assertion that fails.
LADDER = [
    Mutant("a core without a first thread", "claim.h", "< cpu ? sibling(f, 0) : cpu;", "< cpu ? sibling(f, 0) - 1 : cpu;",
           "prove_claims", "an index is within its table"),
    Mutant("a walk over LLCs that never advances", "smt_spread.h", "from = llc + 1;", "from = llc;",
           "prove_scan_cores", "unwinding assertion"),
    Mutant("a capacity that is not allowed", "capacity.h", "return !claimed(w, cpu) && task_allowed(p, cpu);",
           "return !claimed(w, cpu);",
           "prove_capacity", "the task may run there"),
    Mutant("a fork without an answer", "ladder.h", "cpu != NO_CPU ? cpu : w->last_cpu, PLACE_BUSY, STAT_fork_busy",
           "cpu, PLACE_BUSY, STAT_fork_busy", "prove_fork", "the answer is a CPU"),
    Mutant("a recently used CPU that is not allowed", "recent_core.h", "return task_allowed(p, recent);", "return true;",
           "prove_wakeup", "the answer is online and in the task's mask"),
]
