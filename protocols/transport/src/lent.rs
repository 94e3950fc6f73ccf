//! A pool of buffers for the connections of a thread. Among ten thousand connections in think time only a few are
//! active. Separate send buffers for all of them would take a hundred megabytes.

use std::cell::RefCell;

/// The most buffers kept.
const MOST: usize = 64;
/// Buffers larger than this are not kept.
const AMPLE: usize = 64 << 10;

thread_local! {
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Takes an empty buffer, which keeps the capacity from its earlier use.
pub fn lent() -> Vec<u8> {
    let mut buffer = SPARE.with_borrow_mut(Vec::pop).unwrap_or_default();
    buffer.clear();
    buffer
}

/// Returns an unused buffer to the pool.
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
    fn returned_buffers_are_reused_up_to_a_limit() {
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
