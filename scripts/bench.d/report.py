# SPDX-License-Identifier: GPL-2.0-only
"""Markdown tables of the results of measure.py. All figures are means over the seeds; ratios are geometric means.
docs/performance.md says what the columns mean."""
import math
import statistics

from measure import CORES_RUNS, EEVDF, LINES_MESSAGES, LINES_ROUND_TRIPS

COST_METERS = ("hackbench", "pipe", "forks", "workers50", "workers31")
STEADY = "steady pipe"


def runs_of(result, name, suite):
    return [r for r in result["schedulers"][name].get(suite, []) if "failed" not in r]


def values(runs, meter, figure):
    return [figure(r["meters"][meter]) for r in runs]


def mean(runs, meter, figure, form="{:.0f}"):
    v = values(runs, meter, figure)
    return form.format(statistics.mean(v)) if v else "-"


def spread(runs, meter, figure, form="{:.1f}"):
    """Mean and range, for figures that vary a lot with the seed."""
    v = values(runs, meter, figure)
    if not v:
        return "-"
    low, high = form.format(min(v)), form.format(max(v))
    return form.format(statistics.mean(v)) + (f" ({low}-{high})" if low != high else "")


def ratio(result, name, suite, meter, figure):
    """Over the seeds that both have; '-' without EEVDF or if its count is 0."""
    base = {r["seed"]: r for r in runs_of(result, EEVDF, suite)} if EEVDF in result["schedulers"] else {}
    logs = []
    for r in runs_of(result, name, suite):
        if r["seed"] in base:
            ours, theirs = figure(r["meters"][meter]), figure(base[r["seed"]]["meters"][meter])
            if ours and theirs:
                logs.append(math.log(ours / theirs))
    return f"{math.exp(statistics.mean(logs)):.2f}" if logs else "-"


def per_switch(*classes):
    return lambda m: sum(m[c] for c in classes) / max(m["machine_switches"], 1)


def kernel_and_bpf(m):
    return m["kernel"] + m["bpf"]


def avoidable(m):
    return 100 * m["avoidable"] / max(m["looks"], 1)


def figure(key):
    return lambda m: m[key]


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def section(title, head, rows):
    return [f"### {title}", "", *table(head, rows)]


def cost_tables(result, names):
    ratios, figures = [], []
    for name in names:
        runs = runs_of(result, name, "cost")
        ratios.append([name] + [ratio(result, name, "cost", m, figure("ns")) for m in COST_METERS]
                      + [ratio(result, name, "cost", m, kernel_and_bpf) for m in COST_METERS[:3]]
                      + [ratio(result, name, "cost", m, figure(k)) for k in ("switches", "migrations")
                         for m in ("hackbench", "forks")])
        figures.append([name] + [spread(runs, m, avoidable) for m in ("workers50", "workers31")]
                       + [spread(runs, "workers50", figure("moves"), "{:.0f}")]
                       + [mean(runs, m, per_switch("bpf")) for m in COST_METERS[:3]]
                       + [mean(runs, m, per_switch("kernel", "bpf")) for m in (*COST_METERS[:3], STEADY)])
    return [*section("Work: ratios to EEVDF (8 CPUs, 2 LLCs x 2 cores x 2 threads)",
                     ["scheduler", *[f"{m} time" for m in COST_METERS], *[f"{m} insns" for m in COST_METERS[:3]],
                      "hackbench switches", "forks switches", "hackbench migrations", "forks migrations"], ratios),
            *section("Core sharing, and instructions per context switch",
                     ["scheduler", "avoidable %, half", "avoidable %, 31", "moves, half", "BPF hackbench", "BPF pipe",
                      "BPF forks", "kernel+BPF hackbench", "kernel+BPF pipe", "kernel+BPF forks",
                      "kernel+BPF steady pipe"], figures)]


LATENCY = {"latency": "2 CPUs", "latency1": "1 CPU"}


def those_with(runs, key):
    return [r for r in runs if key in r["meters"]["probe"]]


def latency_table(result, names, suite):
    keys, rows = ("samples", "p50", "p99", "max"), []
    of_first = ["on CPU 0, %", "p50 there", "p99 there", "max there"] if suite == "latency" else []
    for name in names:
        runs = runs_of(result, name, suite)
        row = [name] + [mean(runs, "probe", figure(k)) for k in keys]
        if suite == "latency":
            row.append(mean(runs, "probe", lambda m: 100 * m["first_samples"] / m["samples"]))
            # A boot may have no sample there.
            row += [mean(those_with(runs, k), "probe", figure(k)) for k in (f"first_{k}" for k in keys[1:])]
        rows.append(row + [mean(runs, "probe", per_switch("bpf")), mean(runs, "probe", per_switch("kernel", "bpf")),
                           mean(runs, "probe", lambda m: m["machine_switches"] * 1e9 / m["ns"])])
    return section(f"Wakeup latency of a SCHED_OTHER probe under twice as many CPU hogs as CPUs ({LATENCY[suite]}), us",
                   ["scheduler", *keys, *of_first, "BPF insns/switch", "kernel+BPF insns/switch", "switches/s"], rows)


