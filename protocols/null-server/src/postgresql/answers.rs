//! Answers that are made once and copied for every request.

use super::message::{put, put_tag, put_text};
use crate::config::{ColumnKind, Config};
use crate::text::groups_of_digits;

/// `bigint` and `text`, by the numbers of their types.
pub const INT8: u32 = 20;
const TEXT: u32 = 25;

/// The format of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// As text.
    Text,
    /// In their types' binary form.
    Binary,
}

/// The server's answers, made at its start.
#[derive(Debug)]
pub struct Answers {
    /// RowDescription of the fixed result set, by format.
    described: [Vec<u8>; 2],
    /// Its rows and their end, by format.
    rows: [Vec<u8>; 2],
}

impl Answers {
    /// The answers of a server with this configuration.
    pub fn new(config: &Config) -> Self {
        let both = [Format::Text, Format::Binary];
        Self { described: both.map(|format| described(config, format)), rows: both.map(|format| rows(config, format)) }
    }

    /// The description of the fixed result set's columns.
    pub fn described(&self, format: Format) -> &[u8] {
        &self.described[format as usize]
    }

    /// The fixed result set's rows and their end.
    #[inline]
    pub fn rows(&self, format: Format) -> &[u8] {
        &self.rows[format as usize]
    }
}

fn described(config: &Config, format: Format) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, b'T', |out| {
        out.extend_from_slice(&(config.columns.len() as u16).to_be_bytes());
        for column in &config.columns {
            put_text(out, &column.name);
            let (oid, width) = match column.kind {
                ColumnKind::Int => (INT8, 8_i16),
                ColumnKind::Text => (TEXT, -1),
            };
            // The column belongs to no table.
            out.extend_from_slice(&[0; 6]);
            out.extend_from_slice(&oid.to_be_bytes());
            out.extend_from_slice(&width.to_be_bytes());
            out.extend_from_slice(&(-1_i32).to_be_bytes());
            out.extend_from_slice(&(format as u16).to_be_bytes());
        }
    });
    out
}

fn rows(config: &Config, format: Format) -> Vec<u8> {
    let mut out = Vec::new();
    let text = groups_of_digits(config.row_bytes);
    for number in 1..=config.rows {
        put(&mut out, b'D', |out| {
            out.extend_from_slice(&(config.columns.len() as u16).to_be_bytes());
            for column in &config.columns {
                let value = match (column.kind, format) {
                    (ColumnKind::Int, Format::Binary) => i64::from(number).to_be_bytes().to_vec(),
                    (ColumnKind::Int, Format::Text) => number.to_string().into_bytes(),
                    (ColumnKind::Text, _) => text.clone().into_bytes(),
                };
                out.extend_from_slice(&(value.len() as u32).to_be_bytes());
                out.extend_from_slice(&value);
            }
        });
    }
    put_tag(&mut out, &format!("SELECT {}", config.rows));
    out
}
