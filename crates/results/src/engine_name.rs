//! Names of engines that an experiment's lists expand to: `innodb[compression=zstd,page_size=4k]`, with the settings
//! that vary in the list. Users may write the short form `innodb.zstd.4k`.

use std::borrow::Cow;

/// Separators of a name's parts, which no value contains; `/` precedes the test of a suite.
const PARTS: [char; 5] = ['[', ']', ',', '=', '/'];

/// The name of one engine of a list: the common name, and each differing setting with its value.
pub fn of_list(base: &str, differs: &[(String, String)]) -> String {
    if differs.is_empty() {
        return base.to_owned();
    }
    let value = |text: &str| text.replace(|c: char| PARTS.contains(&c) || c.is_whitespace(), "_");
    let differs: Vec<String> = differs.iter().map(|(key, text)| format!("{key}={}", value(text))).collect();
    format!("{base}[{}]", differs.join(","))
}

/// The name without the settings' names: letters, digits, `-`, `_` and `.` of each value. Records of older versions and
/// directories use it for engines of lists.
pub fn short(name: &str) -> Cow<'_, str> {
    let Some((base, rest)) = name.split_once('[') else { return Cow::Borrowed(name) };
    let Some((differs, behind)) = rest.split_once(']') else { return Cow::Borrowed(name) };
    let mut short = base.to_owned();
    for part in differs.split(',') {
        let Some((_, value)) = part.split_once('=') else { return Cow::Borrowed(name) };
        short.push('.');
        short.extend(value.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' }));
    }
    short.push_str(behind);
    Cow::Owned(short)
}

/// Whether a user's text names this engine, by its full or short name.
pub fn is_called(name: &str, written: &str) -> bool {
    name == written || short(name) == written
}

/// The name that a user's text means; `None` for a short name that several engines share.
pub fn meant<'a>(names: impl Iterator<Item = &'a str> + Clone, written: &str) -> Option<&'a str> {
    let mut called = names.clone().filter(|name| is_called(name, written));
    let (first, second) = (called.next(), called.next());
    names.clone().find(|name| *name == written).or(first.filter(|_| second.is_none()))
}

/// Whether an engine of this name comes from the list of the entry with this name.
pub fn is_of_list(name: &str, base: &str) -> bool {
    name.strip_prefix(base).is_some_and(|rest| rest.starts_with(['.', '[']))
}

/// Splits at the first `separator` outside of a name's brackets.
pub fn split_once(text: &str, separator: char) -> Option<(&str, &str)> {
    let mut depth = 0usize;
    let at = text.char_indices().find(|(_, c)| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && *c == separator
    });
    at.map(|(at, c)| (&text[..at], &text[at + c.len_utf8()..]))
}

/// The names of a comma-separated list.
pub fn split_list(mut text: &str) -> Vec<String> {
    let mut names = Vec::new();
    while let Some((name, rest)) = split_once(text, ',') {
        names.push(name.to_owned());
        text = rest;
    }
    names.push(text.to_owned());
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(differs: &[(&str, &str)]) -> String {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        of_list("a", &differs.iter().map(owned).collect::<Vec<_>>())
    }

    #[test]
    fn engine_name_lists_differing_settings_and_has_short_form() {
        for (differs, whole, brief) in [
            (&[][..], "a", "a"),
            (&[("doublewrite", "off")], "a[doublewrite=off]", "a.off"),
            (&[("cache", "1GiB"), ("page_size", "4k")], "a[cache=1GiB,page_size=4k]", "a.1GiB.4k"),
            (&[("server", "mysql@9.7")], "a[server=mysql@9.7]", "a.mysql_9.7"),
            (&[("cache", "data/4")], "a[cache=data_4]", "a.data_4"),
            (&[("odd", "x=1,[y] z")], "a[odd=x_1__y__z]", "a.x_1__y__z"),
        ] {
            let name = name(differs);
            assert_eq!((name.as_str(), short(&name).as_ref()), (whole, brief));
            assert!(is_called(&name, whole) && is_called(&name, brief) && !is_called(&name, "b"));
        }
    }

    #[test]
    fn short_engine_name_keeps_suite_test_and_other_brackets() {
        assert_eq!(short("base/a[cache=1GiB]/point-query"), "base/a.1GiB/point-query");
        for other in ["a", "a[", "a[b]", "a[b=c", "a.b", "a]b["] {
            assert_eq!(short(other), other);
        }
    }

    #[test]
    fn a_short_name_that_two_engines_have_means_neither() {
        let names = ["a[x=1]", "a[y=1]", "a[y=2]", "a.2"];
        let meant = |written| meant(names.into_iter(), written);
        assert_eq!(meant("a.1"), None);
        assert_eq!(meant("a[y=1]"), Some("a[y=1]"));
        assert_eq!(meant("a.2"), Some("a.2"), "its whole name");
        assert_eq!(meant("a"), None);
        assert!(is_of_list("a[x=1]", "a") && is_of_list("a.1", "a") && !is_of_list("ab[x=1]", "a"));
    }

    #[test]
    fn lists_and_assignments_are_split_outside_of_brackets() {
        assert_eq!(split_list("a,b[x=1,y=2],c"), ["a", "b[x=1,y=2]", "c"]);
        assert_eq!(split_list("a"), ["a"]);
        assert_eq!(split_once("a[x=1].cache=[1,2]", '='), Some(("a[x=1].cache", "[1,2]")));
        assert_eq!(split_once("]a=b", '='), Some(("]a", "b")));
        assert_eq!(split_once("a[x=1", '='), None);
    }
}
