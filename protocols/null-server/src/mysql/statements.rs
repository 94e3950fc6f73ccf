//! Prepared statements of one connection.

use crate::mysql::answers::Template;
use crate::mysql::resultset::Described;
use crate::sql::Statement;

/// The answer to executing a prepared statement.
#[derive(Debug)]
pub enum Prepared {
    /// The fixed result set.
    Rows,
    /// One changed row.
    Changed,
    /// A specific answer, made when it was prepared.
    Own(Box<Template>),
    /// The effect of this statement on the connection.
    Acts(Statement),
}

/// A prepared statement's description in the answer to COM_STMT_PREPARE.
#[derive(Debug)]
pub struct Description {
    /// The columns of its rows.
    pub columns: Vec<Described>,
    /// The number of placeholders.
    pub placeholders: usize,
}

/// The prepared statements of a connection; their ids count from 1.
#[derive(Debug, Default)]
pub struct Statements {
    slots: Vec<Option<Prepared>>,
    last: u32,
}

/// MariaDB's id for the last prepared statement, used before its answer arrives.
const LAST: u32 = u32::MAX;

impl Statements {
    /// Stores a statement and returns its id.
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

    /// Removes a statement.
    pub fn close(&mut self, id: u32) {
        let id = if id == LAST { self.last } else { id };
        if let Some(slot) = (id as usize).checked_sub(1).and_then(|slot| self.slots.get_mut(slot)) {
            *slot = None;
        }
    }

    /// Removes all statements.
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
