//! The check after a run: the tables hold as many rows as were written, and
//! counts, links and index entries agree.
//!
//! For each link type, three streams are merged by id1: the counts, the links of
//! the link table, and the entries of the index. Each is read in pages, so that
//! memory stays bounded; rows of other types are passed over.

use rumba_core::check::Check;
use rumba_core::error::EngineError;

use crate::graph::{GraphScan, IndexKey, LINK_TYPE, Link, LinkKey};

mod rows;

pub use rows::Rows;

/// Rows read at once.
const PAGE: u64 = 1024;
/// Broken things that are put in words.
const EXAMPLES: usize = 5;

/// What one table says about the links of one id and type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Group {
    id1: u64,
    links: u64,
    visible: u64,
    /// The sum of the links' hashes: the same for the same links in any order.
    hash: u64,
}

impl Group {
    fn of(link: &Link<'_>) -> Self {
        Self { id1: link.key.id1, links: 1, visible: u64::from(link.visible), hash: hash(link) }
    }

    fn join(&mut self, other: &Self) {
        self.links += other.links;
        self.visible += other.visible;
        self.hash = self.hash.wrapping_add(other.hash);
    }
}

/// A hash of everything in a link.
fn hash(link: &Link<'_>) -> u64 {
    let mix = |sum: u64, part: u64| rumba_workload_kit::stream_seed(sum, part);
    let LinkKey { link_type, id1, id2 } = link.key;
    let length = link.data.len() as u64;
    let head = [link_type, id1, id2, u64::from(link.visible), link.version.into(), link.time, length];
    let sum = head.into_iter().fold(0, mix);
    link.data.chunks(8).fold(sum, |sum, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix(sum, u64::from_le_bytes(word))
    })
}

/// A stream of groups, in the order of id1.
struct Groups<C> {
    /// Groups of the page, those of one id joined.
    page: Vec<Group>,
    place: usize,
    after: Option<C>,
    ended: bool,
}

impl<C> Groups<C> {
    fn new(after: Option<C>) -> Self {
        Self { page: Vec::with_capacity(PAGE as usize), place: 0, after, ended: false }
    }

    /// The next group, once the stream has been filled.
    fn head(&self) -> Option<&Group> {
        self.page.get(self.place)
    }

    /// Whether another page must be read before the head is known to be whole.
    fn wants_page(&self) -> bool {
        !self.ended && self.place + 1 >= self.page.len()
    }

    /// Makes room for a page; the last group may go on in it.
    fn turn(&mut self) {
        self.page.drain(..self.place.min(self.page.len()));
        self.place = 0;
    }

    fn take(&mut self, id1: u64) -> Option<Group> {
        let group = *self.head().filter(|group| group.id1 == id1)?;
        self.place += 1;
        Some(group)
    }
}

fn push(page: &mut Vec<Group>, group: Group) {
    match page.last_mut().filter(|last| last.id1 == group.id1) {
        Some(last) => last.join(&group),
        None => page.push(group),
    }
}

/// One type's three streams.
struct Merge {
    link_type: u64,
    counts: Groups<(u64, u64)>,
    links: Groups<LinkKey>,
    entries: Groups<IndexKey>,
}

impl Merge {
    fn new(link_type: u64) -> Self {
        let before = LinkKey { link_type: link_type - 1, id1: u64::MAX >> 1, id2: u64::MAX >> 1 };
        Self { link_type, counts: Groups::new(None), links: Groups::new(Some(before)), entries: Groups::new(None) }
    }

    /// Reads on until the head of every stream is whole.
    async fn fill(&mut self, graph: &mut impl GraphScan) -> Result<(), EngineError> {
        self.fill_links(graph).await?;
        self.fill_entries(graph).await?;
        self.fill_counts(graph).await
    }

    async fn fill_links(&mut self, graph: &mut impl GraphScan) -> Result<(), EngineError> {
        let link_type = self.link_type;
        while self.links.wants_page() {
            self.links.turn();
            let Groups { page, after, ended, .. } = &mut self.links;
            let from = *after;
            let rows = graph
                .scan_links(from, PAGE, &mut |link| {
                    *after = Some(link.key);
                    if link.key.link_type == link_type {
                        push(page, Group::of(link));
                    }
                })
                .await?;
            *ended = rows < PAGE || after.is_some_and(|key| key.link_type > link_type);
        }
        Ok(())
    }

    async fn fill_entries(&mut self, graph: &mut impl GraphScan) -> Result<(), EngineError> {
        let link_type = self.link_type;
        while self.entries.wants_page() {
            self.entries.turn();
            let Groups { page, after, ended, .. } = &mut self.entries;
            let from = *after;
            let rows = graph
                .scan_index(from, PAGE, &mut |link| {
                    *after = Some(link.entry());
                    if link.key.link_type == link_type {
                        push(page, Group::of(link));
                    }
                })
                .await?;
            *ended = rows < PAGE;
        }
        Ok(())
    }

