//! The file that marks a directory as rumba's and names its owner.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::checked_dir::CheckedDir;
use super::error::{Doing, ProvisionError};
use super::owner::Owner;

/// The marker's name.
pub const NAME: &str = ".rumba";

/// Its name while it is being written.
pub const UNFINISHED_NAME: &str = ".rumba.new";

/// The version of the marker's format.
const FORMAT: u32 = 1;

/// The longest marker, bytes.
const LONGEST: u64 = 64 << 10;

/// The contents of a marker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerTag {
    format: u32,
    /// The directory that it marks. A copy of a data directory has the marker of the original and is not rumba's.
    pub path: PathBuf,
    #[serde(flatten)]
    pub owner: Owner,
    /// Whether the user keeps the data.
    pub kept: bool,
    /// The directories that were made for it, innermost first; those that existed before stay.
    pub made: Vec<PathBuf>,
}

impl OwnerTag {
    pub fn new(path: PathBuf, owner: Owner, made: Vec<PathBuf>) -> Self {
        Self { format: FORMAT, path, owner, kept: false, made }
    }

    /// The marker of a directory, if it has one. Both must belong to this user.
    ///
    /// # Errors
    /// [`ProvisionError::Untrusted`] when they do not, [`ProvisionError::OwnerTag`] when it is no marker of this
    /// directory.
    pub fn read(dir: &CheckedDir) -> Result<Option<Self>, ProvisionError> {
        dir.require_own()?;
        let wrong = |reason: String| ProvisionError::OwnerTag { path: dir.path().join(NAME), reason };
        let Some(json) = dir.read(NAME, LONGEST)? else { return Ok(None) };
        let marker: Self = serde_json::from_slice(&json).map_err(|error| wrong(format!("not a marker: {error}")))?;
        if marker.format != FORMAT {
            return Err(wrong(format!("format {} is of another rumba (this one writes {FORMAT})", marker.format)));
        }
        if marker.path != dir.path() {
            return Err(wrong(format!("this marks {}, which was copied or moved here", marker.path.display())));
        }
        let above = dir.path().ancestors().take(marker.made.len());
        if !above.eq(marker.made.iter().map(PathBuf::as_path)) {
            return Err(wrong("it names directories that are not above it as made by rumba".to_owned()));
        }
        Ok(Some(marker))
    }

    /// Writes it into its directory, completely or not at all.
    ///
    /// # Errors
    /// A marker that cannot be written; [`ProvisionError::Untrusted`] when the directory now belongs to another user.
    pub fn write(&self) -> Result<(), ProvisionError> {
        let json = serde_json::to_vec_pretty(self).map_err(Into::into).doing("write the marker of", &self.path)?;
        let Some(dir) = CheckedDir::at(&self.path)? else {
            return Err(ProvisionError::NotADirectory { path: self.path.clone() });
        };
        dir.require_own()?;
        dir.write(NAME, UNFINISHED_NAME, &json)
    }
}
