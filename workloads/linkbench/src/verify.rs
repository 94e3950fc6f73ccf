//! Verification after a run: the tables hold as many rows as were written, and counts, links and index entries agree.
//!
//! Streams are merged by id1 and link type. Each is read once, in pages, so that memory stays bounded. The counts and
//! the index entries have that order. The link table is sorted by type first, so each link type is a separate stream.

use std::ops::Range;

use rumba_engine_api::check::Check;
use rumba_engine_api::error::Result;
use rumba_workload_kit::ledger::RowCount;

use crate::graph::{GraphScan, IndexKey, LINK_TYPE, Link, LinkKey};
use crate::hash::hash;

mod rows;

/// Rows read at once.
const PAGE: u64 = 1024;

/// One table's sums for the links of one id and type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Group {
    id1: u64,
    link_type: u64,
    links: u64,
    visible: u64,
    /// The sum of the links' hashes: the same for the same links in any order.
    hash: u64,
}

impl Group {
    fn of(link: &Link<'_>) -> Self {
        let LinkKey { link_type, id1, .. } = link.key;
        Self { id1, link_type, links: 1, visible: u64::from(link.visible), hash: hash_of(link) }
    }

    fn key(&self) -> (u64, u64) {
        (self.id1, self.link_type)
    }

    fn join(&mut self, other: &Self) {
        self.links += other.links;
        self.visible += other.visible;
        self.hash = self.hash.wrapping_add(other.hash);
    }
}

fn hash_of(link: &Link<'_>) -> u64 {
    let LinkKey { link_type, id1, id2 } = link.key;
    hash([link_type, id1, id2, u64::from(link.visible), link.version.into(), link.time], link.data)
}

/// A stream of groups, in the order of id1 and link type.
struct Groups<C> {
    /// Groups of the page, those of one id and type joined.
    page: Vec<Group>,
    place: usize,
    after: Option<C>,
    ended: bool,
}

impl<C: Copy> Groups<C> {
    fn new(after: Option<C>) -> Self {
        Self { page: Vec::with_capacity(PAGE as usize), place: 0, after, ended: false }
    }

    /// The next group, once the stream has been filled.
    fn head(&self) -> Option<&Group> {
        self.page.get(self.place)
    }

    /// Makes room for another page, if it must be read before the head is known to be whole; the last group may continue
    /// in it. Also returns the row that it comes after.
    fn next_page(&mut self) -> Option<(Option<C>, &mut Self)> {
        if self.ended || self.place + 1 < self.page.len() {
            return None;
        }
        self.page.drain(..self.place.min(self.page.len()));
        self.place = 0;
        Some((self.after, self))
    }

    fn take(&mut self, key: (u64, u64)) -> Option<Group> {
        let group = *self.head().filter(|group| group.key() == key)?;
        self.place += 1;
        Some(group)
    }
}

fn push(page: &mut Vec<Group>, group: Group) {
    match page.last_mut().filter(|last| last.key() == group.key()) {
        Some(last) => last.join(&group),
        None => page.push(group),
    }
}

/// The streams of all types. Rows of a type that was never written are noted and skipped.
struct Merge {
    known: Range<u64>,
    counts: Groups<(u64, u64)>,
    /// A stream for each known type.
    links: Vec<Groups<LinkKey>>,
    entries: Groups<IndexKey>,
    types: Check,
}

impl Merge {
    fn new(known: Range<u64>) -> Self {
        let before = |link_type| LinkKey { link_type: link_type - 1, id1: u64::MAX >> 1, id2: u64::MAX >> 1 };
        Self {
            counts: Groups::new(None),
            links: known.clone().map(|link_type| Groups::new(Some(before(link_type)))).collect(),
            entries: Groups::new(None),
            types: Check::new("every row has a known link type"),
            known,
        }
    }

    /// Reads until the head of every stream is complete.
    async fn fill(&mut self, graph: &mut impl GraphScan) -> Result<()> {
        self.fill_links(graph).await?;
        self.fill_entries(graph).await?;
        self.fill_counts(graph).await
    }

