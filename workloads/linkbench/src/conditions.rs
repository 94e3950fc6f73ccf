//! The facts about the graph and the mix that a reader of the numbers must know.

use rumba_engine_api::setting::{SettingError, Settings};

use crate::choice::{Choice, Graph};
use crate::distribution::degree;
use crate::settings::{Config, DegreeCap};

/// Refuses a history of lists if no list is ever full.
///
/// # Errors
/// `getlinklist_history` is set above 0 and no loaded list has `list_limit` links.
pub fn refuse_history_of_nothing(settings: &Settings, config: &Config, graph: &Graph) -> Result<(), SettingError> {
    let requested = settings.float("getlinklist_history").is_some_and(|percent| percent > 0.0);
    let (longest, full) = graph.lists(config.list_limit);
    if !requested || full > 0 {
        return Ok(());
    }
    Err(SettingError::new(
        "getlinklist_history",
        format!(
            "no list can be gone on with: the longest loaded list has {longest} links, the list limit is {}",
            config.list_limit
        ),
        format!("lower list_limit to at most {longest}, or raise degree_cap, or leave getlinklist_history out"),
    ))
}

pub fn conditions(config: &Config, graph: &Graph) -> Vec<(String, String)> {
    let (links, _) = graph.totals();
    let index = if config.index_during_load { "kept during the load" } else { "built after the load" };
    let per_id = links as f64 / config.ids as f64;
    [
        ("profile", config.profile.name.to_owned()),
        ("ids", format!("{} ({} to {})", config.ids, config.first, config.end() - 1)),
        ("degree cap", cap(config, graph)),
        ("links", format!("{links} loaded, {per_id:.2} per id, at most {} for one id", graph.largest())),
        ("index id1_type", index.to_owned()),
        ("partitions", partitions(config)),
        ("list limit", config.list_limit.to_string()),
        ("history lists", history(config, graph)),
        ("multiget", multiget(config)),
        ("motif length", format!("{} bytes", config.link.motif_length)),
        ("clock", "rows carry a clock of their own: loaded up to 2017-12-01, then 1 ms per operation".to_owned()),
    ]
    .map(|(name, value)| (format!("linkbench {name}"), value))
    .into()
}

fn cap(config: &Config, graph: &Graph) -> String {
    let largest = degree::largest(config.profile.degrees);
    let ids = config.ids;
    match config.degree_cap {
        DegreeCap::None => format!("none; the largest id has {} links", graph.largest()),
        DegreeCap::Given(links) => format!("{links} links as set (the published table goes to {largest})"),
        DegreeCap::Auto(links) => format!(
            "{links} links: the table's {largest} scaled by {ids} / 1e9 ids, at least 100, so that one id has \
             no larger share of the graph than at a billion ids"
        ),
    }
}

fn partitions(config: &Config) -> String {
    match config.partitions {
        0 => "none".to_owned(),
        some => format!("{some} of linktable by id1, where the engine has partitions"),
    }
}

fn history(config: &Config, graph: &Graph) -> String {
    let (longest, full) = graph.lists(config.list_limit);
    let (percent, limit) = (config.history * 100.0, config.list_limit);
    if percent <= 0.0 {
        return "none are requested".to_owned();
    }
    if full == 0 {
        return format!(
            "none can occur in the loaded graph: the longest list has {longest} links, the list limit is {limit}"
        );
    }
    format!(
        "{percent}% of a client's lists from its first full one on; {full} of the loaded lists have {limit} links or more"
    )
}

fn multiget(config: &Config) -> String {
    let (mean, least, most) = (Choice::mean_multiget(config), config.multiget_min, config.multiget_max);
    format!("{mean:.2} ids are drawn on average, {least} to {most}; those drawn twice are requested once")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rumba_engine_api::setting::Value;

    fn with(pairs: &[(&str, i64)]) -> (Settings, Config, Graph) {
        let settings: Settings = pairs.iter().map(|(name, value)| (*name, Value::Int(*value))).collect();
        let config = Config::new(&settings).unwrap();
        let graph = Graph::new(&config);
        (settings, config, graph)
    }

    fn condition(name: &str, pairs: &[(&str, i64)]) -> String {
        let (_, config, graph) = with(pairs);
        conditions(&config, &graph).into_iter().find(|(known, _)| known == name).unwrap().1
    }

    #[test]
    fn condition_states_that_no_list_exceeds_the_limit() {
        let reported = |pairs: &[(&str, i64)]| condition("linkbench history lists", pairs);
        // The automatic cap of 4181 links over two types.
        assert_eq!(
            reported(&[]),
            "none can occur in the loaded graph: the longest list has 2090 links, the list limit is 10000"
        );
        assert!(reported(&[("list_limit", 2090)]).starts_with("0.3% of a client's lists"), "{}", reported(&[]));
        assert!(reported(&[("maxid1", 1_000_000_001)]).starts_with("0.3%"));
        assert_eq!(reported(&[("getlinklist_history", 0)]), "none are requested");
    }

    #[test]
    fn requested_history_that_cannot_occur_is_refused() {
        let refused = |pairs: &[(&str, i64)]| {
            let (settings, config, graph) = with(pairs);
            refuse_history_of_nothing(&settings, &config, &graph).err()
        };
        let error = refused(&[("getlinklist_history", 30)]).unwrap();
        assert!(error.problem.contains("2090") && error.problem.contains("10000"), "{error}");
        assert!(error.remedy.contains("list_limit to at most 2090") && error.remedy.contains("degree_cap"));
        // The settings that the remedies suggest are accepted, and so is a run without history.
        assert_eq!(refused(&[("getlinklist_history", 30), ("list_limit", 2090)]), None);
        assert_eq!(refused(&[("getlinklist_history", 30), ("degree_cap", 20_000)]), None);
        assert_eq!(refused(&[("getlinklist_history", 0)]), None);
        assert_eq!(refused(&[]), None);
    }

    #[test]
    fn condition_states_the_ids_per_multiget() {
        let reported = |pairs: &[(&str, i64)]| condition("linkbench multiget", pairs);
        assert!(reported(&[]).starts_with("2.62 ids"), "{}", reported(&[]));
        assert!(reported(&[("link_multiget_dist_min", 2)]).starts_with("3.62 ids"));
        assert!(reported(&[("link_multiget_dist_max", 1)]).starts_with("1.00 ids"));
    }
}
