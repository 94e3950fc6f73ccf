//! Checks the names in an experiment, because they name directories and appear on terminals.

use rumba_engine_api::printable::{fits_on_a_line, printable};

use super::error::{Origin, SpecError};
use super::expand::Differs;

/// The longest name, characters. A trial's directory also has its number, clients, repeat and an ending in its name,
/// and a filesystem allows 255 bytes in total.
const LONGEST: usize = 200;
/// The characters of a longer name that are shown.
const SHOWN: usize = 40;

pub fn of_experiment(name: &str, origin: &Origin) -> Result<(), SpecError> {
    let fits = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if !fits || name.starts_with('.') {
        return Err(SpecError::new(
            origin,
            format!("`{}` cannot name a directory of results", shown(name)),
            "use letters, digits, `-`, `_` and `.`",
        ));
    }
    not_too_long("experiment", name, origin)
}

/// The parts that distinguish the engines of a list in their names: the shortest unique form of each key, and its
/// value. A setting loses its table and the engine's name as a prefix (`NAME_page_size` is `page_size`).
pub fn distinct(differs: &[Differs], engines: &[&str]) -> Vec<Differs> {
    let forms = |path: &str| {
        let own = ["settings.", "limits."].iter().find_map(|table| path.strip_prefix(table)).unwrap_or(path);
        let engine = engines.iter().find_map(|engine| own.strip_prefix(engine)?.strip_prefix('_'));
        [engine.unwrap_or(own), own, path].map(str::to_owned)
    };
    let all: Vec<[String; 3]> = differs.iter().map(|(path, _)| forms(path)).collect();
    let is_taken =
        |at: usize, form: usize| (0..all.len()).any(|other| other != at && all[other].contains(&all[at][form]));
    let key = |at: usize| (0..2).find(|form| !is_taken(at, *form)).unwrap_or(2);
    differs.iter().enumerate().map(|(at, (_, value))| (all[at][key(at)].clone(), value.clone())).collect()
}

pub fn of_engine(name: &str, origin: &Origin) -> Result<(), SpecError> {
    if name.is_empty() {
        return Err(SpecError::new(origin, "an engine's name is empty", "give it one, or leave the line out"));
    }
    if !fits_on_a_line(name) {
        return Err(SpecError::new(
            origin,
            format!("the engine's name `{}` has characters that cannot be shown", shown(name)),
            "use characters that can be seen",
        ));
    }
    not_too_long("engine", name, origin)
}

fn not_too_long(whose: &str, name: &str, origin: &Origin) -> Result<(), SpecError> {
    let length = name.chars().count();
    if length <= LONGEST {
        return Ok(());
    }
    Err(SpecError::new(
        origin,
        format!("the {whose}'s name `{}` has {length} characters, too long for a directory", shown(name)),
        format!(
            "use at most {LONGEST}; a list adds its key and each of its values to the engine's name, an engine per value"
        ),
    ))
}

/// The beginning of a name, without control characters.
fn shown(name: &str) -> String {
    let mut shown = printable(&name.chars().take(SHOWN).collect::<String>()).replace('\n', "\\n");
    if name.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}
