//! The capabilities of the machine: installed engines and enforceable limits.

use std::path::Path;

use strum::VariantArray;

use crate::axes::{Engine, Limit};
use crate::existing;
use crate::place::{Bench, CaseDirectory, text};
use crate::trouble::{Doing, Trouble};

/// The capabilities of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Available {
    /// Engines that are installed.
    pub engines: Vec<Engine>,
    /// Limits that can be enforced.
    pub limits: Vec<Limit>,
    /// Whether it can mount file systems and change the owner of files.
    pub is_root: bool,
    /// A description of each missing capability.
    pub missing: Vec<String>,
}

impl Available {
    /// Everything.
    pub fn all() -> Self {
        Self { engines: Engine::VARIANTS.into(), limits: Limit::ALL.into(), is_root: true, missing: Vec::new() }
    }
}

impl Bench {
    /// Determines this machine's capabilities, through rumba and by trying.
    ///
    /// # Errors
    /// rumba cannot be run.
    pub fn available(&self) -> Result<Available, Trouble> {
        let place = self.place("available")?;
        let is_root = rustix::process::geteuid().is_root();
        let mut here = Available { engines: Vec::new(), limits: Vec::new(), is_root, missing: Vec::new() };
        look_for_engines(&place, &mut here)?;
        // If both limits can be enforced together, each one can.
        if refusal(&place, Limit::Both)?.is_none() {
            here.limits = Limit::ALL.into();
        } else {
            for limit in Limit::ALL {
                match refusal(&place, *limit)? {
                    None => here.limits.push(*limit),
                    Some(why) => here.missing.push(format!("{limit}: {why}")),
                }
            }
        }
        if !is_root {
            here.missing.push("the rights of root: no file system can be filled, nothing be planted".to_owned());
        }
        place.remove();
        Ok(here)
    }
}

fn look_for_engines(place: &CaseDirectory, here: &mut Available) -> Result<(), Trouble> {
    let listed = place.request_json(&["engines", "--json"])?.doing("rumba engines")?;
    let missing = |name: &str| {
        let engine = listed.as_array().into_iter().flatten().find(|engine| engine["name"] == name);
        match engine {
            Some(engine) if engine["missing"].is_null() => None,
            Some(engine) => Some(engine["missing"].to_string()),
            None => Some("rumba has no such engine".to_owned()),
        }
    };
    for engine in Engine::VARIANTS {
        let why = missing(engine.name()).or_else(|| {
            let is_there = *engine != Engine::Existing || Path::new(existing::PROGRAM).exists();
            (!is_there).then(|| format!("there is no {}", existing::PROGRAM))
        });
        match why {
            None => here.engines.push(*engine),
            Some(why) => here.missing.push(format!("{engine}: {why}")),
        }
    }
    Ok(())
}

/// Why a limit cannot be enforced, if it cannot.
fn refusal(place: &CaseDirectory, limit: Limit) -> Result<Option<String>, Trouble> {
    let mut run = place.rumba();
    run.args(["run", "linkbench", "--engine", "null", "--quiet", "--out"]).arg(place.path(&format!("{limit:?}")));
    for fetch in ["maxid1=100", "warmup=0s", "loops=1", "loop=100ms"].iter().chain(limit.requests()) {
        run.args(["--set", fetch]);
    }
    let output = run.output().doing("starting rumba")?;
    Ok((!output.status.success()).then(|| text(&output)))
}
