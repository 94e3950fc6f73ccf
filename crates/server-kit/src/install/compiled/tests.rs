//! Builds of a source of one file, whose commands are shell scripts.

use super::*;

/// The directory of the downloads, with a source archive, and the recipe that builds it.
fn recipe(sources: &Path, script: &str) -> Compiled {
    let tree = tempfile::tempdir().unwrap();
    let top = tree.path().join("server-1.0");
    fs::create_dir(&top).unwrap();
    fs::write(top.join("greeting"), "hello\n").unwrap();
    fs::write(top.join("manual"), "long\n").unwrap();
    let archive = sources.join("server_1.0.orig.tar.gz");
    let mut tar = Command::new("tar");
    tar.args(["--create", "--gzip", "--file"]).arg(&archive).arg("--directory").arg(tree.path()).arg("server-1.0");
    output_of(&mut tar, "test").unwrap();
    let text = |text: &str| text.to_owned();
    Compiled {
        engine: text("greeter"),
        suite: text("none"),
        architecture: text(env::consts::ARCH),
        source: text("server=1.0-1"),
        files: [(text("server_1.0.orig.tar.gz"), digest(&archive).unwrap())].into(),
        download_bytes: 1 << 20,
        build_bytes: 2 << 20,
        server_bytes: 3 << 20,
        cpu_s: 4,
        needs: [(text("sh"), text("dash"))].into(),
        without: vec![text("*/manual")],
        fixes: vec![Fix { file: text("greeting"), from: text("hello"), to: text("hello, world") }],
        commands: vec![vec![text("sh"), text("-c"), text(script)]],
        product: text("greeting.so"),
        place: text("usr/lib/plugin"),
    }
}

/// Fails at the first time, after it has done half of the work.
const FAILS_ONCE: &str = "echo run >> runs; echo '[ 50%] Building'; echo '[100%] Built target within'; \
    for step in 1 2 3 4 5; do echo '[ 50%] Building'; done; \
    test -e half || { touch half; echo 'g.cc:1: error: no luck' >&2; exit 3; }; cp ../source/greeting greeting.so";

fn build(recipe: &Compiled, sources: &Path) -> (Result<()>, tempfile::TempDir, Vec<String>) {
    let (draft, mut said) = (tempfile::tempdir().unwrap(), Vec::new());
    let built = recipe.build(sources, draft.path(), &mut |words| said.push(words.to_owned()));
    (built, draft, said)
}

#[test]
fn failed_build_names_its_log_and_the_next_one_continues() {
    let sources = tempfile::tempdir().unwrap();
    let recipe = recipe(sources.path(), FAILS_ONCE);
    let (built, _, said) = build(&recipe, sources.path());
    let error = built.unwrap_err().to_string();
    let log = sources.path().join(LOG);
    assert!(error.contains(&log.display().to_string()) && error.contains("error: no luck"), "{error}");
    assert!(fs::read_to_string(&log).unwrap().starts_with("[ 50%] Building\n"), "the log has all output");
    assert!(said[0].contains("4 s of processor time") && said[0].contains("2.00 MiB more"), "{said:?}");
    let (built, draft, said) = build(&recipe, sources.path());
    built.unwrap();
    assert!(said.iter().any(|words| words == "continuing the interrupted build"), "{said:?}");
    let compiled: Vec<&String> = said.iter().filter(|words| words.ends_with("% compiled")).collect();
    assert_eq!(compiled, ["50% compiled"]);
    let product = draft.path().join("tree/usr/lib/plugin/greeting.so");
    assert_eq!(fs::read_to_string(product).unwrap(), "hello, world\n", "the source is corrected");
    let work = sources.path().join(WORK);
    assert_eq!(fs::read_to_string(work.join("build/runs")).unwrap(), "run\nrun\n");
    assert!(!work.join("source/manual").exists(), "what the build does not need is not unpacked");
    finish(sources.path()).unwrap();
    assert!(!work.exists() && sources.path().join("server_1.0.orig.tar.gz").exists(), "downloads stay");
}

#[test]
fn changed_recipe_compiles_everything_again() {
    let sources = tempfile::tempdir().unwrap();
    build(&recipe(sources.path(), FAILS_ONCE), sources.path()).0.unwrap_err();
    let other = recipe(sources.path(), &FAILS_ONCE.replace("exit 3", "exit 4"));
    let (built, _, said) = build(&other, sources.path());
    assert!(built.unwrap_err().to_string().contains("exit status: 4"), "nothing of the first build is left");
    assert!(said.iter().any(|words| words == "unpacking the source"), "{said:?}");
}

#[test]
fn missing_tools_are_named_with_their_packages_first() {
    let sources = tempfile::tempdir().unwrap();
    let mut recipe = recipe(sources.path(), FAILS_ONCE);
    for (name, package) in [("no-such-compiler", "compiler"), ("/usr/include/no-such.h", "lib-dev")] {
        recipe.needs.insert(name.to_owned(), package.to_owned());
    }
    let (built, _, said) = build(&recipe, sources.path());
    let error = built.unwrap_err().to_string();
    assert!(error.contains("no-such-compiler") && error.contains("apt-get install lib-dev compiler"), "{error}");
    assert!(said.is_empty() && !sources.path().join(WORK).exists(), "{said:?}");
}

#[test]
fn second_build_at_the_same_time_is_refused() {
    let sources = tempfile::tempdir().unwrap();
    let recipe = recipe(sources.path(), FAILS_ONCE);
    let _first = lock(sources.path()).unwrap();
    let error = build(&recipe, sources.path()).0.unwrap_err().to_string();
    assert!(error.contains("another build uses"), "{error}");
}

#[test]
fn packages_are_named_with_their_versions() {
    let sources = tempfile::tempdir().unwrap();
    let mut recipe = recipe(sources.path(), FAILS_ONCE);
    recipe.files.insert("server-core_1%3a10.5.23-0+deb11u1_amd64.deb".to_owned(), String::new());
    assert_eq!(recipe.packages(), ["server-core=1:10.5.23-0+deb11u1"]);
    assert_eq!(percent("[  7%] Building CXX object"), Some(7));
    assert_eq!(percent("-- Configuring done"), None);
}
