//! A link in a document to a file of the project leads to a file.

use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{Event, Parser, Tag};

use super::{Finding, Text};

/// Every link and image of a Markdown file that has no scheme.
pub fn check(file: &Text, root: &Path) -> Vec<Finding> {
    if file.extension() != "md" {
        return Vec::new();
    }
    Parser::new(&file.content)
        .into_offset_iter()
        .filter_map(|(event, range)| match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                let what = dead(&file.path, &dest_url, root)?;
                Some(file.finding(file.line_of(range.start), what))
            }
            _ => None,
        })
        .collect()
}

fn dead(document: &Path, link: &str, root: &Path) -> Option<String> {
    if link.starts_with(['#', '?']) || link.is_empty() || link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let Some(path) = within(document, link) else { return Some(format!("the link {link} leads out of the project")) };
    (!root.join(path).exists()).then(|| format!("the link {link} leads nowhere"))
}

/// The path of a link's file relative to the root, if it stays within.
pub fn within(document: &Path, link: &str) -> Option<PathBuf> {
    let mut path = document.parent().unwrap_or(Path::new("")).to_owned();
    for component in Path::new(link.split(['#', '?']).next().unwrap_or_default()).components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !path.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}
