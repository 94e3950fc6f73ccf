//! Marks of parameters: scripts write `?`, PostgreSQL takes `$1`.

/// The statement with each `?` that stands outside of strings and quoted names numbered.
pub(crate) fn numbered(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len() + 8);
    let (mut number, mut quote) = (0, None);
    for character in sql.chars() {
        match (quote, character) {
            (None, '?') => {
                number += 1;
                out.push('$');
                out.push_str(&number.to_string());
                continue;
            }
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            _ => {}
        }
        out.push(character);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_numbered_and_text_is_left_alone() {
        assert_eq!(numbered("SELECT c FROM t WHERE id=? AND k=?"), "SELECT c FROM t WHERE id=$1 AND k=$2");
        assert_eq!(numbered("SELECT '?', \"?\", 'it''s ?', ?"), "SELECT '?', \"?\", 'it''s ?', $1");
    }
}
