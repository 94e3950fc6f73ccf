//! A client's operations must not pay for the harness: once warmed up, a read
//! or a write through the session allocates nothing on the Rust side.
#![allow(clippy::unwrap_used)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::*;
use rumba_core::kv::Scan;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

#[test]
fn a_warmed_up_session_allocates_nothing() {
    let (_dir, instance) = open();
    let mut session = session(&*instance);
    let mut value = Vec::new();
    let mut sum = 0u64;
    let mut round = |rounds: u32| {
        for id in 0..rounds {
            let key = (id % 100).to_be_bytes();
            session.begin().unwrap();
            session.get_for_update(ROWS, &key, &mut value).unwrap();
            session.put(ROWS, &key, &[7; 300]).unwrap();
            session.delete(INDEX, &key).unwrap();
            session.commit().unwrap();
            session.get(ROWS, &key, &mut value).unwrap();
            let keys: [&[u8]; 2] = [&key, b"absent"];
            session.multi_get(ROWS, &keys, &mut value, &mut |_, value| sum += value.len() as u64).unwrap();
            let scan = Scan { from: &key, to: &[0xff], limit: 10 };
            session.scan(ROWS, scan, &mut |key, _| sum += key.len() as u64).unwrap();
        }
    };
    assert!(allocations(|| round(100)) > 0, "the counter counts");
    assert_eq!(allocations(|| round(1000)), 0);
    assert!(sum > 0);
}
