//! Prepared statements of one connection.

use crate::mysql::answers::Template;
use crate::mysql::resultset::Described;
use crate::sql::Statement;

/// What executing a prepared statement is answered with.
#[derive(Debug)]
pub enum Prepared {
    /// The fixed result set.
    Rows,
    /// A row was changed.
    Changed,
    /// An answer of its own, made when it was prepared.
    Own(Box<Template>),
    /// What this kind of statement does to the connection.
    Acts(Statement),
}

/// A prepared statement's description, as its preparation is answered with.
#[derive(Debug)]
pub struct Description {
    /// The columns of its rows.
    pub columns: Vec<Described>,
    /// The values that it leaves open.
    pub placeholders: usize,
}

/// The statements that a connection has prepared; their ids count from 1.
#[derive(Debug, Default)]
pub struct Statements {
    slots: Vec<Option<Prepared>>,
    last: u32,
}

/// MariaDB's id of the statement that was prepared last, used before its answer is known.
const LAST: u32 = u32::MAX;

impl Statements {
    /// Keeps a statement and gives its id.
    pub fn add(&mut self, prepared: Prepared) -> u32 {
        let slot = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        if slot == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[slot] = Some(prepared);
        self.last = slot as u32 + 1;
        self.last
    }

    /// A statement by its id.
    #[inline]
    pub fn get(&self, id: u32) -> Option<&Prepared> {
        let id = if id == LAST { self.last } else { id };
        self.slots.get((id as usize).checked_sub(1)?)?.as_ref()
    }

    /// Forgets a statement.
    pub fn close(&mut self, id: u32) {
        let id = if id == LAST { self.last } else { id };
        if let Some(slot) = (id as usize).checked_sub(1).and_then(|slot| self.slots.get_mut(slot)) {
            *slot = None;
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.slots.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back_only_after_their_end() {
        let mut statements = Statements::default();
        assert_eq!([statements.add(Prepared::Rows), statements.add(Prepared::Changed)], [1, 2]);
        assert!(matches!(statements.get(LAST), Some(Prepared::Changed)));
        statements.close(1);
        assert!(statements.get(1).is_none());
        assert_eq!(statements.add(Prepared::Rows), 1);
        assert!(statements.get(0).is_none() && statements.get(3).is_none());
    }
}
