//! The server's messages, except rows.

use super::{Malformed, Reader};

/// The transaction state that the server reports at the end of every answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transaction {
    /// No transaction.
    #[default]
    None,
    /// In a transaction.
    Open,
    /// In a failed transaction; the server only accepts its end.
    Failed,
}

impl Transaction {
    /// Parses ReadyForQuery.
    ///
    /// # Errors
    /// An unknown state.
    #[inline]
    pub fn of(body: &[u8]) -> Result<Self, Malformed> {
        match body {
            b"I" => Ok(Transaction::None),
            b"T" => Ok(Transaction::Open),
            b"E" => Ok(Transaction::Failed),
            _ => Err(Malformed("ReadyForQuery")),
        }
    }
}

/// An error or a notice as the server reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal<'a> {
    /// `ERROR`, `FATAL`, `PANIC`, in English if the server sends the untranslated field (since 9.6).
    pub severity: &'a [u8],
    /// The SQLSTATE: `23505`.
    pub sqlstate: [u8; 5],
    /// The message.
    pub message: &'a [u8],
    /// The detail message; empty if there is none.
    pub detail: &'a [u8],
    /// The server's hint; empty if there is none.
    pub hint: &'a [u8],
}

impl Refusal<'_> {
    /// Whether the server closes the connection after it.
    pub fn is_fatal(&self) -> bool {
        matches!(self.severity, b"FATAL" | b"PANIC")
    }
}

/// Parses ErrorResponse or NoticeResponse.
///
/// # Errors
/// A field is truncated.
pub fn refusal(body: &[u8]) -> Result<Refusal<'_>, Malformed> {
    const WHAT: &str = "ErrorResponse";
    let mut refusal = Refusal { severity: b"", sqlstate: *b"XX000", message: b"", detail: b"", hint: b"" };
    let mut reader = Reader::new(body);
    loop {
        let field = reader.u8(WHAT)?;
        if field == 0 {
            return Ok(refusal);
        }
        let text = reader.text(WHAT)?;
        match field {
            b'S' if refusal.severity.is_empty() => refusal.severity = text,
            b'V' => refusal.severity = text,
            b'C' => refusal.sqlstate = text.try_into().map_err(|_| Malformed(WHAT))?,
            b'M' => refusal.message = text,
            b'D' => refusal.detail = text,
            b'H' => refusal.hint = text,
            _ => {}
        }
    }
}

/// The row count of CommandComplete: the last word of its tag, `INSERT 0 5`; 0 if it has none.
#[inline]
pub fn counted(tag: &[u8]) -> u64 {
    let tag = tag.strip_suffix(&[0]).unwrap_or(tag);
    let (mut count, mut scale) = (0_u64, 1_u64);
    for &byte in tag.iter().rev() {
        match byte {
            b'0'..=b'9' => {
                count = count.wrapping_add(scale.wrapping_mul(u64::from(byte - b'0')));
                scale = scale.wrapping_mul(10);
            }
            b' ' => return count,
            _ => break,
        }
    }
    0
}

/// Parses ParameterDescription: the types of a statement's parameters.
///
/// # Errors
/// The message is truncated.
pub fn parameters(body: &[u8]) -> Result<Vec<u32>, Malformed> {
    const WHAT: &str = "ParameterDescription";
    let mut reader = Reader::new(body);
    let count = reader.u16(WHAT)?;
    (0..count).map(|_| reader.u32(WHAT)).collect()
}

/// A column in RowDescription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Described<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// The number of its type.
    pub oid: u32,
}

/// Parses RowDescription, column by column.
///
/// # Errors
/// The message is truncated.
pub fn columns<'a>(body: &'a [u8], mut each: impl FnMut(Described<'a>)) -> Result<(), Malformed> {
    const WHAT: &str = "RowDescription";
    let mut reader = Reader::new(body);
    for _ in 0..reader.u16(WHAT)? {
        let name = reader.text(WHAT)?;
        let _table_and_number = reader.array::<6>(WHAT)?;
        let oid = reader.u32(WHAT)?;
        let _width_modifier_format = reader.array::<8>(WHAT)?;
        each(Described { name, oid });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_known_by_its_fields_and_a_cut_one_is_none() {
        let body = b"SFEHLER\0VERROR\0C40P01\0Mdeadlock detected\0Fx.c\0\0";
        let read = refusal(body).unwrap();
        assert_eq!((read.severity, &read.sqlstate, read.message), (&b"ERROR"[..], b"40P01", &b"deadlock detected"[..]));
        for cut in 0..body.len() {
            assert!(refusal(&body[..cut]).is_err(), "{cut}");
        }
        assert!(refusal(b"C4\0\0").is_err());
    }
}
