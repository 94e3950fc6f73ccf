//! `limits.cpus` and `limits.client_cpus`.

use super::*;

/// The valid experiment, over a server as well, with limits.
fn text_with(limits: &str) -> String {
    GOOD.replacen("[run]", &format!("[limits]\n{limits}\n[run]"), 1)
}

/// A CPU that this process may use; tests may run on any.
fn cpu() -> u32 {
    allowed_cpus().unwrap().iter().next().unwrap()
}

#[test]
fn engine_names_show_a_list_of_cpus() {
    let cpu = cpu();
    let text = text_with(&format!("cpus = [\"{cpu}\", \"{cpu}-{cpu}\"]")).replace("[\"4k\", \"16k\"]", "\"4k\"");
    let engines = read(&text).unwrap().engines;
    let names: Vec<_> = engines.iter().map(|engine| engine.name.as_str()).collect();
    assert_eq!(names, [format!("rocks[cpus={cpu}]"), format!("rocks[cpus={cpu}-{cpu}]")]);
    let set = with(GOOD, &[&format!("cpus={cpu}"), "rocks.page_size=4k"]).unwrap().engines.remove(0).limits;
    assert_eq!((set.cpus.unwrap().to_string(), set.client_cpus), (cpu.to_string(), None));
}

#[test]
fn client_cpus_are_for_servers() {
    let cpu = cpu();
    let (place, problem, remedy) = mistake("[run]", &format!("[limits]\nclient_cpus = \"{cpu}\"\n[run]"));
    assert_eq!(place, "e.toml:8:1");
    assert_eq!(problem, "rocksdb runs in one process with its clients, so client_cpus cannot restrict them alone");
    assert!(remedy.contains("limits.cpus") && remedy.contains("[[engine]]s that are servers"), "{remedy}");
    let server = format!("[[engine]]\nuse = \"myrocks\"\nlimits.client_cpus = {cpu}\n");
    let engine = read(&format!("{GOOD}{server}")).unwrap().engines.pop().unwrap();
    assert_eq!(engine.limits.client_cpus.unwrap().to_string(), cpu.to_string());
}
