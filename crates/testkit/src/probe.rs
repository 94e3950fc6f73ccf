//! Looks for a test's needs by using them, because an existing program may still be forbidden to do its work.

use std::ffi::OsStr;
use std::fs;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;

use rumba_engine_api::engine::ExternalLibrary;
use serde_json::Value;

use crate::mounts::run;

type Found = Result<(), String>;

const AS_ROOT: &str = "run the tests as root";

pub fn root() -> Found {
    if rustix::process::geteuid().is_root() { Ok(()) } else { Err(AS_ROOT.into()) }
}

pub fn fuse() -> Found {
    if Path::new("/dev/fuse").exists() { Ok(()) } else { Err("there is no /dev/fuse; modprobe fuse".into()) }
}

pub fn two_cpus() -> Found {
    match std::thread::available_parallelism().map_or(1, usize::from) {
        1 => Err("this process has one CPU; run the tests where it has two".into()),
        _ => Ok(()),
    }
}

/// A program on the path, or in a directory outside of a plain user's path.
pub fn program(name: &str, package: &str) -> Found {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    if places.any(|place| place.join(name).is_file()) {
        return Ok(());
    }
    Err(format!("there is no {name}; apt-get install {package}"))
}

/// That it is there, and may sample.
pub fn perf() -> Found {
    program("perf", "linux-perf")?;
    let output =
        Command::new("perf").args(["record", "-q", "-e", "cpu-clock", "-o", "/dev/null", "--", "true"]).output();
    let output = output.map_err(|error| format!("perf: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err("perf may not sample; sysctl kernel.perf_event_paranoid=2".to_owned())
    }
}

pub fn file(path: &str, package: &str) -> Found {
    if Path::new(path).exists() { Ok(()) } else { Err(format!("there is no {path}; apt-get install {package}")) }
}

/// A file that `scripts/setup` puts among the build's tools, if it is available.
pub fn built(path: &Path) -> Found {
    if path.exists() { Ok(()) } else { Err(format!("there is no {}; scripts/setup test installs it", path.display())) }
}

/// A file that a variable names, because the user provides it.
pub fn brought(ExternalLibrary { variable, page }: ExternalLibrary) -> Found {
    let lacking = match std::env::var_os(variable).filter(|name| !name.is_empty()) {
        Some(name) if Path::new(&name).exists() => return Ok(()),
        Some(name) => format!("what is not there, {}", Path::new(&name).display()),
        None => "nothing".to_owned(),
    };
    Err(format!("{variable} names {lacking}; {page} says what to bring"))
}

pub fn tmpfs() -> Found {
    root()?;
    let place = directory()?;
    run("mount", &["-t", "tmpfs", "-o", "size=64k", "rumba-test"].map(OsStr::new), place.path())?;
    run("umount", &[], place.path())
}

pub fn network_namespaces() -> Found {
    root()?;
    program("ip", "iproute2")?;
    program("nsenter", "util-linux")?;
    let links = ["--net", "--uts", "ip", "link", "add", "rumba-test", "type"].map(OsStr::new);
    run("unshare", &links, Path::new("bridge"))
}

pub fn three_hosts() -> Found {
    network_namespaces()?;
    run(crate::three_hosts::PROGRAM, &[], Path::new("--fetch"))
}

pub fn loop_device() -> Found {
    root()?;
    let place = directory()?;
    let (image, mount) = (place.path().join("image"), place.path().join("mount"));
    let made = fs::File::create(&image).and_then(|file| file.set_len(4 << 20)).and(fs::create_dir(&mount));
    made.map_err(|error| format!("{}: {error}", image.display()))?;
    run("mkfs.ext4", &["-q", "-F"].map(OsStr::new), &image)?;
    run("mount", &["-o".as_ref(), "loop".as_ref(), image.as_os_str()], &mount)?;
    run("umount", &[], &mount)
}

pub fn storage_rates() -> Found {
    root()?;
    let one = Path::new("/sys/fs/cgroup/blkio/blkio.throttle.read_iops_device").exists();
    if one || has_controller("io") {
        return Ok(());
    }
    Err("no control group throttles devices here (CONFIG_BLK_DEV_THROTTLING, or a container without it)".into())
}

pub fn memory_group() -> Found {
    let is_root = root().is_ok();
    if is_root && (Path::new("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists() || has_controller("memory")) {
        return Ok(());
    }
    let scope = ["--user", "--scope", "--quiet", "--property=MemoryMax=64M"].map(OsStr::new);
    run("systemd-run", &scope, Path::new("true")).map_err(|why| match is_root {
        true => "no control group limits memory here".into(),
        false => format!("{AS_ROOT}, or in a login session of systemd ({why})"),
    })
}

/// Whether groups of version 2 have a controller.
fn has_controller(name: &str) -> bool {
    let controllers = fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").unwrap_or_default();
    controllers.split_whitespace().any(|controller| controller == name)
}

/// If there is a cache, it holds a page that was just written.
pub fn page_cache() -> Found {
    let place = directory()?;
    let path = place.path().join("page");
    let cached = fs::write(&path, [1; 4096]).and_then(|()| {
        let file = fs::File::open(&path)?;
        let mut byte = [0; 1];
        // An error, "would block", if the page is not in memory.
        let read = rustix::io::preadv2(
            file.as_fd(),
            &mut [std::io::IoSliceMut::new(&mut byte)],
            0,
            rustix::io::ReadWriteFlags::NOWAIT,
        )?;
        Ok(read == 1)
    });
    if matches!(cached, Ok(true)) {
        return Ok(());
    }
    Err(format!("nothing in {} is cached; set TMPDIR to a directory on a disk", std::env::temp_dir().display()))
}

pub fn server(rumba: Option<&str>, name: &str) -> Found {
    let rumba = rumba.ok_or("only tests of the crate rumba can ask for a server")?;
    let output = Command::new(rumba).args(["engines", "--json"]).output().map_err(|error| error.to_string())?;
    let reported: Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("rumba engines: {error}"))?;
    server_in(&reported, name)
}

/// The state of a server in the list of engines.
fn server_in(reported: &Value, name: &str) -> Found {
    let engines = reported.as_array().into_iter().flatten();
    let releases = |engine: &Value| ["servers", "libraries"].map(|kind| engine[kind].clone());
    let listed: Vec<Value> = engines.flat_map(releases).filter_map(|list| list.as_array().cloned()).flatten().collect();
    let mut servers = listed.iter();
    match servers.find(|server| server["name"] == name) {
        Some(server) if server["missing"].is_null() => Ok(()),
        Some(server) => Err(server["install"].as_str().unwrap_or("it is missing").into()),
        None => Err("rumba engines does not list it".into()),
    }
}

fn directory() -> Result<tempfile::TempDir, String> {
    tempfile::tempdir().map_err(|error| format!("{}: {error}", std::env::temp_dir().display()))
}
