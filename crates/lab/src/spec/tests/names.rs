//! Guards against names that no directory can have or that control a terminal, and against an endless source.

use super::*;
use crate::spec::expand::Differs;
use crate::spec::names::distinct as distinct_keys;

fn named(name: &str) -> Result<Experiment, SpecError> {
    read(&GOOD.replace("name = \"rocks\"", &format!("name = \"{name}\"")))
}

#[test]
fn a_name_that_no_directory_can_have_is_refused_at_its_line() {
    // Guards against a name that passes --dry-run and fails when the first trial's directory is made.
    let error = named(&"x".repeat(5000)).unwrap_err();
    assert_eq!(error.place().unwrap(), "e.toml:12:8");
    assert!(error.problem.contains("has 5014 characters"), "with what its list adds: {}", error.problem);
    assert!(error.problem.len() < 200 && error.remedy.contains("at most 200"), "{error:?}");
    let longest = "x".repeat(200 - "[page_size=16k]".len());
    let experiment = named(&longest).unwrap();
    let trials = crate::plan::plan(&experiment, &registry());
    let directory = crate::plan::volume_name(trials.last().unwrap());
    std::fs::create_dir(tempfile::tempdir().unwrap().path().join(directory)).unwrap();
    named(&format!("{longest}x")).unwrap_err();
    let long = GOOD.replace("name = \"tiers\"", &format!("name = \"{}\"", "t".repeat(201)));
    assert!(read(&long).unwrap_err().problem.contains("experiment's name"));
}

#[test]
fn a_name_that_a_terminal_obeys_is_refused_and_not_repeated() {
    for (name, shown) in [("a\\u001b[2Jb", "a\\u001b[2Jb"), ("a\\u009b", "a\\u009b"), ("a\\nb", "a\\nb")] {
        let error = named(name).unwrap_err();
        assert!(error.problem.contains(shown) && !error.problem.contains(char::is_control), "{:?}", error.problem);
        assert!(error.problem.contains("cannot be shown"), "{}", error.problem);
    }
    named("µ-Größe 16k/zstd").unwrap();
    named("").unwrap_err();
}

#[test]
fn oversized_product_of_lists_is_refused_at_its_line() {
    let values = (1..=100).map(|kib| format!("\"{kib}k\"")).collect::<Vec<_>>().join(",");
    let many = GOOD.replace("[\"4k\", \"16k\"]", &format!("[{values}]"));
    read(&many).unwrap();
    let too_many = many.replace("compression = \"zstd\"", &format!("compression = \"zstd\"\ncache = [{values}]"));
    let error = read(&too_many).unwrap_err();
    assert!(error.problem.contains("more than 1000"), "{}", error.problem);
    assert!(error.place().unwrap().starts_with("e.toml:1"), "{:?}", error.place());
}

#[test]
fn device_or_oversized_experiment_is_refused_and_pipe_is_read() {
    let read = |path: &Path| read_file(path, &Overrides::default(), &registry());
    let error = read(Path::new("/dev/zero")).unwrap_err();
    assert!(error.problem.contains("/dev/zero is a device"), "{}", error.problem);
    let place = tempfile::tempdir().unwrap();
    assert!(read(place.path()).unwrap_err().problem.contains("is a directory"));
    let long = place.path().join("long.toml");
    // Sparse: it takes no disk space.
    std::fs::File::create(&long).unwrap().set_len(1 << 40).unwrap();
    assert!(read(&long).unwrap_err().problem.contains("longer than 4.00 MiB"));
    let pipe = place.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::write(pipe, GOOD).unwrap()
    });
    assert_eq!(read(&pipe).unwrap().name, "tiers");
    writer.join().unwrap();
}

#[test]
fn listed_engine_name_shows_only_differing_settings() {
    let names = |from: &str, to: &str| -> Vec<String> {
        assert!(GOOD.contains(from), "{from}");
        let engines = read(&GOOD.replace(from, to)).unwrap().engines;
        engines.into_iter().map(|engine| engine.name).collect()
    };
    let compressed = names("compression = \"zstd\"", "compression = [\"none\", \"zstd\"]");
    let made = ["none,page_size=4k", "none,page_size=16k", "zstd,page_size=4k", "zstd,page_size=16k"];
    assert_eq!(compressed, made.map(|differs| format!("rocks[compression={differs}]")));
    // A list of one value makes no difference, and a given name stays before the differences.
    assert_eq!(names("compression = \"zstd\"", "compression = [\"zstd\"]").len(), 2);
    assert_eq!(names("[\"4k\", \"16k\"]", "\"4k\""), ["rocks"]);
    let memory = names("[common]", "[limits]\nmemory = [\"1GiB\", \"2GiB\"]\n[common]");
    assert_eq!(memory[0], "rocks[memory=1GiB,page_size=4k]");
    let grouped = names("\"10MB\"", "[\"10MB\", \"20MB\"]");
    assert_eq!(grouped[3], "rocks[log.file_max=20MB,page_size=16k]");
}

#[test]
fn keys_drop_table_and_engine_name_unless_ambiguous() {
    let distinct = |paths: &[&str]| -> Vec<String> {
        let differs: Vec<Differs> = paths.iter().map(|path| ((*path).to_owned(), String::new())).collect();
        distinct_keys(&differs, &["rocksdb", "innodb"]).into_iter().map(|(key, _)| key).collect()
    };
    assert_eq!(distinct(&["settings.innodb_doublewrite"]), ["doublewrite"]);
    assert_eq!(distinct(&["cache", "settings.innodb_page_size"]), ["cache", "page_size"]);
    assert_eq!(
        distinct(&["settings.page_size", "settings.innodb_page_size"]),
        ["settings.page_size", "innodb_page_size"]
    );
    assert_eq!(distinct(&["cache", "settings.cache"]), ["cache", "settings.cache"]);
    assert_eq!(distinct(&["limits.memory", "settings.memory"]), ["limits.memory", "settings.memory"]);
    assert_eq!(distinct(&["limits.storage.iops", "settings.innodbx"]), ["storage.iops", "innodbx"]);
}

#[test]
fn a_password_of_a_server_in_a_list_is_in_no_name() {
    let servers = "[\"mysql://me:secret@host/db\", \"mariadb@10.11\"]";
    let text = GOOD.to_owned() + &format!("[[engine]]\nuse = \"myrocks\"\nserver = {servers}\n");
    let names: Vec<String> = read(&text).unwrap().engines.into_iter().map(|engine| engine.name).collect();
    assert_eq!(names[2..], ["myrocks[server=mysql:__me:***@host_db]", "myrocks[server=mariadb@10.11]"]);
}
