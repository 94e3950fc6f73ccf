//! The book: the pages that docs/SUMMARY.md names, and every file that they link to. They are copied below one
//! directory in the repository's layout, so that mdBook finds all of them and no link leads outside.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use pulldown_cmark::{Event, Parser, Tag};

use crate::tidy::within;

const SUMMARY: &str = "docs/SUMMARY.md";

/// Builds the book below target/book; returns the path of its first page.
///
/// # Errors
/// A mistake in the pages; an error of mdBook; dead links in the built book.
pub fn build(root: &Path) -> Result<PathBuf, Vec<String>> {
    let place = root.join("target/book");
    let one = |error: String| vec![error];
    if place.exists() {
        fs::remove_dir_all(&place).map_err(|error| one(format!("{}: {error}", place.display())))?;
    }
    stage(root, &place)?;
    let mut command = Command::new("mdbook");
    let output = command.arg("build").arg(&place).output();
    let output = output.map_err(|error| one(format!("mdbook: {error}; `make book` installs it")))?;
    if !output.status.success() {
        return Err(one(format!("mdbook: {}", String::from_utf8_lossy(&output.stderr).trim())));
    }
    let html = place.join("book");
    match dead_links(&html).map_err(|error| one(format!("{}: {error}", html.display())))? {
        dead if dead.is_empty() => Ok(html.join("index.html")),
        dead => Err(dead),
    }
}

/// Copies the pages and the files that they link to into `place`.
///
/// # Errors
/// Pages that are not a chapter, dead links or links to a page outside of the book; files that cannot be copied.
pub fn stage(root: &Path, place: &Path) -> Result<(), Vec<String>> {
    let read = |path: &Path| fs::read_to_string(root.join(path)).map_err(|error| vec![format!("{path:?}: {error}")]);
    let summary = read(Path::new(SUMMARY))?;
    let pages: BTreeSet<PathBuf> =
        links(Path::new(SUMMARY), &summary).into_iter().filter_map(|link| link.path).collect();
    let mut problems = Vec::new();
    for page in files_of(root, Path::new("docs"), "md").map_err(|error| vec![format!("docs: {error}")])? {
        if !pages.contains(&page) && page != Path::new(SUMMARY) {
            problems.push(format!("{} is no chapter: name it in {SUMMARY}", page.display()));
        }
    }
    let mut files = BTreeSet::new();
    for page in &pages {
        let text = read(page)?;
        for Link { written, path } in links(page, &text) {
            match path {
                Some(path) if pages.contains(&path) => {}
                Some(path) if path.extension().is_some_and(|extension| extension == "md") => {
                    problems.push(format!("{}: {written} is no chapter: name it in {SUMMARY}", page.display()));
                }
                Some(path) if root.join(&path).is_file() => {
                    files.insert(path);
                }
                _ => problems.push(format!("{}: {written} leads to no file", page.display())),
            }
        }
        files.insert(page.clone());
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let put = |path: &Path, bytes: &[u8]| {
        let to = place.join(path);
        let made = to.parent().map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| fs::write(&to, bytes)).map_err(|error| vec![format!("{}: {error}", to.display())])
    };
    for file in files {
        let mut bytes = fs::read(root.join(&file)).map_err(|error| vec![format!("{}: {error}", file.display())])?;
        if pages.contains(&file) {
            // mdBook makes it the book's first page, but does not rename it in links with a heading.
            bytes = read(&file)?.replace("/README.md", "/index.html").into_bytes();
        }
        put(&Path::new("src").join(&file), &bytes)?;
    }
    put(Path::new("src/SUMMARY.md"), from_root(&summary).as_bytes())?;
    put(Path::new("book.toml"), read(Path::new("docs/book.toml"))?.as_bytes())
}

/// The summary with its links relative to the root, as mdBook requires.
fn from_root(summary: &str) -> String {
    summary.replace("](", "](docs/").replace("](docs/../", "](")
}

/// A link of a page to a file of the repository.
struct Link {
    written: String,
    /// Relative to the root; `None` if it leads outside.
    path: Option<PathBuf>,
}

