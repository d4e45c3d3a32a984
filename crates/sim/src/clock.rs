// SPDX-License-Identifier: GPL-2.0-only
//! The simulator's time: a slot for each thing that can happen, and which of them is due first.
//! Setting a slot again replaces its time, so no stale event is ever met. Ties go to the slot that
//! was set first.

/// Not in the heap.
const OUT: u32 = u32::MAX;
/// Children of a node. The heap is shallow, and a node's children share a cache line.
const WAYS: usize = 4;

/// The time and the slots. Times are ns since the start of the run.
pub struct Clock {
    now: u64,
    /// When each slot is due, and how many slots had been set before it.
    due: Vec<(u64, u64)>,
    heap: Vec<u32>,
    /// The position of each slot in the heap.
    place: Vec<u32>,
    /// How many times slots have been set.
    set: u64,
}

impl Clock {
    pub fn new(slots: usize) -> Clock {
        Clock {
            now: 0,
            due: vec![(0, 0); slots],
            heap: Vec::with_capacity(slots),
            place: vec![OUT; slots],
            set: 0,
        }
    }

    pub fn now(&self) -> u64 {
        self.now
    }

    /// Makes the slot due at `at`, instead of when it was due before.
    pub fn set(&mut self, slot: usize, at: u64) {
        assert!(
            at >= self.now,
            "slot {slot} is set to the past: {at}, now {}",
            self.now
        );
        self.due[slot] = (at, self.set);
        self.set += 1;
        let place = self.place[slot];
        let place = if place == OUT {
            self.heap.push(slot as u32);
            self.heap.len() - 1
        } else {
            place as usize
        };
        let place = self.up(place);
        self.down(place);
    }

    pub fn clear(&mut self, slot: usize) {
        let place = self.place[slot];
        if place == OUT {
            return;
        }
        self.place[slot] = OUT;
        let last = self.heap.pop().expect("it is in the heap");
        if last as usize == slot {
            return;
        }
        self.heap[place as usize] = last;
        let place = self.up(place as usize);
        self.down(place);
    }

    /// When the slot is due.
    pub fn due(&self, slot: usize) -> Option<u64> {
        (self.place[slot] != OUT).then(|| self.due[slot].0)
    }

    /// When the first slot is due.
    pub fn next(&self) -> Option<u64> {
        self.heap.first().map(|&slot| self.due[slot as usize].0)
    }

    /// Advances to the time of the first slot, and clears it.
    pub fn pop(&mut self) -> Option<usize> {
        let slot = *self.heap.first()? as usize;
        self.now = self.due[slot].0;
        self.clear(slot);
        Some(slot)
    }

    /// Advances to `at`. Nothing may be due before.
    pub fn advance(&mut self, at: u64) {
        let due = self.next().is_none_or(|next| next >= at);
        assert!(
            due && at >= self.now,
            "time goes over what is due before {at}"
        );
        self.now = at;
    }

    fn up(&mut self, mut at: usize) -> usize {
        let slot = self.heap[at];
        while at > 0 {
            let parent = (at - 1) / WAYS;
            if self.key(self.heap[parent]) <= self.key(slot) {
                break;
            }
            self.put(at, self.heap[parent]);
            at = parent;
        }
        self.put(at, slot);
        at
    }

    fn down(&mut self, mut at: usize) {
        let slot = self.heap[at];
        loop {
            let first = at * WAYS + 1;
            let end = (first + WAYS).min(self.heap.len());
            let Some(least) = (first..end).min_by_key(|&c| self.key(self.heap[c])) else {
                break;
            };
            if self.key(slot) <= self.key(self.heap[least]) {
                break;
            }
            self.put(at, self.heap[least]);
            at = least;
        }
        self.put(at, slot);
    }

    fn key(&self, slot: u32) -> (u64, u64) {
        self.due[slot as usize]
    }

    fn put(&mut self, at: usize, slot: u32) {
        self.heap[at] = slot;
        self.place[slot as usize] = at as u32;
    }
}
