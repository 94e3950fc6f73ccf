//! The language of claims: arithmetic and comparisons over figures, such as
//! `wkb_per_op("innodb") >= 4 * wkb_per_op("myrocks.zstd")`.
//!
//! - `METRIC("engine")`: a metric of the loops; with several numbers of
//!   clients, `METRIC("engine", 16)`.
//! - `load_METRIC("engine")`: the same of the load.
//! - `p99_ms("engine", "get_node")`: a percentile of an operation's response time.

use std::collections::BTreeSet;

use rhai::{Dynamic, Engine, EvalAltResult, Position};
use rumba_core::comparison::CHARGED;
use rumba_core::metric::METRICS;

/// The percentiles that an expression may ask for.
const PERCENTILES: [&str; 6] = ["mean_ms", "p50_ms", "p95_ms", "p99_ms", "p999_ms", "max_ms"];

/// A mistake in an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Mistake {
    /// What is wrong.
    pub problem: String,
    /// What to write instead.
    pub remedy: String,
    /// Where in the expression, in bytes.
    pub offset: usize,
    /// The engine that it names and that is not there, if that is the mistake.
    pub unknown_engine: Option<String>,
}

/// What keeps an expression from having a value.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// A figure is absent, for this reason.
    Absent(String),
    /// The expression is wrong.
    Mistake(Mistake),
}

/// The engines of an experiment and its numbers of clients.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    engines: Vec<String>,
    clients: BTreeSet<u32>,
}

impl Scope {
    /// Adds an engine at a number of clients.
    pub fn add(&mut self, engine: &str, clients: u32) {
        if !self.engines.iter().any(|known| known == engine) {
            self.engines.push(engine.to_owned());
        }
        self.clients.insert(clients);
    }
}

/// A figure that an expression asks for.
pub struct Asked<'a> {
    /// The metric, or the percentile, by its stable name.
    pub metric: &'a str,
    /// Whether it is the load's.
    pub load: bool,
    /// The engine.
    pub engine: &'a str,
    /// The number of clients.
    pub clients: u32,
    /// The type of operation that a percentile is of.
    pub op: Option<&'a str>,
}

