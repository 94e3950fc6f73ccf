//! Resolves the names in an expression: metrics, engines, numbers of clients.

use std::collections::BTreeSet;

use rumba_results::comparison::{CHARGED, metric_info};
use rumba_results::engine_name;
use rumba_results::metric::METRICS;

/// The percentiles that an expression may use.
const PERCENTILES: [&str; 6] = ["mean_ms", "p50_ms", "p95_ms", "p99_ms", "p999_ms", "max_ms"];

/// The short names of the published tables that are names of metrics too.
const ALIASES: [(&str, &str); 2] = [("tps", "ops_per_s"), ("ips", "load_ops_per_s")];

#[derive(Clone, Debug, PartialEq)]
pub struct Mistake {
    /// The fault.
    pub problem: String,
    pub remedy: String,
    /// The position in the expression, in bytes.
    pub offset: usize,
    /// The missing part of the experiment, if that is the mistake.
    pub missing: Option<Missing>,
}

/// A part that an expression needs and the experiment does not have.
#[derive(Clone, Debug, PartialEq)]
pub enum Missing {
    Engine(String),
    /// The number of clients, or the one number that an expression without it implies.
    Clients,
}

impl Mistake {
    /// A mistake at a position.
    pub fn new(offset: usize, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { problem: problem.into(), remedy: remedy.into(), offset, missing: None }
    }
}

/// The engines of an experiment and its numbers of clients.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    engines: Vec<String>,
    clients: BTreeSet<u32>,
    /// The engine of a figure without parentheses, where the context implies it.
    implied: Option<String>,
    /// Whether any metric, engine and number of clients may be named.
    is_open: bool,
}

impl Scope {
    /// The scope of a comparison: a figure without parentheses is a ratio, of any engine of both runs.
    pub fn of_ratios() -> Self {
        Self { implied: Some(String::new()), ..Self::default() }
    }

    /// The scope of stored results: the code that looks a figure up checks its names. `implied` is the engine of figures
    /// without parentheses, if they are allowed.
    pub fn open(implied: Option<&str>) -> Self {
        Self { implied: implied.map(str::to_owned), is_open: true, ..Self::default() }
    }

    pub fn add(&mut self, engine: &str, clients: u32) {
        if !self.engines.iter().any(|known| known == engine) {
            self.engines.push(engine.to_owned());
        }
        self.clients.insert(clients);
    }

    /// An engine for use in an example.
    pub fn any(&self) -> &str {
        self.engines.first().map_or("a", String::as_str)
    }

