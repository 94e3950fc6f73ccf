//! YCSB's settings, with the names of its properties if it has one.

use std::sync::Arc;

use rumba_engine_api::setting::{Kind as Of, SettingError, SettingInfo, Settings, Value, info};
use rumba_engine_api::workload::Test;
use rumba_workload_kit::shares;

use crate::keys::{KeyForm, MOST_DIGITS};
use crate::lengths::{Histogram, Lengths};
use crate::profile::{Kind, NAMES, PROFILES, Profile};
use crate::requests::{Requests, ScanLengths};
use crate::zipf::Zipf;

pub const MOST_FIELDS: usize = 256;

const SHARE: Of = Of::Float(0.0, 1.0);
const OF_PROFILE: &str = "of the profile";
/// The setting that makes tests of several profiles.
const PROFILES_OF: &str = "profiles";

/// The proportions, in the order of [`Kind::ALL`].
const MIX: [&str; 5] =
    ["readproportion", "updateproportion", "insertproportion", "scanproportion", "readmodifywriteproportion"];

/// The setting that says how often each length is.
const HISTOGRAM: &str = "fieldlengthhistogram";
/// The most bytes of a field.
const LONGEST: usize = 65_535;

pub const SETTINGS: &[SettingInfo] = &[
    info("profile", Of::Choice(NAMES), "a", "the core workload: its proportions, how records are chosen, longest scan"),
    info(PROFILES_OF, Of::Text, "none", "tests: several core workloads over one load, in this order: \"a,b,c,d,e,f\""),
    info("recordcount", Of::Int(1, 1 << 40), "1000000", "records that are loaded, about 1.1 kB each"),
    info("fieldcount", Of::Int(1, MOST_FIELDS as i64), "10", "fields of a record"),
    info("fieldlength", Of::Int(1, LONGEST as i64), "100", "bytes of a field, or the most if lengths differ"),
    info(
        "fieldlengthdistribution",
        Of::Choice(&["constant", "uniform", "zipfian", "histogram"]),
        "constant",
        "lengths of fields: fieldlength bytes, uniform from minfieldlength to it, mostly short, or as in fieldlengthhistogram",
    ),
    info(
        HISTOGRAM,
        Of::Text,
        "none",
        "lengths with their weights, \"10:3,100:1\", or the text of YCSB's histogram file, for fieldlengthdistribution = \"histogram\"",
    ),
    info(
        "minfieldlength",
        Of::Int(1, LONGEST as i64),
        "1",
        "the fewest bytes of a field, unless all have the same length",
    ),
    info("readallfields", Of::Bool, "true", "reads and scans return all fields; false: one random field"),
    info("writeallfields", Of::Bool, "false", "updates write all fields; false: one random field"),
    info("readproportion", SHARE, OF_PROFILE, "share of operations that read a record"),
    info("updateproportion", SHARE, OF_PROFILE, "share of operations that update a record"),
    info("insertproportion", SHARE, OF_PROFILE, "share of operations that insert a record"),
    info("scanproportion", SHARE, OF_PROFILE, "share of operations that read several records in key order"),
    info("readmodifywriteproportion", SHARE, OF_PROFILE, "share of operations that read a record and update it"),
    info(
        "requestdistribution",
        Of::Choice(&["uniform", "zipfian", "latest", "hotspot", "sequential", "exponential"]),
        OF_PROFILE,
        "how records are chosen",
    ),
    info("minscanlength", Of::Int(1, 1_000_000), "1", "fewest records of a scan"),
    info("maxscanlength", Of::Int(1, 1_000_000), OF_PROFILE, "most records of a scan: 100 in e, else 1000"),
    info(
        "scanlengthdistribution",
        Of::Choice(&["uniform", "zipfian"]),
        "uniform",
        "how many records a scan reads: uniform, or mostly few",
    ),
    info(
        "insertorder",
        Of::Choice(&["hashed", "ordered"]),
        "hashed",
        "keys are the records' numbers scattered by a hash, or the numbers themselves",
    ),
    info("zeropadding", Of::Int(1, MOST_DIGITS as i64), "1", "digits that keys are filled up to with zeros"),
    info("hotspotdatafraction", SHARE, "0.2", "hotspot: share of the records that is hot"),
    info("hotspotopnfraction", SHARE, "0.8", "hotspot: share of the operations on the hot records"),
    info(
        "exponential_percentile",
        Of::Float(1.0, 99.999),
        "95",
        "exponential: percent of the draws in the newest exponential_frac; those beyond the oldest are drawn again",
    ),
    info("exponential_frac", Of::Float(0.000_001, 1.0), "0.8571428571", "exponential: that share of the records"),
    info("max_retries", Of::Int(0, 1_000_000), "100", "retries of an operation after conflicts"),
];

