//! Packets: a length of three bytes, a sequence number, a payload.

/// The longest payload of one packet; a longer message continues in the next one.
pub const LONGEST: usize = 0xFF_FFFF;
/// Bytes before a payload.
pub const HEADER: usize = 4;

/// Capabilities, as the protocol numbers them.
pub mod capability {
    /// UPDATE reports the rows found instead of those changed.
    pub const FOUND_ROWS: u32 = 1 << 1;
    /// Column flags of two bytes.
    pub const LONG_FLAG: u32 = 1 << 2;
    /// The login names a schema.
    pub const CONNECT_WITH_DB: u32 = 1 << 3;
    /// LOAD DATA LOCAL.
    pub const LOCAL_FILES: u32 = 1 << 7;
    /// The protocol since MySQL 4.1.
    pub const PROTOCOL_41: u32 = 1 << 9;
    /// The status includes transaction flags.
    pub const TRANSACTIONS: u32 = 1 << 13;
    /// Authentication since MySQL 4.1.
    pub const SECURE_CONNECTION: u32 = 1 << 15;
    /// Several statements in one text.
    pub const MULTI_STATEMENTS: u32 = 1 << 16;
    /// Several result sets for one text.
    pub const MULTI_RESULTS: u32 = 1 << 17;
    /// Several result sets for one prepared statement.
    pub const PS_MULTI_RESULTS: u32 = 1 << 18;
    /// Authentication plugins have names.
    pub const PLUGIN_AUTH: u32 = 1 << 19;
    /// The login includes attributes of the client.
    pub const CONNECT_ATTRS: u32 = 1 << 20;
    /// The authentication data has a length of variable size.
    pub const PLUGIN_AUTH_LENENC: u32 = 1 << 21;
    /// Result sets end with an OK packet, and no packet separates columns and rows.
    pub const DEPRECATE_EOF: u32 = 1 << 24;
    /// MariaDB's, in a second word: COM_STMT_BULK_EXECUTE.
    pub const MARIADB_BULK: u32 = 1 << 2;
}

/// Flags of the server's status.
pub mod status {
    /// A transaction is open.
    pub const IN_TRANSACTION: u16 = 1;
    /// Every statement is its own transaction.
    pub const AUTOCOMMIT: u16 = 2;
    /// Another result follows.
    pub const MORE_RESULTS: u16 = 8;
}

/// Appends a packet whose payload `write` appends, and increments `sequence`.
pub fn packet(out: &mut Vec<u8>, sequence: &mut u8, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0, 0, 0, *sequence]);
    *sequence = sequence.wrapping_add(1);
    write(out);
    let length = out.len() - start - HEADER;
    debug_assert!(length < LONGEST, "no answer has a payload that needs a second packet");
    out[start..start + 3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
}

/// Appends a length-encoded integer.
pub fn put_length(out: &mut Vec<u8>, number: u64) {
    match number {
        0..=250 => out.push(number as u8),
        251..=0xFFFF => {
            out.push(0xFC);
            out.extend_from_slice(&(number as u16).to_le_bytes());
        }
        0x1_0000..=0xFF_FFFF => {
            out.push(0xFD);
            out.extend_from_slice(&(number as u32).to_le_bytes()[..3]);
        }
        _ => {
            out.push(0xFE);
            out.extend_from_slice(&number.to_le_bytes());
        }
    }
}

/// Appends a string with its length prefix.
pub fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    put_length(out, text.len() as u64);
    out.extend_from_slice(text);
}

/// Appends an error packet.
pub fn put_error(out: &mut Vec<u8>, sequence: &mut u8, code: u16, sqlstate: &str, message: &str) {
    packet(out, sequence, |out| {
        out.push(0xFF);
        out.extend_from_slice(&code.to_le_bytes());
        out.push(b'#');
        out.extend_from_slice(sqlstate.as_bytes());
        out.extend_from_slice(message.as_bytes());
    });
}

/// A complete packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its sequence number.
    pub sequence: u8,
    /// Its payload; at [`LONGEST`] bytes the message continues in the next packet.
    pub payload: &'a [u8],
}

/// The first packet of `input` and the rest; `None` if it is incomplete.
#[inline]
pub fn first_frame(input: &[u8]) -> Option<(Frame<'_>, &[u8])> {
    let (header, rest) = input.split_first_chunk::<HEADER>()?;
    let length = payload_length(*header);
    let (payload, rest) = rest.split_at_checked(length)?;
    Some((Frame { sequence: header[3], payload }, rest))
}

/// The payload's length in a header.
#[inline]
pub fn payload_length(header: [u8; HEADER]) -> usize {
    u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_take_one_three_four_or_nine_bytes() {
        for (number, bytes) in [(250, 1), (251, 3), (0xFFFF, 3), (0x1_0000, 4), (0xFF_FFFF, 4), (0x100_0000, 9)] {
            let mut out = Vec::new();
            put_length(&mut out, number);
            assert_eq!(out.len(), bytes, "{number}");
        }
    }
}
