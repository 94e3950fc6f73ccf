//! Finds and loads libwiredtiger and its compressors at run time, so that rumba starts without them and reports an
//! error with a remedy.

use std::ffi::{CStr, OsStr, c_int};
use std::mem::ManuallyDrop;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rumba_engine_api::error::with_sources;

use super::ffi;

/// The command that installs the library and its compressors (both are in this package) on Debian and Ubuntu.
pub const INSTALL: &str = "apt-get install libwiredtiger0";

/// The names that `dlopen` searches if an experiment gives no path.
const USUAL_NAMES: [&str; 2] = ["libwiredtiger.so.0", "libwiredtiger.so"];

/// Directories searched for compressors, after the library's own.
const USUAL_DIRECTORIES: [&str; 5] =
    ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/local/lib", "/usr/lib"];

/// The version whose layout `ffi` declares. The layout follows major.minor.
const KNOWN: (c_int, c_int) = (3, 2);

/// The loaded library.
pub struct Library {
    pub(crate) open: ffi::Open,
    pub(crate) strerror: ffi::Strerror,
    pub(crate) validate: ffi::Validate,
    path: PathBuf,
    version: String,
    /// It is never unloaded, because after a panic the engine's threads continue to run its code.
    _handle: ManuallyDrop<libloading::Library>,
}

impl Library {
    /// Loads `path`, or the system's library.
    ///
    /// # Errors
    /// The library is absent, not WiredTiger, or of an unknown version.
    pub fn load(path: Option<&Path>) -> Result<Arc<Library>, String> {
        let handle = match path {
            Some(path) => dlopen(path.as_os_str())
                .map_err(|cause| format!("`library` {}: {}", path.display(), with_sources(&cause)))?,
            None => dlopen_usual()?,
        };
        // Check the version first, because other versions may have other functions.
        let version: ffi::Version = symbol(&handle, path, "wiredtiger_version")?;
        let path = path_of(version).or(path.map(Path::to_owned)).unwrap_or_else(|| PathBuf::from(USUAL_NAMES[0]));
        let (mut major, mut minor, mut patch) = (0, 0, 0);
        // SAFETY: wiredtiger_version takes three pointers to integers in every version and returns a static string.
        let words = unsafe { CStr::from_ptr(version(&mut major, &mut minor, &mut patch)) };
        if (major, minor) != KNOWN {
            let found = words.to_string_lossy();
            return Err(format!("{} is {found}; only WiredTiger 3.2 is known here", path.display()));
        }
        Ok(Arc::new(Library {
            open: symbol(&handle, Some(&path), "wiredtiger_open")?,
            strerror: symbol(&handle, Some(&path), "wiredtiger_strerror")?,
            validate: symbol(&handle, Some(&path), "wiredtiger_config_validate")?,
            version: format!("{major}.{minor}.{patch}"),
            path,
            _handle: ManuallyDrop::new(handle),
        }))
    }

    /// Its version: `3.2.1`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The file it was loaded from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file of a compressor: next to the library, or in the usual directories.
    ///
    /// # Errors
    /// The compressor is in none of them.
    pub fn compressor(&self, name: &str) -> Result<PathBuf, String> {
        let file = format!("libwiredtiger_{name}.so");
        let directories: Vec<&Path> =
            self.path.parent().into_iter().chain(USUAL_DIRECTORIES.iter().map(Path::new)).collect();
        directories.iter().map(|directory| directory.join(&file)).find(|path| path.exists()).ok_or_else(|| {
            let looked_in = directories.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
            format!("{file} is not on this machine (looked in {looked_in})")
        })
    }

    /// The library's message for a code.
    pub(crate) fn words(&self, code: c_int) -> String {
        // SAFETY: returns a string that is static, or for an unknown code a buffer that stays in place.
        unsafe { CStr::from_ptr((self.strerror)(code)) }.to_string_lossy().into_owned()
    }
}

fn dlopen(name: &OsStr) -> Result<libloading::Library, libloading::Error> {
    // SAFETY: libwiredtiger's initializers only choose a checksum routine; any other file is the user's own choice.
    unsafe { libloading::Library::new(name) }
}

fn dlopen_usual() -> Result<libloading::Library, String> {
    let mut causes = Vec::new();
    for name in USUAL_NAMES {
        match dlopen(OsStr::new(name)) {
            Ok(handle) => return Ok(handle),
            Err(cause) => causes.push(with_sources(&cause)),
        }
    }
    Err(format!("the library libwiredtiger is not on this machine ({})", causes.join("; ")))
}

fn symbol<T: Copy>(handle: &libloading::Library, path: Option<&Path>, name: &str) -> Result<T, String> {
    // SAFETY: every caller requests the type that wiredtiger.h declares for this name. The copy outlives `handle`
    // because it is never unloaded.
    unsafe { handle.get::<T>(name) }.map(|symbol| *symbol).map_err(|_| {
        let path = path.unwrap_or(Path::new(USUAL_NAMES[0])).display();
        format!("{path} has no function {name}: it is not WiredTiger")
    })
}

/// The file that holds a function, links resolved.
fn path_of(function: ffi::Version) -> Option<PathBuf> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: dladdr only compares the address with the loaded objects and
    // fills in the zeroed `info`, whose strings live as long as the object.
    let name = unsafe {
        if libc::dladdr(function as *const libc::c_void, info.as_mut_ptr()) == 0 {
            return None;
        }
        let name = info.assume_init().dli_fname;
        if name.is_null() {
            return None;
        }
        CStr::from_ptr(name)
    };
    std::fs::canonicalize(OsStr::from_bytes(name.to_bytes())).ok()
}
