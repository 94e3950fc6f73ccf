//! The server that an experiment selects.

use std::path::PathBuf;

use rumba_engine_api::engine::is_dsn;
use rumba_engine_api::setting::SettingError;
use rumba_server_kit::dsn::Dsn;
use rumba_server_kit::install::{Release, Software as _};

use crate::catalogue::RELEASES;
use crate::dsn;
use crate::software::Software;

/// The selected server.
pub enum Server {
    Release(&'static Release),
    Base(PathBuf),
    Existing(Dsn),
}

impl Server {
    pub fn of(server: Option<&str>) -> Result<Self, SettingError> {
        let Some(name) = server else {
            return RELEASES.all().first().map(Server::Release).ok_or_else(|| {
                SettingError::new("server", "the catalogue is empty", "name a server: a base directory or a DSN")
            });
        };
        if is_dsn(name) {
            return dsn::FORM.parse(name).map(Server::Existing);
        }
        if let Some(release) = RELEASES.find(name) {
            return Ok(Server::Release(release));
        }
        dsn::FORM.refuse_without_scheme(name)?;
        if name.contains('/') {
            return Ok(Server::Base(name.into()));
        }
        let remedy = "`rumba engines` lists the servers; or name a base directory (/opt/mysql) or a DSN (mysql://user@host/schema)";
        Err(SettingError::new("server", RELEASES.unknown(name), remedy))
    }

    pub fn software(&self) -> Result<Software, SettingError> {
        match self {
            Server::Release(release) => release.software::<Software>().ok_or_else(|| {
                let remedy = format!("install it: {}", release.install_command());
                SettingError::new("server", format!("{} is not installed", release.about), remedy)
            }),
            Server::Base(base) => Software::at(base).map_err(|error| {
                SettingError::new("server", error, "name the directory that holds bin/mysqld and share")
            }),
            // Callers never request the software of an existing server.
            Server::Existing(_) => {
                Err(SettingError::new("server", "this is an existing server", "name a release or a base directory"))
            }
        }
    }
}