    async fn fill_counts(&mut self, graph: &mut impl GraphScan) -> Result<(), EngineError> {
        let link_type = self.link_type;
        while self.counts.wants_page() {
            self.counts.turn();
            let Groups { page, after, ended, .. } = &mut self.counts;
            let from = *after;
            let rows = graph
                .scan_counts(from, PAGE, &mut |count| {
                    *after = Some((count.id1, count.link_type));
                    if count.link_type == link_type {
                        // A negative count becomes a huge one, which nothing equals.
                        push(page, Group { id1: count.id1, visible: count.count as u64, ..Group::default() });
                    }
                })
                .await?;
            *ended = rows < PAGE;
        }
        Ok(())
    }

    /// The next id that any of the three has.
    fn next_id(&self) -> Option<u64> {
        [self.counts.head(), self.links.head(), self.entries.head()].into_iter().flatten().map(|group| group.id1).min()
    }
}

fn note(check: &mut Check, wrong: impl FnOnce() -> String) {
    check.wrong += 1;
    if check.examples.len() < EXAMPLES {
        check.examples.push(wrong());
    }
}

fn check(name: &str) -> Check {
    Check { name: name.to_owned(), examined: 0, wrong: 0, examples: Vec::new() }
}

/// A check that looked at nothing has proven nothing.
fn not_empty(mut check: Check) -> Check {
    if check.examined == 0 && check.wrong == 0 {
        note(&mut check, || "nothing was there to examine: the tables are empty".to_owned());
    }
    check
}

/// What the database must hold.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// How many link types were loaded.
    pub link_types: u64,
    /// The rows of the link table.
    pub links: Rows,
    /// The rows of the node table.
    pub nodes: Rows,
}

/// Checks that the tables hold what was written, as far as that was counted, and that they agree.
///
/// # Errors
/// Whatever the engine said; a value too short to be decoded.
pub async fn verify(graph: &mut impl GraphScan, expected: &Expected) -> Result<Vec<Check>, EngineError> {
    let [node_rows, node_content] = rows::nodes(graph, &expected.nodes).await?;
    let (found, [counts, entries]) = tables(graph, expected.link_types).await?;
    let link_rows = expected.links.check("the links are as many as loaded and inserted", found);
    let types = types(graph, expected.link_types).await?;
    Ok([node_rows, node_content, link_rows, counts, entries, types].map(not_empty).into())
}

/// Checks that all tables of links agree; the number of links with it.
async fn tables(graph: &mut impl GraphScan, link_types: u64) -> Result<(u64, [Check; 2]), EngineError> {
    let mut found = 0;
    let mut counts = check("every count equals its visible links");
    let mut entries = check("the index entries of every id equal its links");
    for link_type in LINK_TYPE..LINK_TYPE + link_types {
        let mut merge = Merge::new(link_type);
        merge.fill(graph).await?;
        while let Some(id1) = merge.next_id() {
            let count = merge.counts.take(id1);
            let links = merge.links.take(id1).unwrap_or_default();
            let indexed = merge.entries.take(id1).unwrap_or_default();
            found += links.links;
            counts.examined += 1;
            if count.unwrap_or_default().visible != links.visible {
                note(&mut counts, || {
                    let says = count.map_or("is missing".to_owned(), |count| format!("says {}", count.visible as i64));
                    format!("id1 {id1}, link_type {link_type}: the count {says}, {} links are visible", links.visible)
                });
            }
            entries.examined += 1;
            if (links.links, links.hash) != (indexed.links, indexed.hash) {
                note(&mut entries, || {
                    let (there, here) = (links.links, indexed.links);
                    let kind = if there == here { "other content" } else { "another number" };
                    format!("id1 {id1}, link_type {link_type}: {there} links, {here} index entries, {kind}")
                });
            }
            merge.fill(graph).await?;
        }
    }
    Ok((found, [counts, entries]))
}

/// Checks that no row has a link type that was never written: the merge would not see it.
async fn types(graph: &mut impl GraphScan, link_types: u64) -> Result<Check, EngineError> {
    let known = LINK_TYPE..LINK_TYPE + link_types;
    let mut check = check("every row has a known link type");
    let mut after = None;
    loop {
        let from = after;
        let rows = graph
            .scan_counts(from, PAGE, &mut |count| {
                after = Some((count.id1, count.link_type));
                check.examined += 1;
                if !known.contains(&count.link_type) {
                    note(&mut check, || format!("the count of id1 {} has link_type {}", count.id1, count.link_type));
                }
            })
            .await?;
        if rows < PAGE {
            break;
        }
    }
    let beyond = LinkKey { link_type: known.end - 1, id1: u64::MAX >> 1, id2: u64::MAX >> 1 };
    for after in [None, Some(beyond)] {
        graph
            .scan_links(after, 1, &mut |link| {
                check.examined += 1;
                if !known.contains(&link.key.link_type) {
                    note(&mut check, || format!("{:?} has another link_type", link.key));
                }
            })
            .await?;
    }
    Ok(check)
}
