//! The greeting and the login. Any user with any password is accepted.

use crate::mysql::VERSION;
use crate::mysql::packet::{capability, packet, status};

/// The server's capabilities.
pub const CAPABILITIES: u32 = capability::FOUND_ROWS
    | capability::LONG_FLAG
    | capability::CONNECT_WITH_DB
    | capability::LOCAL_FILES
    | capability::PROTOCOL_41
    | capability::TRANSACTIONS
    | capability::SECURE_CONNECTION
    | capability::MULTI_STATEMENTS
    | capability::MULTI_RESULTS
    | capability::PS_MULTI_RESULTS
    | capability::PLUGIN_AUTH
    | capability::CONNECT_ATTRS
    | capability::PLUGIN_AUTH_LENENC
    | capability::DEPRECATE_EOF;

/// The traditional authentication method of MySQL and MariaDB.
pub const NATIVE: &[u8] = b"mysql_native_password";
/// The method that MySQL's newer clients require.
pub const SHA2: &[u8] = b"caching_sha2_password";

/// A constant challenge is safe, because no password is ever checked.
const NONCE: &[u8; 20] = b"rumba+null+server+20";

/// Appends the greeting of a connection.
pub fn put_greeting(out: &mut Vec<u8>, id: u32) {
    packet(out, &mut 0, |out| {
        out.push(10);
        out.extend_from_slice(VERSION.as_bytes());
        out.push(0);
        out.extend_from_slice(&id.to_le_bytes());
        out.extend_from_slice(&NONCE[..8]);
        out.push(0);
        out.extend_from_slice(&(CAPABILITIES as u16).to_le_bytes());
        out.push(45);
        out.extend_from_slice(&status::AUTOCOMMIT.to_le_bytes());
        out.extend_from_slice(&((CAPABILITIES >> 16) as u16).to_le_bytes());
        out.push(NONCE.len() as u8 + 1);
        out.extend_from_slice(&[0; 6]);
        // MariaDB's clients read these four bytes, because capability 1 is absent.
        out.extend_from_slice(&capability::MARIADB_BULK.to_le_bytes());
        out.extend_from_slice(&NONCE[8..]);
        out.push(0);
        out.extend_from_slice(NATIVE);
        out.push(0);
    });
}

/// Appends a request to authenticate with another method.
pub fn put_switch(out: &mut Vec<u8>, sequence: &mut u8, plugin: &[u8]) {
    packet(out, sequence, |out| {
        out.push(0xFE);
        out.extend_from_slice(plugin);
        out.push(0);
        out.extend_from_slice(NONCE);
        out.push(0);
    });
}

/// Appends the fast-success message of caching_sha2_password.
pub fn put_fast_success(out: &mut Vec<u8>, sequence: &mut u8) {
    packet(out, sequence, |out| out.extend_from_slice(&[1, 3]));
}

/// A client's login packet.
#[derive(Debug, PartialEq, Eq)]
pub struct Login<'a> {
    /// The capabilities of both sides.
    pub capabilities: u32,
    /// The requested schema.
    pub database: Option<&'a [u8]>,
    /// The client's authentication method; absent if it does not name one.
    pub plugin: Option<&'a [u8]>,
}

/// Parses a login; `None` if it does not follow the protocol since MySQL 4.1.
pub fn login(payload: &[u8]) -> Option<Login<'_>> {
    let (capabilities, rest) = payload.split_first_chunk()?;
    let capabilities = u32::from_le_bytes(*capabilities) & CAPABILITIES;
    let has = |bit| capabilities & bit != 0;
    if !has(capability::PROTOCOL_41) {
        return None;
    }
    // Skip the packet limit, the character set and reserved bytes.
    let rest = rest.get(4 + 1 + 23..)?;
    let (_user, rest) = until_nul(rest)?;
    let (_proof, rest) = if has(capability::PLUGIN_AUTH_LENENC) || has(capability::SECURE_CONNECTION) {
        // A proof longer than 250 bytes would have a longer length field, but no method has such a proof.
        let (length, rest) = rest.split_first()?;
        rest.split_at_checked(usize::from(*length))?
    } else {
        until_nul(rest)?
    };
    let (database, rest) = if has(capability::CONNECT_WITH_DB) {
        let (database, rest) = until_nul(rest)?;
        (Some(database).filter(|name| !name.is_empty()), rest)
    } else {
        (None, rest)
    };
    let plugin = has(capability::PLUGIN_AUTH).then(|| until_nul(rest).map_or(rest, |(name, _)| name));
    Some(Login { capabilities, database, plugin })
}

/// Text up to a zero byte, and the rest.
fn until_nul(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|&byte| byte == 0);
    end.map(|end| (&bytes[..end], &bytes[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_read_to_its_end() {
        let requested = capability::PROTOCOL_41
            | capability::SECURE_CONNECTION
            | capability::CONNECT_WITH_DB
            | capability::PLUGIN_AUTH;
        let mut payload = requested.to_le_bytes().to_vec();
        payload.extend_from_slice(&[0; 28]);
        payload.extend_from_slice(b"root\0\x02xysbtest\0mysql_native_password\0");
        let read = login(&payload).unwrap();
        assert_eq!(read, Login { capabilities: requested, database: Some(b"sbtest"), plugin: Some(NATIVE) });
        for short in 0..payload.len() - 22 {
            assert_eq!(login(&payload[..short]), None, "cut at {short}");
        }
    }
}
