//! Starts a server on a data directory and connects to it.

use std::fs::{self, OpenOptions};
use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rumba_engine_api::access::Access;
use rumba_engine_api::bson::DocumentBuf;
use rumba_engine_api::error::{EngineError, Result};
use rumba_protocol_mongodb::{Address, Admin, Secret, Target};
use rumba_server_kit::cache;
use rumba_server_kit::failure::{LogWords, full_or_failed};
use rumba_server_kit::files::{free_port, password, write_private};
use rumba_server_kit::host::{CALL, Data, Layout, Running};
use rumba_server_kit::process::{Process, Signals};
use rumba_server_kit::watch::Watch;

use crate::brand::Brand;
use crate::control::{ADMIN, failed, within};
use crate::plan::Plan;
use crate::software::Software;

/// Timeout of a call on the control session.
pub const ANSWER: Duration = Duration::from_secs(60);
/// The user and the replica set's name in servers that rumba runs.
const RUMBA: &str = "rumba";
/// The password of rumba's user, with the data because copies of the data need it.
const PASSWORD: &str = "rumba-password";
/// The key of the replica set.
const KEY: &str = "key";

/// How to read the server's log. It is JSON since 4.4, with the severity in `s`.
const LOG_WORDS: LogWords = LogWords { is_error, never_meant: &[], aliases: &[] };

fn is_error(line: &str) -> bool {
    ["\"s\":\"E\"", "\"s\":\"F\"", " E ", " F ", "Error", "error:"].iter().any(|mark| line.contains(mark))
}

/// Starts a server and waits until it answers and accepts writes. A `mongod` admits only rumba's user.
///
/// # Errors
/// If the server exits: its last messages and the option that they concern.
pub fn start(software: &Software, layout: &Layout, plan: &Plan, data: Data) -> Result<Running> {
    let on_disk = |what: &str, error: io::Error| full_or_failed(CALL, format!("{what}: {error}"));
    cache::make_private(&layout.kept()).map_err(|error| on_disk("its directory", error))?;
    fs::create_dir_all(layout.data()).map_err(|error| on_disk("its data directory", error))?;
    let port = free_port().map_err(|error| on_disk("a free port", error))?;
    let mut command = software.command();
    command.stdin(Stdio::null());
    match software.brand {
        Brand::MongoDb => {
            command.args(["--bind_ip", "127.0.0.1", "--nounixsocket", "--auth", "--port", &port.to_string()]);
            command.arg("--dbpath").arg(layout.data());
            if plan.replicated {
                let key = password().map_err(|error| on_disk("/dev/urandom", error))?.replace('-', "");
                write_private(&layout.file(KEY), &key).map_err(|error| on_disk("its key", error))?;
                command.args(["--replSet", RUMBA]).arg("--keyFile").arg(layout.file(KEY));
            }
        }
        Brand::SecantusDb => {
            command.args(["--host", "127.0.0.1", "--port", &port.to_string()]);
            command.arg("--storage-path").arg(layout.data());
        }
    }
    command.args(plan.command_line());
    let log = OpenOptions::new().create(true).append(true).open(layout.log());
    let log = log.map_err(|error| on_disk("its log", error))?;
    command.stdout(log.try_clone().map_err(|error| on_disk("its log", error))?).stderr(log);
    let process = Process::start(&mut command, Signals::ONE_PROCESS)
        .map_err(|error| on_disk(&software.program.display().to_string(), error))?;
    let watch = Arc::new(Watch::new(process, layout.log(), LOG_WORDS, plan.arguments.clone()));
    let target = Target::anonymous(Address::Tcp { host: "127.0.0.1".into(), port });
    let command = ["mongosh", "--host", "127.0.0.1", "--port"].map(str::to_owned).into_iter().chain([port.to_string()]);
    let access = Access { environment: Vec::new(), command: command.collect(), password_file: None };
    let mut running = Running { watch, target, access: Box::new(access), socket: None };
    if software.brand == Brand::SecantusDb {
        wait(&running, |_| true)?;
    } else {
        // The server's shell prompts for the password and cannot read it from a file.
        let file = layout.data().join(PASSWORD);
        if data == Data::Left {
            let secret = fs::read_to_string(&file).map_err(|error| on_disk("its password", error))?;
            (running.target.user, running.target.password) = (RUMBA.to_owned(), Secret::new(secret.trim().to_owned()));
        }
        let mut admin = wait(&running, |_| true)?;
        if plan.replicated {
            make_primary(&mut admin, port, data)?;
            admin = wait(&running, |admin| admin.hello().is_writable)?;
        }
        if data == Data::New {
            make_user(&mut running, admin)?;
            let secret = format!("{}\n", running.target.password.reveal());
            write_private(&file, &secret).map_err(|error| on_disk("its password", error))?;
        }
        let whom = ["--username", RUMBA, "--authenticationDatabase", ADMIN];
        running.access.command.extend(whom.map(str::to_owned));
        running.access.password_file = Some(file);
    }
    Ok(running)
}

/// Makes a `mongod` the only member of its replica set, under its present port. Data that an earlier server left names
/// that server's port, so the server is not a member of its replica set and accepts only a forced change.
fn make_primary(admin: &mut Admin, port: u16, data: Data) -> Result<()> {
    let call = if data == Data::New { "replSetInitiate" } else { "replSetReconfig" };
    let version = match data {
        Data::New => None,
        Data::Left => {
            let request = DocumentBuf::of(|of| of.small("replSetGetConfig", 1));
            let reported = admin.run(ADMIN, request.get()).map_err(failed("replSetGetConfig"))?;
            within(reported.get(), &["config", "version"]).and_then(|version| version.int())
        }
    };
    let command = DocumentBuf::of(|of| {
        of.document(call, |of| {
            of.text("_id", RUMBA);
            if let Some(version) = version {
                // Version 4.2 adds a random number to this one, and refuses a sum that is not higher than the present.
                of.int("version", version + 1);
                of.int("protocolVersion", 1);
            }
            of.array("members", |of| {
                of.document(|of| {
                    of.small("_id", 0);
                    of.text("host", &format!("127.0.0.1:{port}"));
                });
            });
        });
        if data == Data::Left {
            of.bool("force", true);
        }
    });
    admin.run(ADMIN, command.get()).map(drop).map_err(failed(call))
}

/// Creates rumba's user. Until a user exists, the localhost exception permits this and `replSetInitiate`.
fn make_user(running: &mut Running, mut admin: Admin) -> Result<()> {
    let secret = password().map_err(|error| EngineError::failed("/dev/urandom", error.to_string()))?;
    let user = DocumentBuf::of(|of| {
        of.text("createUser", RUMBA);
        of.text("pwd", &secret);
        of.array("roles", |of| of.text("root"));
    });
    admin.run(ADMIN, user.get()).map_err(failed("createUser"))?;
    (running.target.user, running.target.password) = (RUMBA.to_owned(), Secret::new(secret));
    Ok(())
}

/// Waits until a server accepts a connection and is in the required state.
fn wait(running: &Running, is_ready: impl Fn(&Admin) -> bool) -> Result<Admin> {
    running.wait(|target| {
        Ok(match Admin::connect(target, Duration::from_secs(10)) {
            Ok(admin) if is_ready(&admin) => Ok(admin),
            Ok(_) => Err("it takes no writes yet".to_owned()),
            Err(error) => Err(error.to_string()),
        })
    })
}
