//! Lists without duplicates.

/// The items without duplicates, in the order of their first appearance.
pub fn distinct<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut all = Vec::new();
    for item in items {
        if !all.contains(&item) {
            all.push(item);
        }
    }
    all
}

/// The value of a key in a list that keeps the order in which its keys were added.
pub fn entry<K: PartialEq, T: Default>(list: &mut Vec<(K, T)>, key: K) -> &mut T {
    let index = list.iter().position(|(known, _)| *known == key).unwrap_or(list.len());
    if index == list.len() {
        list.push((key, T::default()));
    }
    &mut list[index].1
}
