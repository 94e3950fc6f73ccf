//! Claims that have changed since the first result of their experiment was committed.
//!
//! A threshold that is set after the result is known proves nothing. docs/experiments/changed-claims.md therefore lists
//! the changed claims, from the history of the repository. It compares each present claim with the experiment's file at
//! the commit of its first result. The wording is not compared, because a sentence may be corrected.

use std::path::Path;
use std::process::Command;

/// The page, from the root.
pub const PAGE: &str = "docs/experiments/changed-claims.md";

const HEAD: &str = "# Claims changed after the first kept result

`cargo run -p xtask -- experiments --write` writes this list from the repository's history: each `holds` that differs from
the experiment's file at the commit that kept the experiment's first result. A claim that was changed or added
afterwards did not predict that result. An experiment that is not listed has the claims that it had then.
";

/// A claim's inequality, with its text.
#[derive(Clone, Debug, PartialEq)]
struct Claim {
    text: String,
    holds: String,
}

/// A claim then and now; on one side only where it was added or removed.
#[derive(Debug, PartialEq)]
struct Changed {
    then: Option<String>,
    now: Option<String>,
}

/// The expected page; or the reason why it is unknown, if the history is not available.
///
/// # Errors
/// A file that cannot be read, or an error of git.
pub fn page(root: &Path) -> Result<Result<String, String>, String> {
    if let Some(why) = without_history(root) {
        return Ok(Err(why));
    }
    let mut text = HEAD.to_owned();
    let directory = root.join("experiments");
    let entries = std::fs::read_dir(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let name = |entry: std::fs::DirEntry| Some(entry.file_name().to_str()?.strip_suffix(".toml")?.to_owned());
    let mut names: Vec<String> = entries.flatten().filter_map(name).collect();
    names.sort_unstable();
    for name in names {
        let Some(commit) = first_kept(root, &name)? else { continue };
        let path = format!("experiments/{name}.toml");
        let then = git(root, &["show", &format!("{}:{path}", commit.hash)]);
        let then = then.or_else(|error| as_run(root, &name, &commit).ok_or(error))?;
        let now = std::fs::read_to_string(root.join(&path)).map_err(|error| format!("{path}: {error}"))?;
        let changed = changed(&claims(&then, &path)?, &claims(&now, &path)?);
        if changed.is_empty() {
            continue;
        }
        text += &format!("\n## {name}\n\nFirst result kept on {}, in {}.\n\n", commit.date, commit.hash);
        text += "| then | now |\n|---|---|\n";
        for Changed { then, now } in changed {
            text += &format!("| {} | {} |\n", cell(then.as_deref()), cell(now.as_deref()));
        }
    }
    Ok(Ok(text))
}

fn cell(holds: Option<&str>) -> String {
    holds.map_or_else(|| "none".to_owned(), |holds| format!("`{}`", holds.replace('|', "\\|")))
}

/// The experiment that the first result contains, if its file had another name then.
fn as_run(root: &Path, name: &str, first: &Commit) -> Option<String> {
    let result = git(root, &["show", &format!("{}:docs/experiments/{name}.json", first.hash)]).ok()?;
    let result: serde_json::Value = serde_json::from_str(&result).ok()?;
    Some(result["experiment_toml"].as_str()?.to_owned())
}

struct Commit {
    hash: String,
    date: String,
}

/// Why the history is not available: a shallow clone, or no clone at all.
fn without_history(root: &Path) -> Option<String> {
    match git(root, &["rev-parse", "--is-shallow-repository"]) {
        Ok(answer) if answer.trim() == "false" => None,
        Ok(_) => Some("this is a shallow clone, whose history does not reach back: git fetch --unshallow".to_owned()),
        Err(error) => Some(error),
    }
}

/// The commit that added the first result of an experiment.
fn first_kept(root: &Path, name: &str) -> Result<Option<Commit>, String> {
    let [json, text] = ["json", "txt"].map(|end| format!("docs/experiments/{name}.{end}"));
    let format = "--format=%h %ad";
    let requested = ["log", "--diff-filter=A", "--date=short", "--abbrev=10", format, "--", &json, &text];
    let found = git(root, &requested)?;
    // The oldest stands last.
    let oldest = found.lines().last().and_then(|line| line.split_once(' '));
    Ok(oldest.map(|(hash, date)| Commit { hash: hash.to_owned(), date: date.to_owned() }))
}

fn git(root: &Path, arguments: &[&str]) -> Result<String, String> {
    let words = || format!("git {}", arguments.join(" "));
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output();
    let output = output.map_err(|error| format!("{}: {error}", words()))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{}: {}", words(), String::from_utf8_lossy(&output.stderr).trim())),
    }
}

