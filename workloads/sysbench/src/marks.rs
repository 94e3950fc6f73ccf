//! Parameter marks: scripts write `?`, PostgreSQL requires `$1`.

/// The statement with each `?` numbered, except inside strings and quoted names.
pub(crate) fn numbered(sql: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(sql.len() + 8);
    let (mut number, mut quote) = (0, None);
    for &byte in sql {
        match (quote, byte) {
            (None, b'?') => {
                number += 1;
                out.extend_from_slice(format!("${number}").as_bytes());
                continue;
            }
            (None, b'\'' | b'"') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            _ => {}
        }
        out.push(byte);
    }
    out
}

/// Whether a statement has any.
pub(crate) fn has_any(sql: &[u8]) -> bool {
    numbered(sql) != sql
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_numbered_and_text_is_unchanged() {
        assert_eq!(numbered(b"SELECT c FROM t WHERE id=? AND k=?"), b"SELECT c FROM t WHERE id=$1 AND k=$2");
        assert_eq!(numbered(b"SELECT '?', \"?\", 'it''s ?', ?"), b"SELECT '?', \"?\", 'it''s ?', $1");
        assert_eq!(numbered(b"SELECT '\xe4?', ?"), b"SELECT '\xe4?', $1", "of any character set");
        assert!(has_any(b"SELECT ?") && !has_any(b"SELECT '?'"));
    }
}
