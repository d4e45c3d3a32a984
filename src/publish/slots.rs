// SPDX-License-Identifier: GPL-2.0-only
//! Two images, one of which is live (struct policy_store). Publishing writes the other, flips the
//! index, and waits until nothing reads the old one. So a reader that loads the index once sees one
//! image only.

use super::Grace;
use crate::bpf::intf::{policy_image, policy_store};
use anyhow::Result;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// The only writer of a store.
pub struct Publisher<G> {
    store: NonNull<policy_store>,
    grace: G,
    /// The slot that is not live may still be read.
    read_still: bool,
}

// SAFETY: a store is memory that any thread may write, and there is one publisher of it.
unsafe impl<G: Send> Send for Publisher<G> {}

impl<G: Grace> Publisher<G> {
    /// # Safety
    ///
    /// The store must live as long as the publisher, and nothing else may write it meanwhile.
    pub unsafe fn new(store: NonNull<policy_store>, grace: G) -> Self {
        Publisher {
            store,
            grace,
            read_still: true,
        }
    }

    /// The live image.
    pub fn live(&self) -> policy_image {
        // SAFETY: the slot exists, and this is the only writer.
        unsafe { self.slot(self.index().load(Ordering::Relaxed)).read() }
    }

    /// Makes the image live and returns its generation. Every callback that starts after the return
    /// reads it, and no running one reads another. After an error either the old or the new image
    /// is live, and whole.
    pub fn publish(&mut self, image: &policy_image) -> Result<u32> {
        let live = self.index().load(Ordering::Relaxed);
        // Changes between two loads have advanced the generation of `image`.
        let generation = self.live().generation.max(image.generation) + 1;
        self.settle()?;
        let next = policy_image {
            generation,
            ..*image
        };
        // SAFETY: the slot exists; it is not live and nothing reads it any more.
        unsafe { self.slot(live + 1).write(next) };
        self.read_still = true;
        self.index().store((live + 1) % 2, Ordering::Release);
        self.settle()?;
        Ok(generation)
    }

    fn settle(&mut self) -> Result<()> {
        if self.read_still {
            self.grace.wait()?;
            self.read_still = false;
        }
        Ok(())
    }

    fn index(&self) -> &AtomicU32 {
        // SAFETY: the store lives, and only this publisher changes the index, as an atomic.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.store.as_ptr()).index) }
    }

