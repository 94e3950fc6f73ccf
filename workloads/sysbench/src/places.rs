//! Stable places for objects whose addresses scripts hold.

use std::ptr::NonNull;

/// Objects that do not move until all of them are dropped. They are reached only through the addresses returned by
/// `put`. They are not kept as boxes, because moving a box, for example into a list, would make earlier addresses
/// invalid.
pub(crate) struct Places<T>(Vec<NonNull<T>>);

impl<T> Places<T> {
    /// Puts an object in a separate place, and returns its address.
    pub(crate) fn put(&mut self, made: T) -> *mut T {
        let place = NonNull::from(Box::leak(Box::new(made)));
        self.0.push(place);
        place.as_ptr()
    }

    pub(crate) fn addresses(&self) -> impl Iterator<Item = *mut T> {
        self.0.iter().map(|place| place.as_ptr())
    }
}

impl<T> Default for Places<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Drop for Places<T> {
    fn drop(&mut self) {
        // SAFETY: each was a box, is here once, and is not used any more.
        self.addresses().for_each(|place| drop(unsafe { Box::from_raw(place) }));
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    #[test]
    fn values_keep_their_address_until_all_are_dropped() {
        let witness = Rc::new(());
        let mut places = Places::default();
        let first = places.put((1, witness.clone()));
        for number in 2..100 {
            places.put((number, witness.clone()));
        }
        // SAFETY: it is there for as long as the places.
        unsafe { (*first).0 += 41 };
        let found: Vec<i32> = places.addresses().map(|place| unsafe { (*place).0 }).collect();
        assert_eq!((found.len(), found[0], found[98]), (99, 42, 99));
        assert_eq!(places.addresses().next(), Some(first));
        drop(places);
        assert_eq!(Rc::strong_count(&witness), 1);
    }
}
