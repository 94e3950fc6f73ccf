//! The file that says that a directory is rumba's, and whose.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::ProvisionError;
use super::owner::Owner;

/// The marker's name.
pub const NAME: &str = ".rumba";

/// Its name while it is being written.
pub const UNFINISHED_NAME: &str = ".rumba.new";

/// The version of the marker's format.
const FORMAT: u32 = 1;

/// What a marker says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    format: u32,
    /// The directory that it marks. A copy of a data directory carries the
    /// marker of the original and is not rumba's.
    pub path: PathBuf,
    /// Who made it.
    #[serde(flatten)]
    pub owner: Owner,
    /// Whether its owner was told to keep the data.
    pub kept: bool,
    /// The directories that were made for it, innermost first; those that were
    /// there before stay.
    pub made: Vec<PathBuf>,
}

impl Marker {
    pub fn new(path: PathBuf, owner: Owner, made: Vec<PathBuf>) -> Self {
        Self { format: FORMAT, path, owner, kept: false, made }
    }

    /// The marker of a directory, if it carries one.
    pub fn read(dir: &Path) -> Result<Option<Self>, ProvisionError> {
        let path = dir.join(NAME);
        let wrong = |reason: String| ProvisionError::Marker { path: path.clone(), reason };
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(wrong(error.to_string())),
        };
        let marker: Self = serde_json::from_str(&text).map_err(|error| wrong(format!("not a marker: {error}")))?;
        if marker.format != FORMAT {
            return Err(wrong(format!("format {} is of another rumba (this one writes {FORMAT})", marker.format)));
        }
        if marker.path != dir {
            return Err(wrong(format!("this marks {}, which was copied or moved here", marker.path.display())));
        }
        Ok(Some(marker))
    }

    /// Writes it into its directory, whole or not at all.
    pub fn write(&self) -> io::Result<()> {
        let unfinished = self.path.join(UNFINISHED_NAME);
        fs::write(&unfinished, serde_json::to_vec_pretty(self)?)?;
        fs::rename(unfinished, self.path.join(NAME))
    }
}
