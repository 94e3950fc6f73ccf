//! The pages in addition to the report's own: the list of results with their notes, and the comparison of two results.
//! They need no script and work with the keyboard alone.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use rumba_results::comparison::Comparison;

use crate::library::{Details, Entry, Library};
use crate::past;

const STYLE: &str = include_str!("pages/style.css");
/// The most engines of one result that the list names.
const NAMED_ENGINES: usize = 6;

/// A page whose links are relative to the list.
fn frame(title: &str, content: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " – rumba" }
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
            }
            body { main { (content) } }
        }
    }
}

/// The results that match a search; `live` is the name of this server's run.
pub fn list(entries: &[Entry], search: &str, live: Option<&str>) -> Markup {
    let found = Library::matching(entries, search);
    let unread = entries.iter().filter(|entry| entry.kept.details.is_none()).count();
    let content = html! {
        h1 { "Results" }
        @if live.is_some() { p.live { a href="live" { "The run under way" } } }
        form.search role="search" action="./" {
            label { "Search " input type="search" name="q" value=(search) autofocus[search.is_empty()]; }
            button { "Search" }
            @if !search.is_empty() { a href="./" { "all " (entries.len()) } }
        }
        p.about {
            (found.len()) " of " (entries.len()) " results. All words must be in a result’s names, workload, engines, "
            "ending, tags or note; #word is a tag."
            @if unread > 0 && live.is_some() { " Of " (unread) " the records are not read while this run is measured." }
            @else if unread > 0 { " The records of " (unread) " are being read: load the page again." }
        }
        @if found.is_empty() { p { "Nothing is found." } }
        @else {
            (table(&found, search, live))
            @for (place, entry) in found.iter().enumerate() { (note_form(place, entry)) }
        }
    };
    frame("Results", content)
}

fn table(found: &[&Entry], search: &str, live: Option<&str>) -> Markup {
    let counts = past::counts(found);
    let history = |entry: &Entry| {
        let runs = counts.get(entry.kept.experiment.as_str()).copied().filter(|runs| *runs > 1)?;
        let address = format!("history?experiment={}&q={}", escaped(&entry.kept.experiment), escaped(search));
        Some(html! { a.minor href=(address) { "history of " (runs) " runs" } })
    };
    html! {
        form action="compare" {
            p.compare { button { "Compare the two chosen" } }
            div.scroll {
                table {
                    thead { tr {
                        th scope="col" { "base" } th scope="col" { "other" } th.text scope="col" { "experiment" }
                        th.text scope="col" { "began (UTC)" } th.text scope="col" { "trials" }
                        th.text scope="col" { "median operations per second" } th.text scope="col" { "tags and note" }
                    } }
                    tbody { @for (place, entry) in found.iter().enumerate() { (row(place, entry, history(entry), live)) } }
                }
            }
        }
    }
}

fn row(place: usize, entry: &Entry, history: Option<Markup>, live: Option<&str>) -> Markup {
    let name = entry.name.as_str();
    let page = if live == Some(name) { "live".to_owned() } else { format!("results/{}", escaped(name)) };
    html! {
        tr {
            td { input type="radio" name="base" value=(name) aria-label={ "base: " (name) }; }
            td { input type="radio" name="other" value=(name) aria-label={ "other: " (name) }; }
            th.text scope="row" {
                a href=(page) { (if entry.kept.experiment.is_empty() { name } else { &entry.kept.experiment }) }
                span.minor { (name) }
                @if let Some(source) = &entry.kept.source { span.minor { "reproduces " (source) } }
                @if let Some(history) = history { (history) }
            }
            td.text { (when(&entry.kept.started)) span.minor { "rumba " (entry.kept.rumba) } }
            td.text {
                @if entry.is_running { strong { "running" } br; }
                (entry.ending())
                @for problem in problems(entry) { span.minor.alarm { (problem) } }
            }
            td.text { @if let Some(details) = &entry.kept.details { (figures(details)) } }
            td.text {
                @for tag in &entry.note.tags { a.tag href={ "?q=%23" (escaped(tag)) } { "#" (tag) } " " }
                @if !entry.note.note.is_empty() { span.note { (entry.note.note) } }
                button.minor type="button" popovertarget=(note_id(place)) aria-label={ "note on " (name) } { "note" }
            }
        }
    }
}