/// The settings, taken.
#[derive(Clone, Debug)]
pub struct Config {
    pub profile: &'static Profile,
    pub records: u64,
    pub fields: usize,
    pub lengths: Lengths,
    pub reads_all: bool,
    pub writes_all: bool,
    /// The share of each type, in the order of [`Kind::ALL`].
    pub mix: [f64; 5],
    pub requests: Requests,
    pub scans: ScanLengths,
    pub keys: KeyForm,
    pub max_retries: u32,
}

/// Refuses a range that is empty.
fn range(settings: [(&str, u64); 2]) -> Result<(u64, u64), SettingError> {
    let [(of_least, least), (of_most, most)] = settings;
    if least <= most {
        return Ok((least, most));
    }
    Err(SettingError::new(of_least, format!("{least} is above {of_most} = {most}"), format!("give {most} or less")))
}

fn histogram(settings: &Settings) -> Result<Histogram, SettingError> {
    let wrong = |problem: String| {
        let remedy = "give lengths in bytes with their weights, \"10:3,100:1\", or the text of the original's file, \
                      not its name; or choose another fieldlengthdistribution";
        SettingError::new(HISTOGRAM, problem, remedy)
    };
    match settings.text(HISTOGRAM).filter(|text| *text != "none" && !text.trim().is_empty()) {
        Some(text) => Histogram::parse(text, LONGEST).map_err(wrong),
        None => {
            let why = "it is not given, and fieldlengthdistribution = \"histogram\" draws from it how long each field \
                       is that is loaded, inserted or updated";
            Err(wrong(why.to_owned()))
        }
    }
}

fn lengths(settings: &Settings) -> Result<Lengths, SettingError> {
    let number = |name| settings.int(name).unwrap_or_default() as u64;
    let (least, most) = (number("minfieldlength"), number("fieldlength"));
    let bounds = || {
        let (least, most) = range([("minfieldlength", least), ("fieldlength", most)])?;
        Ok((least as usize, most as usize))
    };
    Ok(match settings.text("fieldlengthdistribution") {
        Some("uniform") => {
            let (least, most) = bounds()?;
            Lengths::Uniform(least, most)
        }
        Some("zipfian") => {
            let (least, most) = bounds()?;
            Lengths::Zipfian(least, most, Zipf::new((most - least + 1) as u64))
        }
        Some("histogram") => Lengths::Histogram(Arc::new(histogram(settings)?)),
        _ => Lengths::Constant(most as usize),
    })
}

impl Config {
    /// Reads the settings.
    ///
    /// # Errors
    /// The offending setting, and the accepted values.
    pub fn new(settings: &Settings) -> Result<Self, SettingError> {
        settings.check("ycsb", SETTINGS)?;
        let settings = &settings.with_defaults(SETTINGS);
        let number = |name| settings.int(name).unwrap_or_default() as u64;
        let name = settings.text("profile").unwrap_or_default();
        let profile = PROFILES.iter().find(|profile| profile.name == name).unwrap_or(&PROFILES[0]);
        let longest = settings.int("maxscanlength").map_or(profile.max_scan, |most| most as u64);
        let (least, most) = range([("minscanlength", number("minscanlength")), ("maxscanlength", longest)])?;
        let scans = match settings.text("scanlengthdistribution") {
            Some("zipfian") => ScanLengths::Zipfian(least, Zipf::new(most - least + 1)),
            _ => ScanLengths::Uniform(least, most),
        };
        let (records, mix) = (number("recordcount"), shares(settings, MIX, profile.mix, 1.0)?);
        let requests = settings.text("requestdistribution").unwrap_or(profile.requests);
        Ok(Self {
            profile,
            records,
            fields: number("fieldcount") as usize,
            lengths: lengths(settings)?,
            reads_all: settings.bool("readallfields") != Some(false),
            writes_all: settings.bool("writeallfields") == Some(true),
            requests: Requests::new(requests, settings, records, mix[Kind::Insert as usize]),
            mix,
            scans,
            keys: KeyForm {
                is_hashed: settings.text("insertorder") != Some("ordered"),
                digits: number("zeropadding") as usize,
            },
            max_retries: number("max_retries") as u32,
        })
    }

    /// Whether the mix has operations of a type.
    pub fn does(&self, kind: Kind) -> bool {
        self.mix[kind as usize] > 0.0
    }

    /// The types that the mix has, in their order.
    pub fn kinds(&self) -> Vec<Kind> {
        Kind::ALL.into_iter().filter(|kind| self.does(*kind)).collect()
    }

    /// The most bytes of a record's fields together.
    pub fn longest_record(&self) -> usize {
        self.fields * self.lengths.bounds().1
    }

    /// Bytes of an average record: its key and its fields.
    pub fn mean_record(&self) -> f64 {
        self.keys.mean_length() as f64 + self.fields as f64 * self.lengths.mean()
    }
}

