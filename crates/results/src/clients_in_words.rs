//! The clients of rows in words: `4 clients`, `1→4 clients`.

use crate::client_steps::in_words;
use crate::comparison::{Row, Summary};

impl Row {
    /// Its clients in words.
    pub fn clients_in_words(&self) -> String {
        in_words(self.clients, self.client_steps.as_ref())
    }
}

impl Summary {
    /// One of its numbers of clients in words.
    pub fn clients_in_words(&self, clients: u32) -> String {
        let row = self.rows.iter().find(|row| row.clients == clients);
        in_words(clients, row.and_then(|row| row.client_steps.as_ref()))
    }
}
