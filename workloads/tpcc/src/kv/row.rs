//! The layout of rows in values: first the numbers, eight bytes each, then the end of each text, then the texts. The
//! key's columns are in the key.

use std::sync::LazyLock;

use rumba_engine_api::sql::Param;
use rumba_engine_api::value::DateTime;

use super::NOTHING;
use crate::tables::{NONE, Table, Type};

#[derive(Clone, Copy, Debug)]
enum ColumnLocation {
    Key,
    Number(usize),
    Text(usize),
}

/// The locations of a table's columns.
#[derive(Debug)]
pub struct Layout {
    places: Vec<ColumnLocation>,
    numbers: usize,
    texts: usize,
}

static LAYOUTS: LazyLock<[Layout; Table::ALL.len()]> = LazyLock::new(|| Table::ALL.map(Layout::of));

pub fn layout(table: Table) -> &'static Layout {
    &LAYOUTS[table as usize]
}

/// A date and time as a number with the same order.
pub fn packed(time: DateTime) -> i64 {
    let parts = [
        (i64::from(time.year()), 46),
        (i64::from(time.month()), 42),
        (i64::from(time.day()), 37),
        (i64::from(time.hour()), 32),
        (i64::from(time.minute()), 26),
        (i64::from(time.second()), 20),
        (i64::from(time.subsec_nanosecond()) / 1000, 0),
    ];
    parts.into_iter().fold(0, |packed, (part, shift)| packed | part << shift)
}

impl Layout {
    fn of(table: Table) -> Self {
        let (mut numbers, mut texts) = (0, 0);
        let next = |count: &mut usize| {
            *count += 1;
            *count - 1
        };
        let places = table.columns().iter().map(|(_, kind)| match kind {
            Type::Key => ColumnLocation::Key,
            kind if kind.is_text() => ColumnLocation::Text(next(&mut texts)),
            _ => ColumnLocation::Number(next(&mut numbers)),
        });
        let places = places.collect();
        Self { places, numbers, texts }
    }

    /// Replaces `value` by a row's; its values are in the order of the columns, exact numbers in their smallest units.
    pub fn put(&self, row: &[Param<'_>], value: &mut Vec<u8>) {
        value.clear();
        for (param, place) in row.iter().zip(&self.places) {
            if let ColumnLocation::Number(_) = place {
                let number = match param {
                    Param::Null => NONE,
                    Param::Timestamp(time) => packed(*time),
                    other => other.int(),
                };
                value.extend_from_slice(&number.to_le_bytes());
            }
        }
        let ends = value.len();
        value.resize(ends + 2 * self.texts, 0);
        let start = value.len();
        for (param, place) in row.iter().zip(&self.places) {
            if let ColumnLocation::Text(nth) = place {
                value.extend_from_slice(param.bytes());
                let end = (value.len() - start) as u16;
                value[ends + 2 * nth..][..2].copy_from_slice(&end.to_le_bytes());
            }
        }
        if value.is_empty() {
            value.extend_from_slice(NOTHING);
        }
    }

    /// A numeric column; [`NONE`] for NULL, and if the value is too short to be a row.
    pub fn number(&self, value: &[u8], column: usize) -> i64 {
        let ColumnLocation::Number(nth) = self.places[column] else { return NONE };
        value.get(8 * nth..8 * nth + 8).and_then(|bytes| bytes.try_into().ok()).map_or(NONE, i64::from_le_bytes)
    }

    pub fn set(&self, value: &mut [u8], column: usize, number: i64) {
        if let ColumnLocation::Number(nth) = self.places[column]
            && let Some(place) = value.get_mut(8 * nth..8 * nth + 8)
        {
            place.copy_from_slice(&number.to_le_bytes());
        }
    }

    pub fn add(&self, value: &mut [u8], column: usize, number: i64) {
        let before = self.number(value, column);
        self.set(value, column, before + number);
    }

    pub fn text<'v>(&self, value: &'v [u8], column: usize) -> &'v [u8] {
        let ColumnLocation::Text(nth) = self.places[column] else { return &[] };
        let (from, to) = self.span(value, nth);
        value.get(from..to).unwrap_or_default()
    }

    pub fn set_last_text(&self, value: &mut Vec<u8>, text: &[u8]) {
        let Some(last) = self.texts.checked_sub(1) else { return };
        let (from, _) = self.span(value, last);
        value.truncate(from);
        value.extend_from_slice(text);
        let (ends, start) = (8 * self.numbers, 8 * self.numbers + 2 * self.texts);
        let end = (value.len() - start) as u16;
        value[ends + 2 * last..][..2].copy_from_slice(&end.to_le_bytes());
    }

    fn span(&self, value: &[u8], nth: usize) -> (usize, usize) {
        let (ends, start) = (8 * self.numbers, 8 * self.numbers + 2 * self.texts);
        let end = |nth: usize| {
            let bytes = value.get(ends + 2 * nth..ends + 2 * nth + 2).and_then(|bytes| bytes.try_into().ok());
            start + usize::from(bytes.map_or(0, u16::from_le_bytes))
        };
        (nth.checked_sub(1).map_or(start, end), end(nth))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_and_keys_without_a_source_are_read() {
        let mut value = Vec::new();
        layout(Table::NewOrder).put(&[Param::Int(1), Param::Int(2), Param::Int(3)], &mut value);
        assert_eq!(value, NOTHING);
        let now = crate::draw::now();
        let row = [1, 2, 3, 4].map(Param::Int);
        let row = [row[0], row[1], row[2], row[3], Param::Timestamp(now), Param::Null, Param::Int(5), Param::Int(1)];
        let orders = layout(Table::Orders);
        orders.put(&row, &mut value);
        assert_eq!((orders.number(&value, 5), orders.number(&value, 4)), (NONE, packed(now)));
        // Bytes that are no row have no columns.
        assert_eq!((orders.number(&[], 4), layout(Table::Item).text(&[1, 2], 2)), (NONE, &[][..]));
    }
}
