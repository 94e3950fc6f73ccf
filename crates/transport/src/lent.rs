//! Buffers that the connections of a thread lend each other: of ten thousand that think a few are at work, and each with
//! buffers of its own for what it sends in a minute would hold a hundred megabytes.

use std::cell::RefCell;

/// So many are kept.
const MOST: usize = 64;
/// One that grew beyond this is not.
const AMPLE: usize = 64 << 10;

thread_local! {
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// An empty buffer, with the room that whoever had it before has made.
pub fn lent() -> Vec<u8> {
    let mut buffer = SPARE.with_borrow_mut(Vec::pop).unwrap_or_default();
    buffer.clear();
    buffer
}

/// Takes a buffer that is not needed now.
pub fn give_back(buffer: Vec<u8>) {
    if buffer.capacity() == 0 || buffer.capacity() > AMPLE {
        return;
    }
    SPARE.with_borrow_mut(|spare| {
        if spare.len() < MOST {
            spare.push(buffer);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_is_lent_again_and_nothing_without_end() {
        give_back(Vec::new());
        assert_eq!(lent().capacity(), 0);
        let mut buffer = Vec::with_capacity(3000);
        buffer.extend_from_slice(b"of another");
        give_back(buffer);
        let again = lent();
        assert!(again.is_empty() && again.capacity() >= 3000);
        give_back(Vec::with_capacity(AMPLE + 1));
        (0..2 * MOST).for_each(|_| give_back(Vec::with_capacity(10)));
        SPARE.with_borrow(|spare| assert_eq!(spare.len(), MOST));
    }
}
