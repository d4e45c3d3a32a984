# SPDX-License-Identifier: GPL-2.0-only
"""Are two sets of figures equal within a band? Two one-sided t tests by Welch, each at 5 %: they are when the interval
of 90 % is inside the band, and they are not when it is wholly outside."""
import math
import statistics
from dataclasses import dataclass

PASS, FAIL, OPEN = "pass", "fail", "not decided"
LEVEL = 0.95


def t_cdf(t, df):
    """Student's t for t >= 0 and df >= 1, also fractions: with t = sqrt(df) tan(x) the density is cos(x)^(df - 1)."""
    steps, end = 400, math.atan2(t, math.sqrt(df))
    weights = [1, *[4, 2] * (steps // 2 - 1), 4, 1]
    simpson = sum(w * math.cos(end * i / steps) ** (df - 1) for i, w in enumerate(weights)) * end / steps / 3
    return 0.5 + simpson * math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(math.pi)


def t_quantile(p, df):
    """For p of 0.5 to 0.999."""
    low, high = 0.0, 1000.0
    while high - low > 1e-9 * max(high, 1):
        middle = (low + high) / 2
        low, high = (middle, high) if t_cdf(middle, df) < p else (low, middle)
    return (low + high) / 2


@dataclass(frozen=True)
class Interval:
    middle: float
    low: float
    high: float

    def verdict(self, low, high):
        if low <= self.low and self.high <= high:
            return PASS
        return FAIL if self.high < low or high < self.low else OPEN


def _interval(middle, errors, form):
    """errors: the squared standard error of each side, and its degrees of freedom."""
    total = sum(e for e, _ in errors)
    if not total:
        return Interval(form(middle), form(middle), form(middle))
    half = t_quantile(LEVEL, total ** 2 / sum(e ** 2 / df for e, df in errors)) * math.sqrt(total)
    return Interval(form(middle), form(middle - half), form(middle + half))


def difference(ours, theirs):
    """Of the means."""
    errors = [(statistics.variance(v) / len(v), len(v) - 1) for v in (ours, theirs)]
    return _interval(statistics.mean(ours) - statistics.mean(theirs), errors, lambda x: x)


def ratio(ours, theirs):
    """Of the means, on a logarithmic scale: counts may be 0 for some seeds. If a mean is 0, half an event is added to
    the sum of each side."""
    add = 0 if any(ours) and any(theirs) else 0.5
    means = [statistics.mean(v) + add / len(v) for v in (ours, theirs)]
    errors = [(statistics.variance(v) / len(v) / mean ** 2, len(v) - 1) for v, mean in zip((ours, theirs), means)]
    return _interval(math.log(means[0] / means[1]), errors, math.exp)


def self_test(sums):
    """Quantiles against published tables, and the rules."""
    for p, df, t in ((0.95, 1, 6.313752), (0.95, 2, 2.919986), (0.95, 7, 1.894579), (0.95, 14, 1.761310),
                     (0.95, 2.5, 2.558219), (0.99, 10, 2.763769), (0.95, 1000, 1.646379)):
        sums.say(abs(t_quantile(p, df) - t) < 2e-6, f"t of {p} with {df} degrees of freedom is {t}")
    same, other = [5.0, 6.0, 7.0], [5.1, 6.1, 6.9]
    by_hand = difference([2.0, 4.0], [1.0, 1.0])        # 2 +- 6.313752 * 1
    for claim, holds in (
            ("an interval by hand", abs(by_hand.low + 4.313752) < 1e-5 and abs(by_hand.high - 8.313752) < 1e-5),
            ("equal figures without variance pass", ratio([3, 3], [3, 3]).verdict(1, 1) == PASS),
            ("other ones fail", ratio([3, 3], [2, 2]).verdict(0.9, 1.1) == FAIL),
            ("figures that vary more than the band are not decided", ratio(same, other).verdict(0.95, 1.05) == OPEN),
            ("and pass a wide one", ratio(same, other).verdict(0.5, 2) == PASS),
            ("0 events and 0 are equal", ratio([0, 0], [0, 0]) == Interval(1.0, 1.0, 1.0)),
            ("0 events and 1 are not decided", ratio([0] * 8, [1] + [0] * 7).verdict(0.75, 1.25) == OPEN),
            ("0 events and many fail", ratio([0] * 8, [90, 99] * 4).verdict(0.75, 1.25) == FAIL),
            ("a difference of points passes", difference([50, 51], [50, 51]).verdict(-9, 9) == PASS),
            ("a band without an upper end", ratio([9, 9], [1, 1]).verdict(0.9, math.inf) == PASS)):
        sums.say(holds, claim)
