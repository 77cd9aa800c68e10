//! Memory that all layers of an image share: whatever an image holds, this program stays small.

use std::sync::{Condvar, Mutex, PoisonError};

/// With the program itself, its threads and buffers less than 64 MB.
const ALL: usize = 46 << 20;

/// What is left of the memory.
pub(super) struct Budget {
    state: Mutex<State>,
    freed: Condvar,
}

struct State {
    left: usize,
    /// Held for a while only: windows of decompressors.
    lent: usize,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self::of(ALL)
    }

    pub(super) fn of(bytes: usize) -> Self {
        Self { state: Mutex::new(State { left: bytes, lent: 0 }), freed: Condvar::new() }
    }

    /// Takes memory for good; `false`: there is not so much.
    pub(super) fn take(&self, bytes: usize) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let enough = state.left >= bytes;
        if enough {
            state.left -= bytes;
        }
        enough
    }

    /// Gives back what was taken for something that is not kept after all.
    pub(super) fn put(&self, bytes: usize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.left += bytes;
        drop(state);
        self.freed.notify_all();
    }

    /// Takes memory for a while without waiting, so that whoever has some may wait for more; `None`: there is not so
    /// much.
    pub(super) fn hold(&self, bytes: usize) -> Option<Held<'_>> {
        self.take(bytes).then(|| Held { of: self, bytes })
    }

    /// Takes memory for a while, and waits until others have given theirs back; `None`: that would not help.
    pub(super) fn lend(&self, bytes: usize) -> Option<Loan<'_>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.left < bytes {
            if state.lent == 0 {
                return None;
            }
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.left -= bytes;
        state.lent += bytes;
        Some(Loan { of: self, bytes })
    }
}

/// Memory taken for a while.
pub(super) struct Held<'a> {
    of: &'a Budget,
    bytes: usize,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.of.put(self.bytes);
    }
}

/// Memory lent for a while.
pub(super) struct Loan<'a> {
    of: &'a Budget,
    pub(super) bytes: usize,
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        let mut state = self.of.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.left += self.bytes;
        state.lent -= self.bytes;
        drop(state);
        self.of.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loans_are_waited_for_and_what_can_never_be_had_is_not() {
        let budget = Budget::of(100);
        assert!(budget.take(30) && !budget.take(71));
        assert!(budget.lend(71).is_none());
        drop(budget.hold(70));
        assert!(budget.hold(71).is_none() && budget.hold(71).is_none());
        let first = budget.lend(60).unwrap();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| budget.lend(50).is_some());
            drop(first);
            assert!(second.join().unwrap());
        });
        budget.put(30);
        assert!(budget.take(100));
    }
}
