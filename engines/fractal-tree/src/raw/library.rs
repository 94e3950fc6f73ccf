//! Finds and loads libtokufractaltree at run time.

use std::ffi::{CStr, OsStr, c_int};
use std::mem::ManuallyDrop;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rumba_engine_api::engine::ExternalLibrary;
use rumba_engine_api::error::with_sources;

use super::{ffi, files, probe};
use crate::LIBRARY;

/// The library's name if none is configured.
const USUAL_NAME: &str = "libtokufractaltree.so";

/// The version whose layout `ffi` declares.
const KNOWN: (c_int, c_int, c_int) = (4, 6, 119);

/// The loaded library.
pub struct Library {
    pub(super) env_create: ffi::EnvCreate,
    pub(super) db_create: ffi::DbCreate,
    pub(super) set_direct_io: ffi::SetDirectIo,
    strerror: ffi::Strerror,
    path: PathBuf,
    version: String,
    /// It is never unloaded, because the library's threads run its code.
    handle: ManuallyDrop<libloading::Library>,
}

/// Libraries loaded so far, by requested path. Each is probed once.
type Loaded = Vec<(PathBuf, Result<Arc<Library>, String>)>;

static LOADED: Mutex<Loaded> = Mutex::new(Vec::new());

impl Library {
    /// The file to load: from the experiment, from the variable, or the default name.
    pub fn named(path: Option<&Path>) -> PathBuf {
        let of_variable = || std::env::var_os(LIBRARY.variable).filter(|name| !name.is_empty()).map(PathBuf::from);
        path.map(Path::to_owned).or_else(of_variable).unwrap_or_else(|| USUAL_NAME.into())
    }

    /// Loads the library, or returns the one loaded before.
    ///
    /// # Errors
    /// The library cannot be loaded, is not PerconaFT, or has an unknown version or layout.
    pub fn load(path: Option<&Path>) -> Result<Arc<Self>, String> {
        let path = Self::named(path);
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = loaded.iter().find(|(of, _)| *of == path) {
            return known.clone();
        }
        // A missing file is not cached, because the user may install it while the program runs.
        // SAFETY: PerconaFT's initializers set up its counters and locks; any other file is the user's own choice.
        let handle = unsafe { libloading::Library::new(&path) }
            .map_err(|cause| format!("the library {} cannot be loaded ({})", path.display(), with_sources(&cause)))?;
        let library = Self::of(handle, &path);
        loaded.push((path, library.clone()));
        library
    }

    fn of(handle: libloading::Library, path: &Path) -> Result<Arc<Self>, String> {
        // Check the version first, because other versions may have other functions.
        let version: ffi::Version = symbol(&handle, path, "db_version")?;
        let path = path_of(version as *const libc::c_void).unwrap_or_else(|| path.to_owned());
        let found = version_of(version);
        if found != KNOWN {
            let (major, minor, patch) = found;
            let found = format!("{major}.{minor}.{patch}");
            return Err(format!("{} is version {found}; only 4.6.119 is known here", path.display()));
        }
        let library = Self {
            env_create: symbol(&handle, &path, "db_env_create")?,
            db_create: symbol(&handle, &path, "db_create")?,
            set_direct_io: symbol(&handle, &path, "db_env_set_direct_io")?,
            strerror: symbol(&handle, &path, "db_strerror")?,
            version: format!("{}.{}.{}", KNOWN.0, KNOWN.1, KNOWN.2),
            path,
            handle: ManuallyDrop::new(handle),
        };
        library.hook()?;
        let is_ours = |address: usize| path_of(address as *const libc::c_void).as_deref() == Some(&library.path);
        probe::environment(library.env_create, &is_ours)
            .map_err(|what| format!("{} has structures that are not known here: {what}", library.path.display()))?;
        Ok(Arc::new(library))
    }

    /// Makes the library sync and write through [`files`].
    fn hook(&self) -> Result<(), String> {
        let set_fsync: ffi::SetFsync = symbol(&self.handle, &self.path, "db_env_set_func_fsync")?;
        let set_write: ffi::SetFullWrite = symbol(&self.handle, &self.path, "db_env_set_func_full_write")?;
        let set_pwrite: ffi::SetFullPwrite = symbol(&self.handle, &self.path, "db_env_set_func_full_pwrite")?;
        // SAFETY: no environment is open yet, and the functions live as long as the program.
        unsafe {
            set_fsync(files::sync);
            set_write(files::write);
            set_pwrite(files::write_at);
        }
        Ok(())
    }

    /// The library's version, `4.6.119`. It does not identify the layout.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The file it was loaded from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the library's message for a code.
    pub(super) fn words(&self, code: c_int) -> String {
        // SAFETY: the function returns a string that is static or in a permanent buffer.
        unsafe { CStr::from_ptr((self.strerror)(code)) }.to_string_lossy().into_owned()
    }
}

/// How to install the library.
pub fn install() -> String {
    let ExternalLibrary { variable, page } = LIBRARY;
    format!("build github.com/percona/PerconaFT ({page}), then export {variable}=/path/to/{USUAL_NAME}")
}

fn version_of(version: ffi::Version) -> (c_int, c_int, c_int) {
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: the function takes three pointers to integers, as Berkeley DB's function of this name does.
    unsafe { version(&mut major, &mut minor, &mut patch) };
    (major, minor, patch)
}

fn symbol<T: Copy>(handle: &libloading::Library, path: &Path, name: &str) -> Result<T, String> {
    // SAFETY: every caller requests the type that db.h declares for this name. The copy outlives `handle`, because that
    // is never unloaded after a successful load.
    unsafe { handle.get::<T>(name) }
        .map(|symbol| *symbol)
        .map_err(|_| format!("{} has no function {name}: it is not PerconaFT", path.display()))
}

/// Returns the file that holds an address, with links resolved.
fn path_of(address: *const libc::c_void) -> Option<PathBuf> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: dladdr only compares the address with the loaded objects and fills in the zeroed `info`, whose strings
    // live as long as the object.
    let name = unsafe {
        if libc::dladdr(address, info.as_mut_ptr()) == 0 {
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