/// The links and images of a page without a scheme that lead to another file.
fn links(page: &Path, text: &str) -> Vec<Link> {
    let written = Parser::new(text).filter_map(|event| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => Some(dest_url.into_string()),
        _ => None,
    });
    let to_file = written.filter(|link| !link.contains("://") && !link.starts_with(['#', '?']) && !link.is_empty());
    to_file.map(|written| Link { path: within(page, &written), written }).collect()
}

/// The files below a directory with this ending, in order.
fn files_of(root: &Path, below: &Path, ending: &str) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join(below))? {
        let path = below.join(entry?.file_name());
        if root.join(&path).is_dir() {
            found.extend(files_of(root, &path, ending)?);
        } else if path.extension().is_some_and(|extension| extension == ending) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Links of the built pages to a missing file or anchor.
fn dead_links(html: &Path) -> std::io::Result<Vec<String>> {
    let mut dead = Vec::new();
    for page in files_of(html, Path::new(""), "html")? {
        // These pages repeat all others, and are for printing.
        if matches!(page.to_str(), Some("print.html" | "toc.html" | "404.html")) {
            continue;
        }
        let text = fs::read_to_string(html.join(&page))?;
        for link in attributes(&text, &[" href=\"", " src=\""]) {
            let (file, place) = link.split_once('#').map_or((link, None), |(file, place)| (file, Some(place)));
            if link.contains("://") || file.starts_with(['/', '?']) || link.starts_with("data:") {
                continue;
            }
            let target = if file.is_empty() { Some(page.clone()) } else { within(&page, file) };
            let there = target.filter(|target| html.join(target).is_file());
            let has_place = |target: &Path, place: &str| {
                let text = fs::read_to_string(html.join(target)).unwrap_or_default();
                text.contains(&format!("id=\"{place}\""))
            };
            match (there, place) {
                (None, _) => dead.push(format!("{}: {link} leads nowhere", page.display())),
                (Some(target), Some(place)) if !place.is_empty() && !has_place(&target, place) => {
                    dead.push(format!("{}: {link}: there is no such heading", page.display()));
                }
                _ => {}
            }
        }
    }
    Ok(dead)
}

/// The values of some attributes, in the order of the text.
fn attributes<'a>(text: &'a str, names: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    names.iter().flat_map(|name| text.split(name).skip(1).filter_map(|rest| rest.split('"').next()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_a_chapter_and_no_link_leads_out_of_the_book() {
        let place = tempfile::tempdir().expect("a directory");
        if let Err(problems) = stage(crate::root(), place.path()) {
            panic!("{}", problems.join("\n"));
        }
        let summary = fs::read_to_string(place.path().join("src/SUMMARY.md")).expect("it was put there");
        assert!(summary.contains("](README.md)") && summary.contains("](docs/method.md)"), "{summary}");
        assert!(place.path().join("src/experiments/quickstart.toml").is_file(), "README.md links to it");
    }

    #[test]
    fn a_page_of_no_chapter_and_a_link_out_are_found() {
        let root = tempfile::tempdir().expect("a directory");
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).and_then(|()| fs::write(path, text)).expect("written");
        };
        put(SUMMARY, "[a](a.md)");
        put("docs/a.md", "[b](b.md) [c](../../c) [d](d.txt) [e](https://e.invalid)");
        put("docs/b.md", "");
        put("docs/book.toml", "");
        let problems = stage(root.path(), &root.path().join("place")).expect_err("three mistakes");
        assert_eq!(problems.len(), 4, "{problems:?}");
        assert!(problems[0].contains("docs/b.md is no chapter") && problems[3].contains("d.txt leads to no file"));
    }

    #[test]
    fn built_links_point_to_existing_files_and_headings() {
        let html = tempfile::tempdir().expect("a directory");
        let page = "<a href=\"b.html#there\"><a href=\"b.html#gone\"><img src=\"c.png\"><a href=\"https://e.invalid\">";
        fs::write(html.path().join("a.html"), page).expect("written");
        fs::write(html.path().join("b.html"), "<h2 id=\"there\">").expect("written");
        let dead = dead_links(html.path()).expect("it can be read");
        assert_eq!(dead, ["a.html: b.html#gone: there is no such heading", "a.html: c.png leads nowhere"]);
    }
}
