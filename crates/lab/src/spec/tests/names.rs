//! What a user would lose by a name that no directory can have, or that a terminal obeys; and by a source that never ends.

use super::*;

fn named(name: &str) -> Result<Experiment, SpecError> {
    read(&GOOD.replace("name = \"rocks\"", &format!("name = \"{name}\"")))
}

#[test]
fn a_name_that_no_directory_can_have_is_refused_at_its_line() {
    // Before, it passed --dry-run, and the run failed when it made the directory of its first trial.
    let error = named(&"x".repeat(5000)).unwrap_err();
    assert_eq!(error.place().unwrap(), "e.toml:12:8");
    assert!(error.problem.contains("has 5003 characters"), "with what its list adds: {}", error.problem);
    assert!(error.problem.len() < 200 && error.remedy.contains("at most 200"), "{error:?}");
    let longest = "x".repeat(200 - ".16k".len());
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
fn a_product_of_lists_that_would_fill_the_memory_is_refused_at_its_line() {
    let values = (1..=100).map(|kib| format!("\"{kib}k\"")).collect::<Vec<_>>().join(",");
    let many = GOOD.replace("[\"4k\", \"16k\"]", &format!("[{values}]"));
    read(&many).unwrap();
    let too_many = many.replace("compression = \"zstd\"", &format!("compression = \"zstd\"\ncache = [{values}]"));
    let error = read(&too_many).unwrap_err();
    assert!(error.problem.contains("more than 1000"), "{}", error.problem);
    assert!(error.place().unwrap().starts_with("e.toml:1"), "{:?}", error.place());
}

#[test]
fn what_is_no_file_of_an_experiments_length_is_refused_and_a_pipe_is_read() {
    let read = |path: &Path| read_file(path, &Overrides::default(), &registry());
    let error = read(Path::new("/dev/zero")).unwrap_err();
    assert!(error.problem.contains("/dev/zero is a device"), "{}", error.problem);
    let place = tempfile::tempdir().unwrap();
    assert!(read(place.path()).unwrap_err().problem.contains("is a directory"));
    let long = place.path().join("long.toml");
    // Sparse: it takes no room.
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
