//! LinkBench's settings: the originals' names where they have one.

use rumba_engine_api::setting::{Kind, SettingError, SettingInfo, Settings, info};
use rumba_workload_kit::shares;

use crate::distribution::degree;
use crate::distribution::payload::PayloadShape;
use crate::profile::{PROFILE_2011, PROFILE_2017, Profile};

const PERCENT: Kind = Kind::Float(0.0, 100.0);
const SHAPE: Kind = Kind::Float(0.0, 10.0);
const MEDIAN: Kind = Kind::Float(0.0, 100_000.0);
const OF_PROFILE: &str = "of the profile";
const MAX_IDS: i64 = 1 << 39;

/// The settings of the mix, a percentage each, in the order of the published tables.
pub const MIX: [&str; 10] = [
    "getlinklist",
    "getnode",
    "getlink",
    "addlink",
    "updatelink",
    "deletelink",
    "countlink",
    "addnode",
    "updatenode",
    "deletenode",
];

pub const SETTINGS: &[SettingInfo] = &[
    info("profile", Kind::Choice(&["2011", "2017"]), "2017", "the published variant: mix, degrees, payloads, rules"),
    info("maxid1", Kind::Int(2, MAX_IDS), "1000001", "node ids go from startid1 up to, but not including, this one"),
    info("startid1", Kind::Int(1, MAX_IDS), "1", "the first node id"),
    info(
        "index",
        Kind::Choice(&["during", "after"]),
        "during",
        "the secondary index is kept during the load or built after it",
    ),
    info(
        "partitions",
        Kind::Int(0, 1024),
        "0",
        "partitions of linktable by id1 on servers that have them; 0 for none (the original of 2011 has 16)",
    ),
    info("degree_cap", Kind::Text, "auto", "most links per id: a number, none, or auto (in proportion to the ids)"),
    info("link_type_count", Kind::Int(1, 64), "2", "number of link types"),
    info("list_limit", Kind::Int(1, 1_000_000), "10000", "most links that a list returns"),
    info("max_retries", Kind::Int(0, 1_000_000), "100", "retries of an operation after conflicts before it fails"),
    info("getlinklist", PERCENT, OF_PROFILE, "percent of operations that list an id's links (get_links_list)"),
    info("getnode", PERCENT, OF_PROFILE, "percent of operations that read a node (get_node)"),
    info("getlink", PERCENT, OF_PROFILE, "percent of operations that read some links of an id (get_links)"),
    info("addlink", PERCENT, OF_PROFILE, "percent of operations that add a link (add_link)"),
    info("updatelink", PERCENT, OF_PROFILE, "percent of operations that update a link (update_link)"),
    info("deletelink", PERCENT, OF_PROFILE, "percent of operations that hide a link (delete_link)"),
    info("countlink", PERCENT, OF_PROFILE, "percent of operations that count an id's links (count_links)"),
    info("addnode", PERCENT, OF_PROFILE, "percent of operations that add a node (add_node)"),
    info("updatenode", PERCENT, OF_PROFILE, "percent of operations that update a node (update_node)"),
    info("deletenode", PERCENT, OF_PROFILE, "percent of operations that delete a node (delete_node)"),
    info("getlinklist_history", PERCENT, "0.3", "percent of lists that continue where a full list ended"),
    info(
        "link_multiget_dist_prob",
        Kind::Float(0.001, 1.0),
        "0.382",
        "ids per multiget are geometric with this parameter",
    ),
    info(
        "link_multiget_dist_min",
        Kind::Int(1, 2),
        "1",
        "fewest ids per multiget: 1 as the originals document, 2 as they draw (the published figures)",
    ),
    info("link_multiget_dist_max", Kind::Int(1, 128), "128", "most ids per multiget"),
    info("read_shape", SHAPE, "0.8", "Zipf shape of link reads"),
    info("read_uncorr_blend", PERCENT, "99.5", "percent of link reads with ids that do not depend on their degree"),
    info("write_shape", SHAPE, "0.741", "Zipf shape of link writes"),
    info("write_uncorr_blend", PERCENT, "95", "percent of link writes with ids that do not depend on their degree"),
    info("node_read_shape", SHAPE, "0.625", "Zipf shape of node reads"),
    info("node_update_shape", SHAPE, "0.606", "Zipf shape of node updates"),
    info("link_datasize", MEDIAN, OF_PROFILE, "median payload of links in bytes, at most 255"),
    info("node_datasize", MEDIAN, OF_PROFILE, "median payload of nodes in bytes"),
    info("link_uniqueness", Kind::Float(0.0, 1.0), "0.225", "share of link payload chunks that are new random bytes"),
    info("node_uniqueness", Kind::Float(0.0, 1.0), "0.63", "share of node payload chunks that are new random bytes"),
    info(
        "motif_length",
        Kind::Int(1, 1 << 20),
        "512",
        "bytes of the motif that other chunks are cut from; 128 compresses better",
    ),
];

