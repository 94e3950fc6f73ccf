//! Texts that scripts read through an address.

use std::ffi::c_char;

/// The minimum size of a place: most error messages fit.
const LEAST_BYTES: usize = 64;

/// A text as a C string. A script may keep its address and read the message there, the same one or a later one. A text
/// that does not fit gets a new place, and the old place stays. Each place is at least twice as large as the last, so
/// all of them together are less than twice the largest.
#[derive(Default)]
pub(crate) struct StableCString {
    places: Vec<Box<[u8]>>,
}

impl StableCString {
    /// The address of the text.
    pub(crate) fn as_ptr(&self) -> *const c_char {
        self.places.last().map_or(c"".as_ptr(), |place| place.as_ptr().cast())
    }

    /// Stores this text and returns its address. NUL bytes, which C takes for the end, are written as `\0`.
    pub(crate) fn notify(&mut self, words: &str) -> *const c_char {
        let words = words.replace('\0', "\\0");
        let bytes = words.len() + 1;
        if self.places.last().is_none_or(|place| place.len() < bytes) {
            self.places.push(vec![0; bytes.next_power_of_two().max(LEAST_BYTES)].into_boxed_slice());
        }
        if let Some(place) = self.places.last_mut() {
            place[..words.len()].copy_from_slice(words.as_bytes());
            place[words.len()] = 0;
        }
        self.as_ptr()
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    fn read<'a>(words: *const c_char) -> &'a str {
        // SAFETY: they end with a zero, and are there for as long as the test's `StableCString`.
        unsafe { CStr::from_ptr(words) }.to_str().unwrap()
    }

    #[test]
    fn error_text_pointer_stays_valid_after_later_errors() {
        let mut reported = StableCString::default();
        assert_eq!(read(reported.as_ptr()), "");
        let first = reported.notify("no such table");
        assert_eq!(reported.notify("no"), first, "there is room for it");
        let long = "x".repeat(1000);
        let second = reported.notify(&long);
        assert_eq!((read(first), read(second)), ("no", long.as_str()));
        assert_eq!(reported.notify("a\0b"), second);
        assert_eq!((read(first), read(second), read(reported.as_ptr())), ("no", "a\\0b", "a\\0b"));
        // A text that grows by one byte each time does not get a new place each time.
        for bytes in 0..5000 {
            reported.notify(&"x".repeat(bytes));
        }
        assert!(reported.places.len() <= 8, "{}", reported.places.len());
    }
}
