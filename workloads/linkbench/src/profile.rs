//! The two published variants of LinkBench, as numbers.

use strum::VariantArray;

use crate::distribution::degree;

/// The types of operations, in the order of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub enum Kind {
    GetLinksList,
    GetNode,
    GetLinks,
    AddLink,
    UpdateLink,
    DeleteLink,
    CountLinks,
    AddNode,
    UpdateNode,
    DeleteNode,
}

/// How links are added and updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteStyle {
    /// 2011: one upsert for both; an update is an add.
    Upsert,
    /// 2017: an add inserts, and updates if the link exists. An update locks and overwrites, and inserts if the link is
    /// missing.
    InsertOrUpdate,
}

/// How an operation picks the other end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Id2Style {
    /// 2011: from a range after id1 that is wider than the loaded one.
    Range,
    /// 2017: a loaded link with the wanted probability, otherwise any id.
    Coin,
}

/// How an id's links are divided among the link types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitStyle {
    /// 2011: the published rule, which rounds up for more types than the remainder
    /// has links and so loads 4.37 links per id where the table has 4.10.
    RoundedUp,
    /// 2017: at least one link for each type, the same number for all, rounded down.
    Even,
}

/// One published variant.
#[derive(Debug)]
pub struct Profile {
    pub name: &'static str,
    /// Percent of each type, in the order of [`Kind`].
    pub mix: [f64; 10],
    /// The out-degree table.
    pub degrees: &'static str,
    /// Median payload of links in bytes.
    pub link_datasize: f64,
    /// Median payload of nodes in bytes.
    pub node_datasize: f64,
    pub write: WriteStyle,
    pub id2: Id2Style,
    pub split: SplitStyle,
}

/// The mix, sizes and rules of the original paper.
pub const PROFILE_2011: Profile = Profile {
    name: "2011",
    mix: [
        50.7119145, 12.9326683, 0.5261142, 8.9886601, 8.0122125, 2.9907664, 4.8863567, 2.5732789, 7.366437, 1.0115914,
    ],
    degrees: degree::TABLE_2011,
    link_datasize: 8.0,
    node_datasize: 128.0,
    write: WriteStyle::Upsert,
    id2: Id2Style::Range,
    split: SplitStyle::RoundedUp,
};

/// The mix, sizes and rules of the revision of 2017.
pub const PROFILE_2017: Profile = Profile {
    name: "2017",
    mix: [22.57039, 43.9869, 12.14725, 5.35038, 4.75589, 0.98401, 4.27898, 2.61198, 3.06256, 0.25166],
    degrees: degree::TABLE_2017,
    link_datasize: 23.0,
    node_datasize: 168.0,
    write: WriteStyle::InsertOrUpdate,
    id2: Id2Style::Coin,
    split: SplitStyle::Even,
};

/// The probability that an operation requests a loaded link.
#[derive(Clone, Copy, Debug)]
pub struct Existing;

impl Existing {
    /// Multigets: new and loaded links equally often.
    pub const GET: f64 = 0.5;
    /// Updates: mostly loaded ones.
    pub const UPDATE: f64 = 0.9;
    /// Deletes: mostly loaded ones.
    pub const DELETE: f64 = 0.9;
    /// Adds: seldom one that is there.
    pub const ADD: f64 = 0.05;
}

impl SplitStyle {
    /// How many links of type number `nth` an id of this degree has, of `types` types.
    #[inline]
    pub fn links_of_type(self, degree: u64, nth: u64, types: u64) -> u64 {
        match self {
            SplitStyle::Even => degree.max(types) / types,
            SplitStyle::RoundedUp => {
                let least = degree / types;
                least + u64::from(nth < degree - least)
            }
        }
    }

    /// How many links of all types an id of this degree has.
    pub fn links(self, degree: u64, types: u64) -> u64 {
        (0..types).map(|nth| self.links_of_type(degree, nth, types)).sum()
    }
}