/// How many links an id may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DegreeCap {
    /// In proportion to the number of ids.
    Auto(u64),
    Given(u64),
    /// The published table as it is.
    None,
}

impl DegreeCap {
    /// The largest degree that is allowed.
    pub fn links(self) -> u64 {
        match self {
            DegreeCap::Auto(links) | DegreeCap::Given(links) => links,
            DegreeCap::None => u64::MAX,
        }
    }
}

/// The settings, taken.
#[derive(Debug)]
pub struct Config {
    pub profile: &'static Profile,
    /// The first node id.
    pub first: u64,
    /// How many nodes are loaded.
    pub ids: u64,
    pub index_during_load: bool,
    /// The partitions of linktable on servers that have them; 0 for none.
    pub partitions: u64,
    pub degree_cap: DegreeCap,
    pub link_types: u64,
    pub list_limit: u64,
    pub max_retries: u32,
    /// Percent of each type, in the order of [`crate::profile::Kind`].
    pub mix: [f64; 10],
    /// Shares, 0 to 1.
    pub history: f64,
    pub read_uncorrelated: f64,
    pub write_uncorrelated: f64,
    pub multiget_prob: f64,
    pub multiget_min: u64,
    pub multiget_max: u64,
    pub read_shape: f64,
    pub write_shape: f64,
    pub node_read_shape: f64,
    pub node_update_shape: f64,
    pub link: PayloadShape,
    pub node: PayloadShape,
}

/// The number of ids for which the published degree tables are used unchanged.
const PUBLISHED_IDS: u64 = 1_000_000_000;
/// The minimum of an automatic cap: this many links are no burden at any size.
const LEAST_AUTO_CAP: u64 = 100;

/// The cap that gives the largest node the same share of the ids as at a billion.
fn auto_cap(table: &str, ids: u64) -> u64 {
    let share = u128::from(degree::largest(table)) * u128::from(ids) / u128::from(PUBLISHED_IDS);
    u64::try_from(share).unwrap_or(u64::MAX).max(LEAST_AUTO_CAP)
}

fn degree_cap(settings: &Settings, table: &str, ids: u64) -> Result<DegreeCap, SettingError> {
    match settings.text("degree_cap") {
        None | Some("auto") => Ok(DegreeCap::Auto(auto_cap(table, ids))),
        Some("none") => Ok(DegreeCap::None),
        Some(text) => match text.replace('_', "").parse() {
            Ok(links) if links >= 1 => Ok(DegreeCap::Given(links)),
            _ => Err(SettingError::new(
                "degree_cap",
                format!("`{text}` does not fit"),
                "expected auto, none or a number of links of at least 1",
            )),
        },
    }
}

