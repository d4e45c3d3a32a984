# SPDX-License-Identifier: GPL-2.0-only
"""Tables of records, for people."""
from record import WATCHES

BAD_SHOWN = 8


def events_table(record):
    width = max(map(len, record.events), default=0)
    lines = [f"  {kind:{width}} {n:5}" for kind, n in sorted(record.events.items())]
    lines += [f"  {name:{width}} {n:5}" for name, n in sorted(record.did.items())]
    return "\n".join(lines)


def watches_table(record):
    lines = []
    for watch, meaning in WATCHES.items():
        bad = [b for b in record.bad if b[0] == watch]
        # A run that did not complete has proved nothing good.
        verdict = "FAIL" if bad else "ok" if record.ended else "?"
        lines.append(f"  {verdict:5}{watch:9} {meaning}")
        if record.watches.get(watch):
            lines.append(f"                {record.watches[watch]}")
        lines += [f"         at {at:.1f} s: {text}" for _, at, text in bad[:BAD_SHOWN]]
        if len(bad) > BAD_SHOWN:
            lines.append(f"         and {len(bad) - BAD_SHOWN} more")
    lines += [f"  note kernel    its own faults, listed apart: {text} ({n})"
              for text, n in record.known.items()]
    lines += [f"  FAIL guest: {text}" for watch, _, text in record.bad if watch not in WATCHES]
    return "\n".join(lines)


def _ms(us):
    return f"{us / 1e3:.2f}"


def _cells(probe):
    if not probe:
        return f"{'-':>9}{'-':>10}{'-':>11}{'-':>9}"
    p50, p99, longest = (_ms(probe[key]) for key in ("p50_us", "p99_us", "longest_us"))
    return f"{p50:>6} ms{p99:>7} ms{longest:>8} ms{probe['samples']:9.0f}"


def comparison(records, probe="nice0"):
    """A row for each scheduler: how late the probe ran, and when the kernel ended the scheduler."""
    lines = [f"{'':14}{'p50':>9}{'p99':>10}{'longest':>11}{'samples':>9}   ejected"]
    for r in records:
        ejected = f"after {r.ejected[0]:.1f} s: {r.ejected[1]}" if r.ejected else "no"
        lines.append(f"{r.name:14}{_cells(r.probes.get(probe))}   {ejected}")
    return "\n".join(lines)


def took(record):
    known = f"; remembered, {record.remembered[:16]}" if record.remembered else ""
    return (f"{record.name}: {record.seconds:.0f} s of the guest, {record.host_s:.0f} s of the host"
            f"{known}")


def text(records, probes):
    main = records[0]
    out = [*map(took, records), "", "events by class", events_table(main), "", "watches",
           watches_table(main), ""]
    for probe in probes:
        out += [f"wakeups of the probe {probe}", comparison(records, probe), ""]
    return "\n".join(out)
