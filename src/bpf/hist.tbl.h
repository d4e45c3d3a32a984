/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of histograms. A row is HIST(name, help). Each has NR_HIST_BUCKETS buckets. Bucket i
 * counts times from 2^i to 2^(i+1) us of 1024 ns; the first also counts shorter times, the last
 * longer ones. build.rs reads the same rows for Rust (src/wire/stats/).
 */
HIST(wakeup_latency, "time from a wakeup until the task ran")
HIST(fits_wait, "of these, the times of tasks that util_fits placed on a busy CPU")
HIST(delay_wait, "time that a delayed task waited beside its waker before it ran or moved (feature delay_migration)")