fn problems(entry: &Entry) -> impl Iterator<Item = &str> {
    let of_details = entry.kept.details.as_ref().and_then(|details| details.problem.as_deref());
    entry.kept.problem.as_deref().into_iter().chain(of_details)
}

fn figures(details: &Details) -> Markup {
    let more = details.figures.len().saturating_sub(NAMED_ENGINES);
    html! {
        @if !details.workload.is_empty() { span.minor { (details.workload) } }
        @for figure in details.figures.iter().take(NAMED_ENGINES) {
            span.figure {
                (figure.engine) ", " (figure.clients) ": "
                @if let Some(rate) = figure.ops_per_s { b { (grouped(rate)) } } @else { "–" }
            }
        }
        @if more > 0 { span.minor { "and " (more) " more" } }
    }
}

/// A whole number in groups of three digits.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) && text != "-" {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// An RFC 3339 time, truncated to the minute.
fn when(started: &str) -> String {
    started.get(..16).unwrap_or(started).replace('T', " ")
}

/// Escapes a text as a part of an address.
pub fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// The id of the note's form, by the result's position in the list.
fn note_id(place: usize) -> String {
    format!("note-{place}")
}

/// The form for a result's note, which its button in the list opens. It is part of the list, so that no page must load
/// and the tags have the focus before the next key arrives. It is outside of the list's own form.
fn note_form(place: usize, entry: &Entry) -> Markup {
    html! { div.note-form popover id=(note_id(place)) { (fields(&entry.name, &entry.note.tags.join(" "), &entry.note.note)) } }
}

fn fields(name: &str, tags: &str, note: &str) -> Markup {
    html! {
        form.edit method="post" action="note" aria-label={ "note on " (name) } {
            input type="hidden" name="name" value=(name);
            label { "Tags, separated by spaces" input type="text" name="tags" value=(tags) autofocus; }
            label { "Note" textarea name="note" rows="8" { (note) } }
            p { button { "Save" } }
            p.about { "Saved in library.json next to the results; the results themselves stay as they are." }
        }
    }
}

/// A note that could not be saved: the reason, and the user's input.
pub fn unsaved_note(name: &str, tags: &str, note: &str, why: &str) -> Markup {
    let title = format!("The note on {name} is not saved");
    let content = html! {
        p.kicker { a href="./" { "Results" } }
        h1 { (title) }
        p role="alert" { (why) }
        (fields(name, tags, note))
    };
    frame(&title, content)
}

/// One result compared with another.
pub fn compare(base: &str, other: &str, comparison: &Comparison) -> Markup {
    let result = |name: &str| html! { a href={ "results/" (escaped(name)) } { (name) } };
    let text = |details| rumba_report::comparison_table(comparison, details);
    let both = format!("together?base={}&other={}", escaped(base), escaped(other));
    let content = html! {
        p.kicker { a href="./" { "Results" } }
        h1 { "Compared" }
        p { "Base: " (result(base)) "; other: " (result(other)) ". " a href=(both) { "Both on one page" } "." }
        pre tabindex="0" { (text(false)) }
        details { summary { "Every metric" } pre tabindex="0" { (text(true)) } }
    };
    frame("Compared", content)
}

/// The page for a comparison without exactly two results.
pub fn choose_two() -> Markup {
    let content = html! {
        p.kicker { a href="./" { "Results" } }
        h1 { "A comparison is of two" }
        p { "Choose a base and another in the list." }
    };
    frame("Compare", content)
}

/// The page for an error, with its reason.
pub fn failed(why: &str) -> Markup {
    frame("Not shown", html! { h1 { "This cannot be shown" } p { (why) } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_others_stay_text() {
        let page = unsaved_note("<script>\"", "a", "</textarea><script>", "full").into_string();
        assert!(!page.contains("<script>"), "{page}");
        assert_eq!(escaped("a b/#ä"), "a%20b%2F%23%C3%A4");
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!(
            ["1", "12", "123", "1234", "1234567"].map(|text| grouped(text.parse().unwrap())).join("|"),
            "1|12|123|1\u{202f}234|1\u{202f}234\u{202f}567"
        );
    }
}