fn claims(experiment: &str, path: &str) -> Result<Vec<Claim>, String> {
    let table: serde_json::Value = toml_edit::de::from_str(experiment).map_err(|error| format!("{path}: {error}"))?;
    let of = |claim: &serde_json::Value| {
        let text = |key: &str| claim[key].as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        Claim { text: text("text"), holds: text("holds") }
    };
    Ok(table["claim"].as_array().map(|claims| claims.iter().map(of).collect()).unwrap_or_default())
}

/// The inequalities that only one of the two has; those with the same text are next to each other.
fn changed(then: &[Claim], now: &[Claim]) -> Vec<Changed> {
    let without = |own: &[Claim], others: &[Claim]| -> Vec<Claim> {
        own.iter().filter(|claim| others.iter().all(|other| other.holds != claim.holds)).cloned().collect()
    };
    let (then, mut now) = (without(then, now), without(now, then));
    let mut all: Vec<Changed> = Vec::new();
    for claim in then {
        let place = now.iter().position(|other| other.text == claim.text);
        let counterpart = place.map(|place| now.remove(place).holds);
        all.push(Changed { then: Some(claim.holds), now: counterpart });
    }
    all.extend(now.into_iter().map(|claim| Changed { then: None, now: Some(claim.holds) }));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAIM: &str =
        "name = \"tiny\"\n[[claim]]\ntext = \"a is faster\"\nholds = 'ops_per_s(\"a\") >= 2 * ops_per_s(\"b\")'\n";

    fn commit(root: &Path) {
        git(root, &["add", "."]).unwrap();
        let user = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        git(root, &[&user[..], &["commit", "-q", "-m", "more"]].concat()).unwrap();
    }

    fn repository() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        git(dir.path(), &["init", "-q"]).unwrap();
        std::fs::create_dir_all(dir.path().join("docs/experiments")).unwrap();
        std::fs::create_dir_all(dir.path().join("experiments")).unwrap();
        std::fs::write(dir.path().join("experiments/tiny.toml"), CLAIM).unwrap();
        commit(dir.path());
        dir
    }

    #[test]
    fn claim_changed_after_its_first_kept_result_is_listed() {
        let repository = repository();
        let root = repository.path();
        let set = |text: String| std::fs::write(root.join("experiments/tiny.toml"), text).unwrap();
        // Before there is a result, a threshold may still be changed.
        set(CLAIM.replace(">= 2", ">= 3"));
        assert_eq!(page(root).unwrap().unwrap(), HEAD);
        std::fs::write(root.join("docs/experiments/tiny.json"), "{}").unwrap();
        commit(root);
        set(CLAIM.replace(">= 2", ">= 3").replace("faster", "much faster"));
        assert_eq!(page(root).unwrap().unwrap(), HEAD, "the wording may be corrected");
        set(CLAIM.replace(">= 2", ">= 1.5"));
        let text = page(root).unwrap().unwrap();
        assert!(text.contains("\n## tiny\n\nFirst result kept on "), "{text}");
        let row = "| `ops_per_s(\"a\") >= 3 * ops_per_s(\"b\")` | `ops_per_s(\"a\") >= 1.5 * ops_per_s(\"b\")` |\n";
        assert!(text.ends_with(row), "{text}");
        // A later result excuses nothing.
        std::fs::write(root.join("docs/experiments/tiny.json"), "{ }").unwrap();
        commit(root);
        assert_eq!(page(root).unwrap().unwrap(), text);
    }
}
