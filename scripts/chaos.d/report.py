# SPDX-License-Identifier: GPL-2.0-only
"""Records as text, for people."""
from record import WATCHES

BAD_SHOWN = 8


def events_table(record):
    width = max(map(len, record.events), default=0)
    return "\n".join(f"  {kind:{width}} {n:5}" for kind, n in sorted(record.events.items()))


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


def ran(record):
    """How long it took, how long its tasks waited, and whether the kernel ended the scheduler."""
    known = f"; remembered, {record.remembered[:16]}" if record.remembered else ""
    lines = [f"{record.name}: {record.seconds:.0f} s of the guest, {record.host_s:.0f} s of the host{known}",
             f"  waits: {record.watches.get('waits', 'not known')}"]
    if record.ejected:
        lines.append(f"  ejected after {record.ejected[0]:.1f} s: {record.ejected[1]}")
    return "\n".join(lines)


def text(records):
    main = records[0]
    return "\n".join([*map(ran, records), "", "events by class", events_table(main), "", "watches",
                      watches_table(main), ""])
