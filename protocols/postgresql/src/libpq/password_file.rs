//! The password file: lines of `host:port:database:user:password`.

/// The password of the first line that matches host, port, database and user; `*` matches anything.
pub fn password_in(text: &str, who: &[&str; 4]) -> Option<String> {
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let is_about = fields.len() == 5 && fields.iter().zip(who).all(|(field, own)| field == "*" || field == own);
        is_about.then(|| fields[4].clone())
    })
}

/// Splits a line at its colons; a backslash escapes the next character.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let next = match character {
            ':' => None,
            '\\' => characters.next(),
            other => Some(other),
        };
        match (next, fields.last_mut()) {
            (Some(next), Some(field)) => field.push(next),
            _ => fields.push(String::new()),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_file_is_read_as_clients_read_it() {
        let text = "# one\nother:5432:*:me:no\nlocalhost:5432:*:me:a\\:b\n*:*:*:*:last\n";
        assert_eq!(password_in(text, &["localhost", "5432", "lab", "me"]).as_deref(), Some("a:b"));
        assert_eq!(password_in(text, &["localhost", "5433", "lab", "me"]).as_deref(), Some("last"));
        assert_eq!(password_in("a:b", &["a", "b", "c", "d"]), None);
    }
}