def cores_table(result, names):
    rows = []
    for name in names:
        runs = runs_of(result, name, "cores")
        row = [name, str(len(runs) * CORES_RUNS)]
        for meter in ("workers50", "workers31"):
            of = [{"meters": {meter: r["meters"][f"{meter}.{run}"]}} for r in runs for run in range(CORES_RUNS)]
            row += [spread(of, meter, avoidable), mean(of, meter, figure("moves"), "{:.1f}")]
        rows.append(row)
    return section(f"Core sharing, {CORES_RUNS} runs of each kind in a boot (8 CPUs, 2 LLCs x 2 cores x 2 threads)",
                   ["scheduler", "runs", "avoidable %, half", "moves, half", "avoidable %, 31", "moves, 31"], rows)


LINES = {"lines": "8 CPUs", "lines64": "64 CPUs"}
# Debian's kernels have CONFIG_HZ=250.
TICK_NS = 4_000_000
TICKS = "steady ticks"


def per_unit(meter, key, cpus):
    """Schedulers switch differently often for the same work, so by the work: a message, a round trip, a tick."""
    units = {"steady hackbench": lambda m: LINES_MESSAGES, STEADY: lambda m: LINES_ROUND_TRIPS,
             TICKS: lambda m: m["ns"] / TICK_NS * cpus}[meter]
    return lambda m: m[key] / units(m)


def lines_table(result, names, suite):
    cpus, heads, rows = int(LINES[suite].split()[0]), [], []
    for name in names:
        runs, row = runs_of(result, name, suite), [name]
        heads = []
        for meter in ("steady hackbench", STEADY, TICKS):
            for what in ("locked", "remote_reads", "remote_writes"):
                each = [per_unit(meter, f"{of}_{what}", cpus) for of in ("bpf", "kernel")]
                row.append(" + ".join(mean(runs, meter, of, "{:.2f}") for of in each))
                heads.append(f"{meter.removeprefix('steady ')} {what.replace('_', ' ')}")
        rows.append(row)
    return section(f"What other CPUs feel ({LINES[suite]}), BPF + kernel", ["scheduler", *heads], rows)


def facts_table(result, names):
    rows = []
    for name in names:
        s = result["schedulers"][name]
        runs = [r for suite in ("cost", "cores", *LATENCY, *LINES) for r in s.get(suite, [])]
        loads = [r["load_s"] for r in runs if "load_s" in r]
        bad = sorted({r["failed"] for r in runs if "failed" in r})
        again = [r["rerun_identical"] for r in runs if "rerun_identical" in r]
        rows.append([name, " ".join(s["command"]) or "in the kernel", str(len(runs)),
                     f"{max(loads):.1f} s" if loads and s["command"] else "-",
                     str(max((r.get("verified", 0) for r in runs), default=0) or "-"),
                     "-" if not again else "yes" if all(again) else "NO", "; ".join(bad) or "none"])
    return table(["scheduler", "command", "boots", "load (virtual)", "verified instructions", "second run identical",
                  "failures"], rows)


def profile_tables(result, names, top=40):
    """The functions that took the most, per context switch of the machine; first seed."""
    lines = []
    for name in names:
        for suite in ("cost", *LATENCY):
            for meter, m in (runs_of(result, name, suite) or [{"meters": {}}])[0]["meters"].items():
                switches = max(m["machine_switches"], 1)
                rows = [[f, f"{n / switches:.0f}"] for f, n in list(m.get("profile", {}).items())[:top]]
                title = f"{name}, {meter}: instructions per context switch"
                lines += section(title, ["function", "instructions"], rows) if rows else []
    return lines


def markdown(result):
    names = list(result["schedulers"])
    done = {suite for n in names for suite in result["schedulers"][n]}
    lines = [f"Kernel {result['kernel']}, QEMU {result['qemu']} (emulated, -icount), {result['date']}. "
             "docs/performance.md says what the columns mean.", "",
             *facts_table(result, names)]
    if "cost" in done:
        lines += cost_tables(result, names)
    if "cores" in done:
        lines += cores_table(result, names)
    for suite in LATENCY:
        if suite in done:
            lines += latency_table(result, names, suite)
    for suite in LINES:
        if suite in done:
            lines += lines_table(result, names, suite)
    return "\n".join(lines + profile_tables(result, names))
