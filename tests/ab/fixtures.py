#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Writes fixtures.json beside itself: what scipy says of the data that tests/ab/reference.rs asks about.

No part of a test run. Anew, in an environment of its own:
    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install scipy==1.17.1 && /tmp/venv/bin/python tests/ab/fixtures.py
"""
import json
import pathlib

import numpy as np
from scipy import stats

rng = np.random.default_rng(20260101)


def samples():
    """Differences: smooth, skewed, with ties, with zeros, with an outlier, all on one side."""
    yield from (rng.normal(0.4, 1, n) for n in (5, 6, 7, 12, 20, 33, 60))
    yield from (rng.lognormal(0, 1, n) - 1 for n in (6, 15, 40))
    yield np.append(rng.normal(0.5, 1, 14), 80.0)
    yield np.abs(rng.normal(0, 1, 9))
    yield -np.abs(rng.normal(0, 1, 9))


def tied():
    yield np.array([1.0, 1.0, -1.0, 2.0, 2.0, -3.0, 3.0, 3.0])
    yield np.array([0.0, 0.0, 1.0, -1.0, 2.0, 2.0, 5.0])
    yield rng.integers(-3, 6, 12).astype(float)
    yield rng.integers(-2, 3, 11).astype(float)


def three(differences, method):
    p = {
        side: float(stats.wilcoxon(differences, alternative=side, zero_method="wilcox", correction=True, method=method).pvalue)
        for side in ("greater", "less", "two-sided")
    }
    return {"differences": list(differences), **{side.replace("-", "_"): value for side, value in p.items()}}


def shift(differences, level):
    """By inverting scipy's test: between which two means of pairs does it begin to refuse?"""
    n = len(differences)
    walsh = np.sort([(differences[i] + differences[j]) / 2 for i in range(n) for j in range(i, n)])
    between = np.concatenate([[walsh[0] - 1], (walsh[1:] + walsh[:-1]) / 2, [walsh[-1] + 1]])
    kept = [stats.wilcoxon(differences - at, method="exact").pvalue > 1 - level for at in between]
    first, last = kept.index(True), len(kept) - 1 - kept[::-1].index(True)
    unbounded = first == 0
    return {
        "differences": list(differences),
        "level": level,
        "estimate": float(np.median(walsh)),
        "interval": None if unbounded else [float(walsh[first - 1]), float(walsh[last])],
    }


fixtures = {
    "exact": [three(d, "exact") for d in samples()],
    "tied": [three(d, stats.PermutationMethod(n_resamples=np.inf)) for d in tied()],
    "approximate": [three(d, "asymptotic") for d in [*samples(), *tied(), rng.normal(0.1, 1, 150), rng.integers(-9, 11, 200).astype(float)]],
    "shift": [shift(d, level) for d in samples() for level in (0.9, 0.95, 0.99)],
    "quantile": [
        {"values": sorted(map(float, v)), "share": q, "quantile": float(np.quantile(v, q))}
        for v in (rng.normal(size=1), rng.normal(size=4), rng.normal(size=31))
        for q in (0.0, 0.025, 0.5, 0.77, 1.0)
    ],
}
lines = [f'  "{name}": [\n' + ",\n".join("    " + json.dumps(row) for row in rows) + "\n  ]" for name, rows in fixtures.items()]
pathlib.Path(__file__).with_name("fixtures.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