/// The tests that `profiles` requests: several mixes over the same load.
///
/// # Errors
/// A letter that is not a core workload.
pub fn tests(settings: &Settings) -> Result<Vec<Test>, SettingError> {
    let Some(letters) = settings.text(PROFILES_OF).filter(|letters| *letters != "none") else { return Ok(Vec::new()) };
    letters.split(',').map(|letter| test(settings, letter.trim())).collect()
}

fn test(settings: &Settings, letter: &str) -> Result<Test, SettingError> {
    if !NAMES.contains(&letter) {
        let problem = format!("`{letter}` is not a core workload");
        return Err(SettingError::new(PROFILES_OF, problem, format!("they are {}", NAMES.join(", "))));
    }
    let mut own = settings.0.clone();
    own.remove(PROFILES_OF);
    own.insert("profile".to_owned(), Value::Text(letter.to_owned()));
    Ok(Test { name: letter.to_owned(), settings: Settings(own), loads: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(&str, Value)]) -> Result<Config, SettingError> {
        Config::new(&pairs.iter().cloned().collect())
    }

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    #[test]
    fn defaults_are_workload_a_with_a_million_1_kb_records() {
        let config = with(&[]).unwrap();
        assert_eq!((config.profile.name, config.records, config.longest_record()), ("a", 1_000_000, 1000));
        assert_eq!(config.kinds(), [Kind::Read, Kind::Update]);
        assert!((config.mean_record() - 1023.0).abs() < 1.0, "{}", config.mean_record());
    }

    #[test]
    fn mix_other_than_100_percent_reports_its_sum() {
        let error = with(&[("readproportion", Value::Float(0.9))]).unwrap_err();
        assert!(error.problem.contains("1.4000"), "{error}");
        let whole = [("readproportion", Value::Float(0.9)), ("updateproportion", Value::Float(0.1))];
        assert_eq!(with(&whole).unwrap().mix[..2], [0.9, 0.1]);
    }

    #[test]
    fn empty_range_is_refused_by_name() {
        let lengths = [("fieldlengthdistribution", text("uniform")), ("minfieldlength", Value::Int(101))];
        assert_eq!(with(&lengths).unwrap_err().key, "minfieldlength");
        let histogram = ("fieldlengthdistribution", text("histogram"));
        assert_eq!(with(std::slice::from_ref(&histogram)).unwrap_err().key, HISTOGRAM);
        let known = with(&[histogram, (HISTOGRAM, text("10:1,30:1"))]).unwrap();
        assert_eq!((known.longest_record(), known.lengths.mean()), (300, 20.0));
        // Unused settings are not checked.
        assert!(with(&lengths[1..]).is_ok());
        assert_eq!(with(&[("minscanlength", Value::Int(1001))]).unwrap_err().key, "minscanlength");
        assert!(with(&[("profile", text("e")), ("minscanlength", Value::Int(101))]).is_err());
        assert!(with(&[("profile", text("g"))]).is_err());
    }

    /// Guards against a misleading error: a missing histogram was once reported as a length without a weight.
    #[test]
    fn missing_histogram_or_a_file_name_is_refused() {
        let drawn = ("fieldlengthdistribution", text("histogram"));
        let refused = |given: &[(&'static str, Value)]| {
            let all = [std::slice::from_ref(&drawn), given].concat();
            with(&all).unwrap_err()
        };
        for given in [&[][..], &[(HISTOGRAM, text("none"))], &[(HISTOGRAM, text(" "))]] {
            let error = refused(given);
            assert!(error.problem.starts_with("it is not given, and fieldlengthdistribution = "), "{error}");
            assert!(error.problem.contains("loaded, inserted or updated"), "{error}");
            assert!(error.remedy.contains("10:3,100:1") && error.remedy.contains("another fieldlengthdistribution"));
        }
        let named = refused(&[(HISTOGRAM, text("hist.txt"))]);
        assert_eq!(named.problem, "`hist.txt` is not a length with its weight");
        assert!(named.remedy.contains("the text of the original's file, not its name"), "{named}");
    }

    #[test]
    fn several_profiles_are_tests_over_one_load() {
        let requested = |letters: &str| {
            let set = [("recordcount", Value::Int(500)), (PROFILES_OF, text(letters))];
            super::tests(&set.into())
        };
        let tests = requested("a, e").unwrap();
        let reported = tests.iter().map(|test| (test.name.as_str(), Config::new(&test.settings).unwrap(), test.loads));
        let reported: Vec<_> =
            reported.map(|(name, config, loads)| (name, config.profile.name, config.records, loads)).collect();
        assert_eq!(reported, [("a", "a", 500, false), ("e", "e", 500, false)]);
        assert!(requested("a,g").unwrap_err().remedy.contains("a, b, c, d, e, f"));
        assert!(super::tests(&Settings::default()).unwrap().is_empty());
    }
}
