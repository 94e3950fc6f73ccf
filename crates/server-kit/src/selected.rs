//! The server that an experiment selects: a release of the catalogue, a base directory, or an existing server.

use std::path::PathBuf;

use rumba_engine_api::engine::{Availability, is_dsn};
use rumba_engine_api::setting::SettingError;
use rumba_transport::{Address, Target};

use crate::dsn::{Dsn, Form};
use crate::install::{Release, Releases, Software, available};

/// A family of servers that one catalogue has.
pub trait ServerFamily: Software + 'static {
    /// How the DSN of an existing server is written.
    const DSN: Form;
    /// An example of a base directory, and of a DSN: `a base directory (/opt/x) or a DSN (x://user@host)`.
    const EXAMPLES: &'static str;
    /// The remedy for a base directory without a server: what it must hold.
    const BASE: &'static str;

    /// The catalogue.
    fn releases() -> &'static Releases<Self>;

    /// The release of an experiment that names no server.
    fn usual() -> Option<&'static Release> {
        Self::releases().all().first()
    }
}

/// The address of an existing server that clients of other hosts can reach; `target` reads it from the DSN. `None` is a
/// server that rumba starts.
///
/// # Errors
/// A server that rumba starts, or a socket: both serve this host only.
pub fn reachable<'a>(
    existing: Option<&'a Dsn>,
    form: &Form,
    target: fn(&Dsn) -> Result<Target, SettingError>,
) -> Result<(&'a Dsn, Target), SettingError> {
    let refuse = |problem: &str| {
        let remedy = format!("name a running server by its host and port, as in {}", form.example);
        Err(SettingError::new("server", problem, remedy))
    };
    let Some(dsn) = existing else {
        return refuse("clients on other hosts cannot reach a server that rumba starts: it serves this host only");
    };
    match target(dsn)? {
        Target { address: Address::Socket(_), .. } => {
            refuse("clients on other hosts cannot reach a server by its socket")
        }
        target => Ok((dsn, target)),
    }
}

/// The selected server.
pub enum Selected {
    /// A release of the catalogue.
    Release(&'static Release),
    /// The user's own base directory.
    Base(PathBuf),
    /// A server that others run.
    Existing(Dsn),
}

impl Selected {
    /// Reads the setting `server`.
    ///
    /// # Errors
    /// A name that is neither of the three; an invalid DSN.
    pub fn of<S: ServerFamily>(server: Option<&str>) -> Result<Self, SettingError> {
        let Some(name) = server else {
            return S::usual().map(Self::Release).ok_or_else(|| {
                SettingError::new("server", "the catalogue is empty", "name a server: a base directory or a DSN")
            });
        };
        if is_dsn(name) {
            return S::DSN.parse(name).map(Self::Existing);
        }
        if let Some(release) = S::releases().find(name) {
            return Ok(Self::Release(release));
        }
        S::DSN.refuse_without_scheme(name)?;
        if name.contains('/') {
            return Ok(Self::Base(name.into()));
        }
        let remedy = format!("`rumba engines` lists the servers; or name {}", S::EXAMPLES);
        Err(SettingError::new("server", S::releases().unknown(name), remedy))
    }

    /// The availability of a server; `noun` is the server's word for a database.
    pub fn availability<S: ServerFamily>(server: Result<Self, SettingError>, noun: &str) -> Availability {
        match server {
            // The check of the configuration reports errors in a DSN, because it can point at the setting.
            Err(_) => Availability::here(None, "a server"),
            Ok(Self::Existing(dsn)) => Availability::here(None, format!("an existing server, {noun} {}", dsn.database)),
            Ok(Self::Base(base)) => match S::at(&base) {
                Ok(software) => available(&software),
                Err(what) => Availability::lacking("a server", what, S::BASE),
            },
            Ok(Self::Release(release)) => release.availability::<S>(),
        }
    }

    /// The DSN of a server that others run.
    pub fn existing(&self) -> Option<&Dsn> {
        if let Self::Existing(dsn) = self { Some(dsn) } else { None }
    }

    /// The software of a release or base directory.
    ///
    /// # Errors
    /// It is not installed, or the directory has none.
    pub fn software<S: ServerFamily>(&self) -> Result<S, SettingError> {
        match self {
            Self::Release(release) => release.software::<S>().ok_or_else(|| {
                let remedy = format!("install it: {}", release.install_command());
                SettingError::new("server", format!("{} is not installed", release.about), remedy)
            }),
            Self::Base(base) => S::at(base).map_err(|error| SettingError::new("server", error, S::BASE)),
            // Callers never request the software of an existing server.
            Self::Existing(_) => {
                Err(SettingError::new("server", "this is an existing server", "name a release or a base directory"))
            }
        }
    }
}
