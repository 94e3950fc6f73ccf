//! Answers that are made once and copied for every request.

use crate::config::{ColumnKind, Config};
use crate::mysql::packet::{HEADER, packet, payload_length, status};
use crate::mysql::resultset::{Described, Format, Kind, Value, put_result_set};
use crate::text::groups_of_digits;

/// An answer as bytes; its packets are numbered from 1, as after a command.
#[derive(Debug, Default)]
pub struct Template {
    bytes: Vec<u8>,
    /// The positions of the status flags.
    statuses: Vec<usize>,
    packets: u8,
}

impl Template {
    /// An answer without rows.
    pub fn done(affected: u8) -> Self {
        let mut bytes = Vec::new();
        packet(&mut bytes, &mut 1, |out| out.extend_from_slice(&[0, affected, 0, 0, 0, 0, 0]));
        Self { bytes, statuses: vec![HEADER + 3], packets: 1 }
    }

    /// A result set.
    pub fn rows(
        columns: &[Described],
        rows: impl IntoIterator<Item = impl AsRef<[Value]>>,
        format: Format,
        deprecate_eof: bool,
    ) -> Self {
        let (mut bytes, mut sequence) = (Vec::new(), 1u8);
        let statuses = put_result_set(&mut bytes, &mut sequence, columns, rows, format, deprecate_eof);
        Self { bytes, statuses, packets: sequence.wrapping_sub(1) }
    }

    /// Appends the answer with packet numbers that continue from `sequence`, and with this status.
    #[inline]
    pub fn append(&self, out: &mut Vec<u8>, sequence: &mut u8, status: u16) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        for at in &self.statuses {
            out[start + at..start + at + 2].copy_from_slice(&status.to_le_bytes());
        }
        if *sequence != 1 {
            renumber(&mut out[start..], *sequence);
        }
        *sequence = sequence.wrapping_add(self.packets);
    }
}

/// Numbers consecutive packets.
#[cold]
fn renumber(mut packets: &mut [u8], mut sequence: u8) {
    while let Some((header, rest)) = packets.split_first_chunk_mut::<HEADER>() {
        header[3] = sequence;
        sequence = sequence.wrapping_add(1);
        packets = &mut rest[payload_length(*header)..];
    }
}

/// The server's answers, made at its start.
#[derive(Debug)]
pub struct Answers {
    /// The answer to a statement that changes no row.
    pub done: Template,
    /// The answer to a statement that changes a row.
    pub changed: Template,
    /// The columns of the fixed result set.
    pub columns: Vec<Described>,
    /// The fixed result set as text, without and with [`crate::mysql::packet::capability::DEPRECATE_EOF`].
    text: [Template; 2],
    binary: [Template; 2],
}

impl Answers {
    /// The answers of a server with this configuration.
    pub fn new(config: &Config) -> Self {
        let columns: Vec<Described> = config
            .columns
            .iter()
            .map(|column| Described {
                name: column.name.clone(),
                kind: match column.kind {
                    ColumnKind::Int => Kind::Int,
                    ColumnKind::Text => Kind::Text(config.row_bytes),
                },
            })
            .collect();
        let text = groups_of_digits(config.row_bytes);
        let row = |number: u32| -> Vec<Value> {
            let value = |kind| match kind {
                ColumnKind::Int => Value::Int(i64::from(number)),
                ColumnKind::Text => Value::Text(text.clone()),
            };
            config.columns.iter().map(|column| value(column.kind)).collect()
        };
        let made = |format, deprecate_eof| Template::rows(&columns, (1..=config.rows).map(row), format, deprecate_eof);
        let text = [made(Format::Text, false), made(Format::Text, true)];
        let binary = [made(Format::Binary, false), made(Format::Binary, true)];
        Self { done: Template::done(0), changed: Template::done(1), columns, text, binary }
    }

    /// The fixed result set.
    #[inline]
    pub fn rows(&self, format: Format, deprecate_eof: bool) -> &Template {
        let made = match format {
            Format::Text => &self.text,
            Format::Binary => &self.binary,
        };
        &made[usize::from(deprecate_eof)]
    }
}

/// The initial status of a connection.
pub const FIRST_STATUS: u16 = status::AUTOCOMMIT;
