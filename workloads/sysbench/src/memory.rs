//! The memory of interpreters.
//!
//! An interpreter consists of some 1,500 pieces, most of them of 24 to 48 bytes. LuaJIT passes the length of every
//! piece that it frees, so no header is needed. With malloc's headers and rounding, a client's interpreter would take
//! an eighth more, and hundreds of clients each have one.
//!
//! A freed piece is kept for the next one of its length, for any interpreter of the thread. A thread that ends leaves
//! its pieces to the next that begins.

use std::alloc::{Layout, alloc, dealloc, realloc};
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

/// The alignment that LuaJIT relies on.
const ALIGN: usize = 8;
/// The maximum length of a pooled piece. For longer pieces the allocator's header does not matter.
const LONGEST: usize = 1 << 10;
/// The size of requests to the system; only touched pages use memory.
const CHUNK: usize = 64 << 10;

/// A free piece: it begins with the address of another one of its length.
type Piece = *mut u8;

/// The pieces of a thread.
struct Pool {
    /// By length, in units of [`ALIGN`].
    free: [Piece; LONGEST / ALIGN + 1],
    /// The part that is not cut into pieces yet.
    rest: *mut u8,
    rest_bytes: usize,
    /// Pieces given out so far.
    given: u64,
}

// SAFETY: its pieces have no other user.
unsafe impl Send for Pool {}

/// The pools of ended threads.
static LEFT: Mutex<Vec<Pool>> = Mutex::new(Vec::new());

/// The current thread's pool, while it has one.
struct Own(UnsafeCell<Option<Pool>>);

thread_local! {
    static OWN: Own = const { Own(UnsafeCell::new(None)) };
}

impl Drop for Own {
    fn drop(&mut self) {
        leave(self.0.get_mut().take());
    }
}

fn leave(pool: Option<Pool>) {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner).extend(pool);
}

fn left() -> Pool {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_else(Pool::new)
}

impl Pool {
    fn new() -> Self {
        Self { free: [null_mut(); LONGEST / ALIGN + 1], rest: null_mut(), rest_bytes: 0, given: 0 }
    }

    /// A piece of this many bytes, at most [`LONGEST`]; null if the system has no memory.
    #[inline]
    fn take(&mut self, bytes: usize) -> Piece {
        self.given += 1;
        let class = bytes.div_ceil(ALIGN);
        let piece = self.free[class];
        if piece.is_null() {
            return self.cut(class * ALIGN);
        }
        // SAFETY: a free piece begins with the next one's address.
        self.free[class] = unsafe { piece.cast::<Piece>().read() };
        piece
    }

    /// Cuts a piece off the unused part.
    fn cut(&mut self, bytes: usize) -> Piece {
        if self.rest_bytes < bytes {
            if self.rest_bytes > 0 {
                self.give(self.rest, self.rest_bytes);
            }
            // SAFETY: the layout is not empty.
            self.rest = unsafe { alloc(layout(CHUNK)) };
            self.rest_bytes = if self.rest.is_null() { 0 } else { CHUNK };
            if self.rest.is_null() {
                return null_mut();
            }
        }
        let piece = self.rest;
        // SAFETY: this many bytes are left.
        self.rest = unsafe { self.rest.add(bytes) };
        self.rest_bytes -= bytes;
        piece
    }

    /// Keeps a piece for the next request of its length.
    #[inline]
    fn give(&mut self, piece: Piece, bytes: usize) {
        let class = bytes.div_ceil(ALIGN);
        // SAFETY: the piece has no user any more, and has room for an address: its length is that of its class.
        unsafe { piece.cast::<Piece>().write(self.free[class]) };
        self.free[class] = piece;
    }
}

fn layout(bytes: usize) -> Layout {
    // SAFETY: the alignment is a power of two, and the callers' lengths are below half the address space.
    unsafe { Layout::from_size_align_unchecked(bytes, ALIGN) }
}

/// Uses the current thread's pool.
#[inline]
fn with<T>(mut work: impl FnMut(&mut Pool) -> T) -> T {
    // SAFETY: the pool belongs to the thread, and its uses do not call back into this function.
    let done = OWN.try_with(|own| work(unsafe { &mut *own.0.get() }.get_or_insert_with(left)));
    done.unwrap_or_else(|_| {
        // The thread is about to end, and its pool has been given away already.
        let mut pool = left();
        let done = work(&mut pool);
        leave(Some(pool));
        done
    })
}

/// The number of pieces given to interpreters in this thread; tests use it to count Lua's allocations.
pub fn given() -> u64 {
    with(|pool| pool.given)
}