    fn slot(&self, index: u32) -> *mut policy_image {
        // SAFETY: stays within the store.
        unsafe {
            (&raw mut (*self.store.as_ptr()).slot)
                .cast::<policy_image>()
                .add(index as usize % 2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::intf::{arm, task_policy};
    use crate::publish::image;
    use anyhow::bail;
    use std::cell::Cell;
    use std::rc::Rc;
    use std::sync::atomic::{AtomicBool, AtomicU64, fence};
    use std::thread;

    fn of(features: u32) -> policy_image {
        let arms = [arm {
            task: task_policy {
                features,
                arm: 0,
                slice_ns: features.into(),
                min_slice_ns: features.into(),
                claim_ttl_ns: features.into(),
                fits_scale: features,
                fits_rt: features,
                delay_ns: features,
                rules: features,
            },
            rescue_ns: features.into(),
            migration_cost_ns: features.into(),
        }];
        image(&arms, &[])
    }

    fn store() -> policy_store {
        policy_store {
            slot: [of(0), of(0)],
            index: 0,
        }
    }

    /// Counts waits, and fails if `fails` is set.
    #[derive(Clone, Default)]
    struct Counting {
        waits: Rc<Cell<u32>>,
        fails: Rc<Cell<bool>>,
    }

    impl Grace for Counting {
        fn wait(&mut self) -> Result<()> {
            self.waits.set(self.waits.get() + 1);
            if self.fails.get() {
                bail!("no");
            }
            Ok(())
        }
    }

    #[test]
    fn what_is_published_is_live() {
        let mut store = store();
        // SAFETY: the store lives, and nothing else refers to it.
        let mut publisher = unsafe { Publisher::new((&mut store).into(), Counting::default()) };
        for features in 1..6 {
            assert_eq!(publisher.publish(&of(features)).unwrap(), features);
            let live = publisher.live();
            assert_eq!(
                (live.generation, live.arm[0].task.features),
                (features, features)
            );
        }
    }

    #[test]
    fn generations_only_grow() {
        let mut store = store();
        // SAFETY: as above.
        let mut publisher = unsafe { Publisher::new((&mut store).into(), Counting::default()) };
        for (known, next) in [(0, 1), (7, 8), (3, 9)] {
            let image = policy_image {
                generation: known,
                ..of(1)
            };
            assert_eq!(publisher.publish(&image).unwrap(), next);
            assert_eq!(publisher.live().generation, next);
        }
    }

    /// A slot that may still be read is never written, however often a caller tries.
    #[test]
    fn without_a_grace_period_nothing_is_overwritten() {
        let mut store = store();
        let grace = Counting::default();
        // SAFETY: as above.
        let mut publisher = unsafe { Publisher::new((&mut store).into(), grace.clone()) };
        publisher.publish(&of(1)).unwrap();
        // One wait before the first publication: a former publisher of the store may have left
        // readers.
        assert_eq!(grace.waits.get(), 2);
        grace.fails.set(true);
        assert!(publisher.publish(&of(2)).is_err());
        assert_eq!(publisher.live().arm[0].task.features, 2);
        for features in 3..6 {
            assert!(publisher.publish(&of(features)).is_err());
            assert_eq!(publisher.live().arm[0].task.features, 2);
        }
        grace.fails.set(false);
        assert_eq!(publisher.publish(&of(6)).unwrap(), 3);
        assert_eq!(publisher.live().arm[0].task.features, 6);
    }

    const READERS: usize = 2;

    /// Each reader counts its reads; a wait is over when every count has changed.
    struct Reads<'a>(&'a [AtomicU64; READERS]);

    impl Grace for Reads<'_> {
        fn wait(&mut self) -> Result<()> {
            fence(Ordering::SeqCst);
            for reads in self.0 {
                let before = reads.load(Ordering::SeqCst);
                // Two, because the first may have begun before the flip.
                while reads.load(Ordering::SeqCst) < before + 2 {
                    thread::yield_now();
                }
            }
            Ok(())
        }
    }

    /// Reads as the scheduler does: loads the index once, then reads what it leads to. In between
    /// there is time for many flips.
    fn torn(store: NonNull<policy_store>) -> bool {
        let store = store.as_ptr();
        // SAFETY: the test's store outlives its threads.
        unsafe {
            let index = AtomicU32::from_ptr(&raw mut (*store).index).load(Ordering::Acquire);
            let arm = &raw const (*store).slot[index as usize % 2].arm[0];
            let features = (&raw const (*arm).task.features).read_volatile();
            (0..50).for_each(|_| thread::yield_now());
            let last = (&raw const (*arm).migration_cost_ns).read_volatile();
            u64::from(features) != last
        }
    }

    #[derive(Clone, Copy)]
    struct Shared(NonNull<policy_store>);

    // SAFETY: shared on purpose, as with the kernel.
    unsafe impl Send for Shared {}

    impl Shared {
        fn get(self) -> NonNull<policy_store> {
            self.0
        }
    }

    #[test]
    fn no_reader_sees_parts_of_two() {
        const FLIPS: u32 = 200;
        let mut store = store();
        let shared = Shared((&mut store).into());
        let reads: [AtomicU64; READERS] = Default::default();
        let (stop, torn_reads) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|s| {
            for reads in &reads {
                let (stop, torn_reads) = (&stop, &torn_reads);
                s.spawn(move || {
                    let store = shared.get();
                    while !stop.load(Ordering::Relaxed) {
                        torn_reads.fetch_add(torn(store).into(), Ordering::Relaxed);
                        reads.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
            while reads.iter().any(|r| r.load(Ordering::SeqCst) == 0) {
                thread::yield_now();
            }
            // SAFETY: the store outlives the scope; readers only read.
            let mut publisher = unsafe { Publisher::new(shared.get(), Reads(&reads)) };
            for features in 1..=FLIPS {
                publisher.publish(&of(features)).unwrap();
            }
            stop.store(true, Ordering::Relaxed);
            assert_eq!(publisher.live().generation, FLIPS);
        });
        assert_eq!(torn_reads.load(Ordering::Relaxed), 0);
    }
}
