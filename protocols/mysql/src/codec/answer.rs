//! A server's answers: OK, an error, rows, or a request for a file.

use super::reader::{Malformed, Reader};

/// In this session a backslash does not escape characters of a literal.
pub const NO_BACKSLASH_ESCAPES: u16 = 0x0200;
/// Another answer follows this one.
pub const MORE_RESULTS: u16 = 0x0008;

/// The format of the server's answers, as agreed in the handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Rows end with an OK packet, and definitions without a packet; otherwise both end with an EOF packet.
    pub deprecate_eof: bool,
    /// The server says whether column definitions follow, and omits them if the client knows them.
    pub cache_metadata: bool,
}

/// The statement succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done<'a> {
    /// The number of changed rows.
    pub affected: u64,
    /// The last automatically assigned id.
    pub last_insert_id: u64,
    /// The session's status flags.
    pub status: u16,
    /// The number of warnings.
    pub warnings: u16,
    /// The server's text: `Rows matched: 1  Changed: 0  Warnings: 0`.
    pub info: &'a [u8],
}

/// The statement was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal<'a> {
    /// The server's error code.
    pub code: u16,
    /// The SQLSTATE.
    pub state: [u8; 5],
    /// The server's message.
    pub message: &'a [u8],
}

/// The first packet of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head<'a> {
    /// Success without rows.
    Done(Done<'a>),
    /// An error.
    Refused(Refusal<'a>),
    /// The server requests a file.
    WantsFile,
    /// Rows with columns.
    Rows {
        /// The number of columns.
        columns: usize,
        /// Whether their definitions follow.
        defined: bool,
    },
}

/// A packet at the position of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<'a> {
    /// A row.
    Row,
    /// The end of the rows.
    End {
        /// The session's status flags.
        status: u16,
    },
    /// An error ends the rows.
    Refused(Refusal<'a>),
}

/// Parses the first packet of an answer.
///
/// # Errors
/// The packet is truncated or of an unknown kind.
pub fn head(packet: &[u8], wording: Capabilities) -> Result<Head<'_>, Malformed> {
    match packet.first() {
        Some(0x00) => Ok(Head::Done(done(packet)?)),
        Some(0xff) => Ok(Head::Refused(refusal(packet)?)),
        Some(0xfb) => Ok(Head::WantsFile),
        _ => {
            let mut reader = Reader::new(packet);
            let columns = usize::try_from(reader.length("number of columns")?).unwrap_or(usize::MAX);
            // The server allows 4,096 columns in a table, and as many in an answer.
            if columns == 0 || columns > usize::from(u16::MAX) {
                return Err(Malformed("number of columns"));
            }
            let defined = !wording.cache_metadata || reader.u8("metadata follows")? != 0;
            Ok(Head::Rows { columns, defined })
        }
    }
}

/// Parses a packet at the position of a row.
///
/// # Errors
/// The packet is empty, or its end is truncated.
#[inline]
pub fn next(packet: &[u8], wording: Capabilities) -> Result<Next<'_>, Malformed> {
    match packet.first() {
        None => Err(Malformed("empty packet where a row was due")),
        // A text row with this first byte has 16 MiB or more in its first column.
        Some(0xfe) if packet.len() < 0x00ff_ffff => {
            if wording.deprecate_eof {
                let mut reader = Reader::new(&packet[1..]);
                let _affected = reader.length("end of rows")?;
                let _last_insert_id = reader.length("end of rows")?;
                Ok(Next::End { status: reader.u16("end of rows")? })
            } else if packet.len() < 9 {
                let mut reader = Reader::new(&packet[1..]);
                let _warnings = reader.u16("end of rows")?;
                Ok(Next::End { status: reader.u16("end of rows")? })
            } else {
                Ok(Next::Row)
            }
        }
        Some(0xff) => Ok(Next::Refused(refusal(packet)?)),
        Some(_) => Ok(Next::Row),
    }
}

/// The status flags of the most common packet that ends rows: both of its numbers take a byte, and no further answer
/// follows. `None` for all others.
#[inline]
pub fn plain_end(packet: &[u8], wording: Capabilities) -> Option<u16> {
    match *packet {
        [0xfe, 0..=0xfa, 0..=0xfa, low, high, ..] if wording.deprecate_eof && packet.len() < 0x00ff_ffff => {
            Some(u16::from_le_bytes([low, high])).filter(|status| status & MORE_RESULTS == 0)
        }
        _ => None,
    }
}

/// Parses an OK packet, with any first byte.
///
/// # Errors
/// The packet is truncated.
pub fn done(packet: &[u8]) -> Result<Done<'_>, Malformed> {
    const WHAT: &str = "OK packet";
    let mut reader = Reader::new(packet);
    reader.u8(WHAT)?;
    let affected = reader.length(WHAT)?;
    let last_insert_id = reader.length(WHAT)?;
    let status = reader.u16(WHAT)?;
    let warnings = reader.u16(WHAT)?;
    // Most servers put the length before the text, although the text is the last field.
    let plain = reader;
    let info = match reader.bytes(WHAT) {
        Ok(info) if reader.is_empty() => info,
        _ => { plain }.rest(),
    };
    Ok(Done { affected, last_insert_id, status, warnings, info })
}

/// Parses an error packet.
///
/// # Errors
/// The packet is truncated.
pub fn refusal(packet: &[u8]) -> Result<Refusal<'_>, Malformed> {
    const WHAT: &str = "error packet";
    let mut reader = Reader::new(packet);
    reader.u8(WHAT)?;
    let code = reader.u16(WHAT)?;
    let mut state = *b"HY000";
    let mut ahead = reader;
    // Before the handshake is over, servers omit the SQLSTATE.
    if ahead.u8(WHAT) == Ok(b'#') {
        state = ahead.array(WHAT)?;
        reader = ahead;
    }
    Ok(Refusal { code, state, message: reader.rest() })
}

/// The number that follows `name` in the text of an OK packet, such as `Rows matched: ` in `Rows matched: 40  Changed:
/// 40  Warnings: 0`.
pub fn counted(info: &[u8], name: &[u8]) -> Option<u64> {
    let start = if info.starts_with(name) {
        name.len()
    } else {
        info.windows(name.len()).position(|words| words == name)? + name.len()
    };
    let digits = info[start..].iter().take_while(|byte| byte.is_ascii_digit());
    let mut number = None;
    for digit in digits {
        number = Some(number.unwrap_or(0_u64).checked_mul(10)?.checked_add(u64::from(digit - b'0'))?);
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_without_a_length_prefix_are_read() {
        let mut packet = vec![0, 1, 0, 2, 0, 0, 0];
        packet.extend_from_slice(b"Records: 1  Duplicates: 0");
        assert_eq!(done(&packet).unwrap().info, b"Records: 1  Duplicates: 0");
    }

    #[test]
    fn a_huge_first_column_is_not_taken_for_the_end_of_the_rows() {
        let mut packet = vec![0xfe];
        packet.resize(0x0100_0000, 7);
        assert_eq!(next(&packet, Capabilities::default()), Ok(Next::Row));
        assert_eq!(next(&packet, Capabilities { deprecate_eof: true, ..Capabilities::default() }), Ok(Next::Row));
        let end = next(b"\xfe\x01\x00\x22\x00", Capabilities::default());
        assert_eq!(end, Ok(Next::End { status: 0x22 }));
    }
}