    async fn fill_links(&mut self, graph: &mut impl GraphScan) -> Result<()> {
        for (link_type, links) in self.known.clone().zip(&mut self.links) {
            while let Some((from, Groups { page, after, ended, .. })) = links.next_page() {
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
        }
        Ok(())
    }

    async fn fill_entries(&mut self, graph: &mut impl GraphScan) -> Result<()> {
        let Self { known, entries, types, .. } = self;
        while let Some((from, Groups { page, after, ended, .. })) = entries.next_page() {
            let rows = graph
                .scan_index(from, PAGE, &mut |link| {
                    *after = Some(link.entry());
                    if known.contains(&link.key.link_type) {
                        push(page, Group::of(link));
                    } else {
                        types.fail(|| format!("the index entry {:?} has another link_type", link.key));
                    }
                })
                .await?;
            *ended = rows < PAGE;
        }
        Ok(())
    }

    async fn fill_counts(&mut self, graph: &mut impl GraphScan) -> Result<()> {
        let Self { known, counts, types, .. } = self;
        while let Some((from, Groups { page, after, ended, .. })) = counts.next_page() {
            let rows = graph
                .scan_counts(from, PAGE, &mut |count| {
                    let (id1, link_type) = (count.id1, count.link_type);
                    *after = Some((id1, link_type));
                    types.examined += 1;
                    if known.contains(&link_type) {
                        // A negative count becomes a huge one, which equals no sum.
                        push(page, Group { id1, link_type, visible: count.count as u64, ..Group::default() });
                    } else {
                        types.fail(|| format!("the count of id1 {id1} has link_type {link_type}"));
                    }
                })
                .await?;
            *ended = rows < PAGE;
        }
        Ok(())
    }

    /// The next id and type in any of the streams.
    fn next(&self) -> Option<(u64, u64)> {
        let heads = [self.counts.head(), self.entries.head()].into_iter().chain(self.links.iter().map(Groups::head));
        heads.flatten().map(Group::key).min()
    }

    /// The groups of this id and type in the three tables: the count, the links and the index entries.
    fn take(&mut self, key: (u64, u64)) -> (Option<Group>, Group, Group) {
        let links = &mut self.links[(key.1 - self.known.start) as usize];
        let (count, links) = (self.counts.take(key), links.take(key));
        (count, links.unwrap_or_default(), self.entries.take(key).unwrap_or_default())
    }
}

/// A check without any examined rows proves nothing.
fn not_empty(mut check: Check) -> Check {
    if check.examined == 0 && check.wrong == 0 {
        check.fail(|| "nothing to verify: the tables are empty".to_owned());
    }
    check
}

/// The content that the database must hold.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    pub link_types: u64,
    pub links: RowCount,
    pub nodes: RowCount,
}

/// Checks that the tables hold the counted writes, and that they agree with each other.
///
/// # Errors
/// Any error of the engine; a value too short to be decoded.
pub async fn verify(graph: &mut impl GraphScan, expected: &Expected) -> Result<Vec<Check>> {
    let [node_rows, node_content] = rows::nodes(graph, &expected.nodes).await?;
    let (found, [counts, entries, types]) = tables(graph, LINK_TYPE..LINK_TYPE + expected.link_types).await?;
    let link_rows = expected.links.check("the links are as many as loaded and inserted", found);
    Ok([node_rows, node_content, link_rows, counts, entries, types].map(not_empty).into())
}

/// Checks that all tables of links agree, and that no row has a link type that was never written; the number of links
/// with it.
async fn tables(graph: &mut impl GraphScan, known: Range<u64>) -> Result<(u64, [Check; 3])> {
    let mut found = 0;
    let mut counts = Check::new("every count equals its visible links");
    let mut entries = Check::new("the index entries of every id equal its links");
    let mut merge = Merge::new(known.clone());
    merge.fill(graph).await?;
    while let Some(key) = merge.next() {
        let (count, links, indexed) = merge.take(key);
        let (id1, link_type) = key;
        found += links.links;
        counts.examined += 1;
        if count.unwrap_or_default().visible != links.visible {
            counts.fail(|| {
                let says = count.map_or("is missing".to_owned(), |count| format!("says {}", count.visible as i64));
                format!("id1 {id1}, link_type {link_type}: the count {says}, {} links are visible", links.visible)
            });
        }
        entries.examined += 1;
        if (links.links, links.hash) != (indexed.links, indexed.hash) {
            entries.fail(|| {
                let (there, here) = (links.links, indexed.links);
                let kind = if there == here { "other content" } else { "another number" };
                format!("id1 {id1}, link_type {link_type}: {there} links, {here} index entries, {kind}")
            });
        }
        merge.fill(graph).await?;
    }
    let mut types = merge.types;
    links_beyond(graph, &known, &mut types).await?;
    Ok((found, [counts, entries, types]))
}

/// Looks for links of types before and after the known ones: the merge does not see them.
async fn links_beyond(graph: &mut impl GraphScan, known: &Range<u64>, types: &mut Check) -> Result<()> {
    let beyond = LinkKey { link_type: known.end - 1, id1: u64::MAX >> 1, id2: u64::MAX >> 1 };
    for after in [None, Some(beyond)] {
        graph
            .scan_links(after, 1, &mut |link| {
                types.examined += 1;
                if !known.contains(&link.key.link_type) {
                    types.fail(|| format!("{:?} has another link_type", link.key));
                }
            })
            .await?;
    }
    Ok(())
}