/// Reads a figure.
pub type Reader = Box<dyn Fn(&Asked<'_>) -> Result<f64, Trouble>>;

/// What an expression is evaluated over.
pub trait Lookup {
    /// The engines and numbers of clients that there are.
    fn scope(&self) -> Scope;
    /// Reads figures as they are at the time of reading.
    fn reader(&self) -> Reader;
}

/// On paper: every figure is 1, so that all names can be checked before anything runs.
struct Paper(Scope);

impl Lookup for Paper {
    fn scope(&self) -> Scope {
        self.0.clone()
    }

    fn reader(&self) -> Reader {
        Box::new(|_| Ok(1.0))
    }
}

/// Checks an expression before anything runs: its grammar, and that every
/// metric and engine that it names is there.
///
/// # Errors
/// The first mistake.
pub fn check(text: &str, wants_truth: bool, scope: &Scope) -> Result<(), Mistake> {
    // `&` and `|` look at both sides, where `&&` and `||` may never reach the second.
    let both = text.replace("&&", "& ").replace("||", "| ");
    let paper = Paper(scope.clone());
    let result = Compiled::new(&both, &paper)
        .and_then(|compiled| if wants_truth { compiled.truth().map(drop) } else { compiled.number().map(drop) });
    match result {
        Err(Trouble::Mistake(mistake)) => Err(mistake),
        _ => Ok(()),
    }
}

/// An expression that is ready to be evaluated.
pub struct Compiled {
    engine: Engine,
    whole: rhai::AST,
    /// The sides of a single comparison.
    sides: Option<(rhai::AST, rhai::AST)>,
}

impl Compiled {
    /// Compiles an expression over figures.
    ///
    /// # Errors
    /// A mistake in its grammar.
    pub fn new(text: &str, lookup: &dyn Lookup) -> Result<Self, Trouble> {
        let engine = language(lookup);
        let compile = |part: &str| {
            engine
                .compile_expression(part)
                .map_err(|error| mistake(format!("it cannot be read: {}", error.err_type()), EXAMPLE, error.position()))
        };
        let whole = compile(text)?;
        let sides = match comparison(text) {
            Some((left, right)) => Some((compile(left)?, compile(right)?)),
            None => None,
        };
        Ok(Self { engine, whole, sides })
    }

    fn value(&self, part: &rhai::AST) -> Result<Dynamic, Trouble> {
        self.engine.eval_ast(part).map_err(|error| trouble(*error))
    }

    /// Whether the inequality is true.
    pub fn truth(&self) -> Result<bool, Trouble> {
        let value = self.value(&self.whole)?;
        value.as_bool().map_err(|_| mistake("it is a number and not an inequality".to_owned(), EXAMPLE, START))
    }

    /// What the expression comes to.
    pub fn number(&self) -> Result<f64, Trouble> {
        number(&self.value(&self.whole)?)
    }

    /// The two sides, where the expression is one comparison.
    pub fn sides(&self) -> Result<Option<(f64, f64)>, Trouble> {
        let Some((left, right)) = &self.sides else { return Ok(None) };
        Ok(Some((number(&self.value(left)?)?, number(&self.value(right)?)?)))
    }
}

const EXAMPLE: &str = "write for example wkb_per_op(\"innodb\") >= 4 * wkb_per_op(\"myrocks\")";
const START: Position = Position::START;

fn number(value: &Dynamic) -> Result<f64, Trouble> {
    let float = value.as_float().or_else(|_| value.as_int().map(|number| number as f64));
    let float = float.map_err(|_| mistake("it is an inequality and not a number".to_owned(), EXAMPLE, START))?;
    if float.is_finite() {
        return Ok(float);
    }
    Err(Trouble::Absent("something is divided by zero".to_owned()))
}

fn mistake(problem: String, remedy: impl Into<String>, at: Position) -> Trouble {
    Trouble::Mistake(Mistake { problem, remedy: remedy.into(), offset: offset(at), unknown_engine: None })
}

fn offset(at: Position) -> usize {
    at.position().map_or(0, |column| column.saturating_sub(1))
}

/// The operators and the figures, and nothing else: no loops, no variables, no functions of one's own.
fn language(lookup: &dyn Lookup) -> Engine {
    let mut engine = Engine::new_raw();
    let scope = std::rc::Rc::new(lookup.scope());
    let reader = std::rc::Rc::new(lookup.reader());
    for (load, prefix) in [(false, ""), (true, "load_")] {
        for info in METRICS.iter().chain(CHARGED) {
            let (name, metric) = (format!("{prefix}{}", info.name), info.name);
            // What is charged to a load is the load's by its name.
            let load = load || metric.ends_with("_with_settle");
            let (known, read) = (scope.clone(), reader.clone());
            let of = move |engine: &str, clients: Option<i64>| -> Result<f64, Box<EvalAltResult>> {
                let (engine, clients) = known.find(engine, clients)?;
                read(&Asked { metric, load, engine, clients, op: None }).map_err(carry)
            };
            let also = of.clone();
            engine.register_fn(&name, move |engine: &str| of(engine, None));
            engine.register_fn(&name, move |engine: &str, clients: i64| also(engine, Some(clients)));
        }
    }
    for metric in PERCENTILES {
        let (known, read) = (scope.clone(), reader.clone());
        let of = move |engine: &str, op: &str, clients: Option<i64>| -> Result<f64, Box<EvalAltResult>> {
            let (engine, clients) = known.find(engine, clients)?;
            read(&Asked { metric, load: false, engine, clients, op: Some(op) }).map_err(carry)
        };
        let also = of.clone();
        engine.register_fn(metric, move |engine: &str, op: &str| of(engine, op, None));
        engine.register_fn(metric, move |engine: &str, op: &str, clients: i64| also(engine, op, Some(clients)));
    }
    engine
}

impl Scope {
    fn find(&self, engine: &str, clients: Option<i64>) -> Result<(&str, u32), Box<EvalAltResult>> {
        let wrong = |problem: String, remedy: String, unknown_engine: Option<String>| {
            carry(Trouble::Mistake(Mistake { problem, remedy, offset: usize::MAX, unknown_engine }))
        };
        let known = || self.engines.iter().map(String::as_str);
        let list = || known().collect::<Vec<_>>().join(", ");
        let engine = self.engines.iter().find(|name| *name == engine).ok_or_else(|| {
            let remedy = rumba_core::nearest(engine, known())
                .map_or_else(|| format!("it has: {}", list()), |near| format!("did you mean `{near}`?"));
            wrong(format!("the experiment has no engine `{engine}`"), remedy, Some(engine.to_owned()))
        })?;
        let counts = || self.clients.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        match (clients, self.clients.first()) {
            (Some(clients), _) => u32::try_from(clients)
                .ok()
                .filter(|clients| self.clients.contains(clients))
                .map(|clients| (engine.as_str(), clients))
                .ok_or_else(|| wrong(format!("no trial has {clients} clients"), format!("it has: {}", counts()), None)),
            (None, Some(&only)) if self.clients.len() == 1 => Ok((engine, only)),
            (None, _) => Err(wrong(
                "it does not say for how many clients".to_owned(),
                format!("add one of {} after the engine's name", counts()),
                None,
            )),
        }
    }
}

/// Carries a trouble through the evaluator, as its thrown value.
fn carry(trouble: Trouble) -> Box<EvalAltResult> {
    Box::new(EvalAltResult::ErrorRuntime(Dynamic::from(trouble), Position::NONE))
}

/// What an evaluation's error comes to.
fn trouble(error: EvalAltResult) -> Trouble {
    let at = error.position();
    match error {
        EvalAltResult::ErrorInFunctionCall(_, _, inner, _) => trouble(*inner),
        EvalAltResult::ErrorRuntime(value, _) => match value.try_cast::<Trouble>() {
            Some(Trouble::Mistake(found)) if found.offset == usize::MAX => {
                Trouble::Mistake(Mistake { offset: offset(at), ..found })
            }
            Some(trouble) => trouble,
            None => mistake("it cannot be evaluated".to_owned(), EXAMPLE, at),
        },
        EvalAltResult::ErrorFunctionNotFound(signature, _) => unknown(&signature, at),
        EvalAltResult::ErrorVariableNotFound(name, _) => mistake(
            format!("`{name}` is not a figure"),
            format!("put an engine's name behind it: {name}(\"innodb\")"),
            at,
        ),
        EvalAltResult::ErrorArithmetic(..) => Trouble::Absent("something is divided by zero".to_owned()),
        other => mistake(format!("it cannot be evaluated: {other}"), EXAMPLE, at),
    }
}

/// The error for a function that is not there, or not with these arguments.
fn unknown(signature: &str, at: Position) -> Trouble {
    let name = signature.split(" (").next().unwrap_or(signature).trim();
    let known = || METRICS.iter().chain(CHARGED).map(|info| info.name).chain(PERCENTILES);
    if PERCENTILES.contains(&name) {
        let remedy = format!("write {name}(\"innodb\", \"get_node\"): the engine, then the type of operation");
        return mistake(format!("{name} is not given what it takes"), remedy, at);
    }
    if known().any(|metric| metric == name.strip_prefix("load_").unwrap_or(name)) {
        let remedy = format!("write {name}(\"innodb\"), or {name}(\"innodb\", 16) for one number of clients");
        return mistake(format!("{name} is not given what it takes"), remedy, at);
    }
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return mistake(format!("`{name}` cannot be applied to these values"), EXAMPLE, at);
    }
    let remedy = rumba_core::nearest(name, known())
        .map_or_else(|| "docs/results.md lists the metrics".to_owned(), |near| format!("did you mean `{near}`?"));
    mistake(format!("there is no metric `{name}`"), remedy, at)
}

/// The sides of the one comparison outside parentheses and quotes, if the
/// expression is one and not several joined.
fn comparison(text: &str) -> Option<(&str, &str)> {
    let (mut depth, mut quoted, mut found) = (0_i32, false, None);
    let bytes = text.as_bytes();
    let mut place = 0;
    while place < bytes.len() {
        match bytes[place] {
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'(' => depth += 1,
            b')' => depth -= 1,
            b'&' | b'|' | b'!' => return None,
            b'<' | b'>' | b'=' if depth == 0 => {
                let length = if bytes.get(place + 1) == Some(&b'=') { 2 } else { 1 };
                if found.replace((place, length)).is_some() {
                    return None;
                }
                place += length - 1;
            }
            _ => {}
        }
        place += 1;
    }
    let (place, length) = found?;
    Some((&text[..place], &text[place + length..]))
}