/// LuaJIT's allocator (`lua_Alloc`): makes, resizes and frees pieces.
///
/// # Safety
/// `piece` is null or came from here with `old_bytes`, and is not used any more.
pub(crate) unsafe extern "C" fn allocate(
    _: *mut c_void,
    piece: *mut c_void,
    old_bytes: usize,
    bytes: usize,
) -> *mut c_void {
    let piece: Piece = piece.cast();
    // SAFETY: as above.
    unsafe {
        match (piece.is_null(), bytes) {
            (true, 0) => null_mut(),
            (true, _) => make(bytes),
            (false, 0) => {
                free(piece, old_bytes);
                null_mut()
            }
            (false, _) => change(piece, old_bytes, bytes),
        }
    }
    .cast()
}

unsafe fn make(bytes: usize) -> Piece {
    match bytes {
        ..=LONGEST => with(|pool| pool.take(bytes)),
        // SAFETY: the layout is not empty.
        _ if isize::try_from(bytes).is_ok() => unsafe { alloc(layout(bytes)) },
        _ => null_mut(),
    }
}

unsafe fn free(piece: Piece, bytes: usize) {
    match bytes {
        // LuaJIT never had anything of no length.
        0 => {}
        1..=LONGEST => with(|pool| pool.give(piece, bytes)),
        // SAFETY: it came from there with this length.
        _ => unsafe { dealloc(piece, layout(bytes)) },
    }
}

unsafe fn change(piece: Piece, old_bytes: usize, bytes: usize) -> Piece {
    if old_bytes > LONGEST && bytes > LONGEST {
        if isize::try_from(bytes).is_err() {
            return null_mut();
        }
        // SAFETY: it came from there with this length.
        return unsafe { realloc(piece, layout(old_bytes), bytes) };
    }
    if old_bytes <= LONGEST && old_bytes.div_ceil(ALIGN) == bytes.div_ceil(ALIGN) {
        return piece;
    }
    // SAFETY: both are at least as long as the copy, and do not overlap.
    unsafe {
        let made = make(bytes);
        if !made.is_null() {
            piece.copy_to_nonoverlapping(made, old_bytes.min(bytes));
            free(piece, old_bytes);
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Guards against overlapping pieces: in any order of allocating, resizing and freeing, a piece keeps its
        /// content.
        #[test]
        fn pieces_keep_their_contents(steps in proptest::collection::vec((0_usize..3, 1_usize..3000), 1..300)) {
            let mut held: Vec<(*mut u8, usize, u8)> = Vec::new();
            for (number, &(what, bytes)) in steps.iter().enumerate() {
                let mark = number as u8;
                // SAFETY: pieces are written to where they are, and freed once.
                unsafe {
                    match (what, held.is_empty()) {
                        (0, _) | (_, true) => {
                            let piece: *mut u8 = allocate(null_mut(), null_mut(), 0, bytes).cast();
                            piece.write_bytes(mark, bytes);
                            held.push((piece, bytes, mark));
                        }
                        (1, _) => {
                            let (piece, old, mark) = held.swap_remove(bytes % held.len());
                            let piece: *mut u8 = allocate(null_mut(), piece.cast(), old, bytes).cast();
                            let kept = std::slice::from_raw_parts(piece, old.min(bytes));
                            prop_assert!(kept.iter().all(|&byte| byte == mark));
                            piece.write_bytes(mark, bytes);
                            held.push((piece, bytes, mark));
                        }
                        _ => {
                            let (piece, bytes, _) = held.swap_remove(bytes % held.len());
                            allocate(null_mut(), piece.cast(), bytes, 0);
                        }
                    }
                    for &(piece, bytes, mark) in &held {
                        prop_assert_eq!(piece as usize % ALIGN, 0);
                        prop_assert!(std::slice::from_raw_parts(piece, bytes).iter().all(|&byte| byte == mark));
                    }
                }
            }
            for (piece, bytes, _) in held {
                // SAFETY: as above.
                unsafe { allocate(null_mut(), piece.cast(), bytes, 0) };
            }
        }
    }

    #[test]
    fn a_thread_that_ends_leaves_its_pieces_to_the_next() {
        const BYTES: usize = 1000;
        let use_and_free = || {
            // SAFETY: it is freed once.
            unsafe {
                let piece = allocate(null_mut(), null_mut(), 0, BYTES);
                allocate(null_mut(), piece, BYTES, 0);
                piece as usize
            }
        };
        // Other tests' threads may take and leave pools meanwhile, but their number is finite.
        let mut seen = std::collections::BTreeSet::new();
        let again = (0..100).any(|_| !seen.insert(std::thread::spawn(use_and_free).join().unwrap()));
        assert!(again, "{seen:x?}");
    }
}