impl Config {
    /// Reads the settings.
    ///
    /// # Errors
    /// The offending setting, and the accepted values.
    pub fn new(settings: &Settings) -> Result<Self, SettingError> {
        // Accept a number as text here too, for callers that do not read an experiment file.
        let given = settings.clone().as_described(SETTINGS);
        given.check("linkbench", SETTINGS)?;
        let settings = &given.with_defaults(SETTINGS);
        let profile = if settings.text("profile") == Some("2011") { &PROFILE_2011 } else { &PROFILE_2017 };
        let int = |name| settings.int(name).unwrap_or_default() as u64;
        let float = |name| settings.float(name).unwrap_or_default();
        let share = |name| float(name) / 100.0;
        let (first, end) = (int("startid1"), int("maxid1"));
        if end <= first {
            let remedy = format!("give a maxid1 above {first}: ids go from startid1 up to but not including maxid1");
            return Err(SettingError::new("maxid1", format!("{end} leaves no id after startid1 = {first}"), remedy));
        }
        let (multiget_min, multiget_max) = (int("link_multiget_dist_min"), int("link_multiget_dist_max"));
        if multiget_max < multiget_min {
            let problem = format!("{multiget_max} is below link_multiget_dist_min = {multiget_min}");
            let remedy = format!("give {multiget_min} or more");
            return Err(SettingError::new("link_multiget_dist_max", problem, remedy));
        }
        let motif_length = int("motif_length") as usize;
        Ok(Self {
            profile,
            first,
            ids: end - first,
            index_during_load: settings.text("index") != Some("after"),
            partitions: int("partitions"),
            degree_cap: degree_cap(settings, profile.degrees, end - first)?,
            link_types: int("link_type_count"),
            list_limit: int("list_limit"),
            max_retries: int("max_retries") as u32,
            mix: shares(settings, MIX, profile.mix, 100.0)?,
            history: share("getlinklist_history"),
            read_uncorrelated: share("read_uncorr_blend"),
            write_uncorrelated: share("write_uncorr_blend"),
            multiget_prob: float("link_multiget_dist_prob"),
            multiget_min,
            multiget_max,
            read_shape: float("read_shape"),
            write_shape: float("write_shape"),
            node_read_shape: float("node_read_shape"),
            node_update_shape: float("node_update_shape"),
            link: PayloadShape {
                median: settings.float("link_datasize").unwrap_or(profile.link_datasize),
                cap: 255,
                from: 32,
                to: 100,
                uniqueness: float("link_uniqueness"),
                motif_length,
            },
            node: PayloadShape {
                median: settings.float("node_datasize").unwrap_or(profile.node_datasize),
                cap: 1 << 20,
                from: 50,
                to: 220,
                uniqueness: float("node_uniqueness"),
                motif_length,
            },
        })
    }

    /// The id after the last loaded one.
    pub fn end(&self) -> u64 {
        self.first + self.ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rumba_engine_api::setting::Value;

    fn with(pairs: &[(&str, Value)]) -> Result<Config, SettingError> {
        Config::new(&pairs.iter().cloned().collect())
    }

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    #[test]
    fn default_is_the_2017_profile_with_a_million_ids() {
        let config = with(&[]).unwrap();
        assert_eq!((config.profile.name, config.ids, config.end()), ("2017", 1_000_000, 1_000_001));
        // The largest node has 0.42% of the ids, as at a billion.
        assert_eq!(config.degree_cap, DegreeCap::Auto(4181));
    }

    #[test]
    fn the_profile_may_be_written_as_a_number() {
        assert_eq!(with(&[("profile", Value::Int(2011))]).unwrap().profile.name, "2011");
        assert!(with(&[("profile", Value::Int(2013))]).is_err());
    }

    #[test]
    fn mix_other_than_100_percent_reports_its_sum() {
        let error = with(&[("getnode", Value::Int(100))]).err().unwrap();
        assert!(error.problem.contains("156.01"), "{error}");
        let only: Vec<(&str, Value)> =
            MIX.iter().map(|&name| (name, Value::Int(i64::from(name == "getnode") * 100))).collect();
        assert!(with(&only).is_ok());
    }

    #[test]
    fn the_degree_cap_is_a_number_none_or_in_proportion() {
        let cap = |value| with(&[("degree_cap", value)]).map(|config| config.degree_cap);
        assert_eq!(cap(text("none")), Ok(DegreeCap::None));
        assert_eq!(cap(text("5_000")), Ok(DegreeCap::Given(5000)));
        assert_eq!(cap(Value::Int(7)), Ok(DegreeCap::Given(7)));
        assert!(cap(text("much")).unwrap_err().remedy.contains("none"));
        assert!(cap(Value::Int(0)).is_err());
    }

    #[test]
    fn empty_ranges_are_refused() {
        let error = with(&[("link_multiget_dist_min", Value::Int(2)), ("link_multiget_dist_max", Value::Int(1))]);
        assert_eq!(error.err().unwrap().key, "link_multiget_dist_max");
        let error = with(&[("startid1", Value::Int(10)), ("maxid1", Value::Int(10))]);
        assert_eq!(error.err().unwrap().key, "maxid1");
    }
}
