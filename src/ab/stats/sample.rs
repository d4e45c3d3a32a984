// SPDX-License-Identifier: GPL-2.0-only
//! Statistics of one list of numbers.

/// Outliers are further from the median than this many standard deviations, estimated from the
/// median absolute deviation (modified z-score; Iglewicz and Hoaglin 1993).
const FAR: f64 = 3.5;
/// Median absolute deviation of a normal distribution, as a part of its standard deviation.
const MAD_OF_NORMAL: f64 = 0.674_489_750_196_081_7;

/// 0 for no values.
pub fn mean(values: &[f64]) -> f64 {
    match values.len() {
        0 => 0.0,
        n => values.iter().sum::<f64>() / n as f64,
    }
}

/// Coefficient of variation: the standard deviation as a part of the mean. None for fewer than two
/// values, or a mean of 0.
pub fn cv(values: &[f64]) -> Option<f64> {
    let center = mean(values);
    let squares: f64 = values.iter().map(|v| (v - center).powi(2)).sum();
    let known = values.len() > 1 && center != 0.0;
    known.then(|| (squares / (values.len() - 1) as f64).sqrt() / center.abs())
}

/// Sorts its argument; 0 for no values.
pub fn median_of(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    quantile(values, 0.5)
}

pub fn median(values: &[f64]) -> f64 {
    median_of(&mut values.to_vec())
}

/// Quantile `share` (0 to 1), interpolated linearly (type 7 of Hyndman and Fan 1996). 0 for no
/// values.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return 0.0;
    };
    let at = share.clamp(0.0, 1.0) * last as f64;
    let (below, part) = (at.floor() as usize, at.fract());
    let (low, high) = (sorted[below], sorted[(below + 1).min(last)]);
    if part == 0.0 || low == high {
        low
    } else {
        low + part * (high - low)
    }
}

/// Indices of the outliers. They count nevertheless.
pub fn outliers(values: &[f64]) -> Vec<usize> {
    let center = median(values);
    let distance = |v: &f64| (v - center).abs();
    let spread = median(&values.iter().map(distance).collect::<Vec<_>>()) / MAD_OF_NORMAL;
    let far = |(_, v): &(usize, &f64)| spread > 0.0 && distance(v) > FAR * spread;
    let found = values.iter().enumerate().filter(far);
    found.map(|(at, _)| at).collect()
}