    fn engine(&self, name: &str, at: usize) -> Result<String, Mistake> {
        if self.is_open {
            return Ok(name.to_owned());
        }
        let known = || self.engines.iter().map(String::as_str);
        if let Some(engine) = engine_name::meant(known(), name) {
            return Ok(engine.to_owned());
        }
        let remedy = rumba_engine_api::nearest(name, known()).map_or_else(
            || format!("it has: {}", known().collect::<Vec<_>>().join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        let mistake = Mistake::new(at, format!("the experiment has no engine `{name}`"), remedy);
        Err(Mistake { missing: Some(Missing::Engine(name.to_owned())), ..mistake })
    }

    fn clients(&self, requested: Option<(usize, f64)>, at: usize) -> Result<u32, Mistake> {
        let counts = || self.clients.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        if self.is_open {
            return Ok(requested.map_or(0, |(_, clients)| clients as u32));
        }
        let mistake = match (requested, self.clients.first()) {
            (Some((at, requested)), _) => {
                let known = self.clients.iter().find(|clients| f64::from(**clients) == requested);
                match known {
                    Some(clients) => return Ok(*clients),
                    None => Mistake::new(
                        at,
                        format!("no trial has {requested} clients"),
                        format!("the numbers of clients are: {}", counts()),
                    ),
                }
            }
            (None, Some(&only)) if self.clients.len() == 1 => return Ok(only),
            (None, _) => Mistake::new(
                at,
                "it does not say for how many clients",
                format!("add one of {} after the engine's name", counts()),
            ),
        };
        Err(Mistake { missing: Some(Missing::Clients), ..mistake })
    }
}

/// A figure that an expression reads.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricRef {
    /// The metric, or the percentile, by its stable name.
    pub metric: String,
    /// Whether it belongs to the load.
    pub load: bool,
    pub engine: String,
    /// The number of clients; 0 in an open scope if the expression does not say it.
    pub clients: u32,
    /// The type of operation of a percentile.
    pub op: Option<String>,
}

/// An argument between a figure's parentheses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Argument<'a> {
    /// An engine or a type of operation.
    Text(&'a str),
    Number(f64),
}

/// Resolves a name and its arguments, each with its position.
///
/// # Errors
/// An unknown metric or engine, or wrong arguments.
pub fn figure(name: &str, at: usize, arguments: &[(usize, Argument<'_>)], scope: &Scope) -> Result<MetricRef, Mistake> {
    let percentile = PERCENTILES.contains(&name);
    let (metric, load) = if percentile { (name, false) } else { known_metric(name, at, scope)? };
    let (engine, op, clients) = match (percentile, arguments) {
        (false, [(place, Argument::Text(engine))]) => ((*place, *engine), None, None),
        (false, [(place, Argument::Text(engine)), (of_count, Argument::Number(count))]) => {
            ((*place, *engine), None, Some((*of_count, *count)))
        }
        (true, [(place, Argument::Text(engine)), (_, Argument::Text(op))]) => ((*place, *engine), Some(*op), None),
        (true, [(place, Argument::Text(engine)), (_, Argument::Text(op)), (of_count, Argument::Number(count))]) => {
            ((*place, *engine), Some(*op), Some((*of_count, *count)))
        }
        _ => return Err(not_given(name, at, percentile, scope.any())),
    };
    Ok(MetricRef {
        engine: scope.engine(engine.1, engine.0)?,
        clients: scope.clients(clients, at)?,
        op: op.map(str::to_owned),
        load,
        metric: metric.to_owned(),
    })
}

/// Resolves a name without arguments: a metric, or a percentile behind its type of operation, `get_node.p99_ms`.
///
/// # Errors
/// An unknown metric, or a scope in which a figure names its engine.
pub fn bare_figure(name: &str, at: usize, scope: &Scope) -> Result<MetricRef, Mistake> {
    let Some(engine) = &scope.implied else {
        let remedy = format!("put an engine's name behind it: {name}(\"{}\")", scope.any());
        return Err(Mistake::new(at, format!("`{name}` is not a figure"), remedy));
    };
    let of_op = name.rsplit_once('.').filter(|(_, percentile)| PERCENTILES.contains(percentile));
    let ((metric, load), op) = match of_op {
        Some((op, percentile)) => ((percentile, false), Some(op.to_owned())),
        None => (known_metric(name, at, scope)?, None),
    };
    Ok(MetricRef { metric: metric.to_owned(), load, engine: engine.clone(), clients: 0, op })
}

/// A metric by its name in expressions, and whether it belongs to the load.
fn known_metric<'a>(name: &'a str, at: usize, scope: &Scope) -> Result<(&'a str, bool), Mistake> {
    let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
    let metric = name.strip_prefix("load_").unwrap_or(name);
    // Metrics that include the settle belong to the load without the prefix `load_`.
    let load = metric != name || name.ends_with("_with_settle");
    if scope.is_open || metric_info(metric).is_some() {
        return Ok((metric, load));
    }
    let known = METRICS.iter().chain(CHARGED).map(|info| info.name).chain(PERCENTILES);
    let remedy = rumba_engine_api::nearest(name, known).map_or_else(
        || "docs/reference/metrics.md lists the metrics".to_owned(),
        |near| format!("did you mean `{near}`?"),
    );
    Err(Mistake::new(at, format!("unknown metric `{name}`"), remedy))
}

fn not_given(name: &str, at: usize, percentile: bool, engine: &str) -> Mistake {
    let remedy = if percentile {
        format!("write {name}(\"{engine}\", \"OPERATION\"): the engine, then the type of operation")
    } else {
        format!("write {name}(\"{engine}\"), or {name}(\"{engine}\", 16) for one number of clients")
    };
    Mistake::new(at, format!("wrong arguments for {name}"), remedy)
}
