//! Hand-written declarations for the part of WiredTiger 3.2's C interface that rumba uses.
//!
//! Connections, sessions and cursors are structs of function pointers that the library allocates. Only the members up
//! to the last one used are declared, the unused ones as opaque pointers. The test at the end compares every offset
//! with a C compiler's for the installed header.

use std::ffi::{c_char, c_int, c_void};

type Unused = *const c_void;

/// The transaction conflicts with another one, or was rolled back to free cache.
pub const WT_ROLLBACK: c_int = -31800;
/// The key does not exist, or the scan is at its end.
pub const WT_NOTFOUND: c_int = -31803;
/// The library has panicked, and the process must end.
pub const WT_PANIC: c_int = -31804;
/// The database must be recovered before it can be opened.
pub const WT_RUN_RECOVERY: c_int = -31806;
/// The cache stayed full for `cache_max_wait_ms`.
pub const WT_CACHE_FULL: c_int = -31807;

/// `WT_ITEM`: bytes that belong to the item's creator.
#[repr(C)]
pub struct Item {
    pub data: *const c_void,
    pub size: usize,
    mem: *mut c_void,
    memsize: usize,
    flags: u32,
}

impl Item {
    /// An empty item for a cursor to fill in.
    pub const EMPTY: Item = Item { data: std::ptr::null(), size: 0, mem: std::ptr::null_mut(), memsize: 0, flags: 0 };

    /// An item that borrows `bytes`; the caller keeps them alive while a cursor uses the item.
    pub fn of(bytes: &[u8]) -> Item {
        Item { data: bytes.as_ptr().cast(), size: bytes.len(), ..Item::EMPTY }
    }
}

/// A cursor method without arguments.
pub type CursorCall = unsafe extern "C" fn(*mut Cursor) -> c_int;
/// `get_key` and `get_value`, whose arguments follow the cursor's format.
pub type CursorGet = unsafe extern "C" fn(*mut Cursor, ...) -> c_int;
/// `set_key` and `set_value`, whose arguments follow the cursor's format.
pub type CursorSet = unsafe extern "C" fn(*mut Cursor, ...);

/// `WT_CURSOR`.
#[repr(C)]
pub struct Cursor {
    session: Unused,
    uri: Unused,
    key_format: Unused,
    value_format: Unused,
    pub get_key: CursorGet,
    pub get_value: CursorGet,
    pub set_key: CursorSet,
    pub set_value: CursorSet,
    compare: Unused,
    equals: Unused,
    pub next: CursorCall,
    prev: Unused,
    pub reset: CursorCall,
    pub search: CursorCall,
    pub search_near: unsafe extern "C" fn(*mut Cursor, *mut c_int) -> c_int,
    pub insert: CursorCall,
    modify: Unused,
    update: Unused,
    pub remove: CursorCall,
    reserve: Unused,
    pub close: CursorCall,
}

/// A session method with a configuration.
pub type SessionCall = unsafe extern "C" fn(*mut Session, *const c_char) -> c_int;

/// `WT_SESSION`.
#[repr(C)]
pub struct Session {
    connection: Unused,
    app_private: Unused,
    pub close: SessionCall,
    reconfigure: Unused,
    strerror: Unused,
    pub open_cursor:
        unsafe extern "C" fn(*mut Session, *const c_char, *mut Cursor, *const c_char, *mut *mut Cursor) -> c_int,
    alter: Unused,
    pub create: unsafe extern "C" fn(*mut Session, *const c_char, *const c_char) -> c_int,
    import: Unused,
    compact: Unused,
    drop: Unused,
    join: Unused,
    log_flush: Unused,
    log_printf: Unused,
    rebalance: Unused,
    rename: Unused,
    reset: Unused,
    salvage: Unused,
    truncate: Unused,
    upgrade: Unused,
    verify: Unused,
    pub begin_transaction: SessionCall,
    pub commit_transaction: SessionCall,
    prepare_transaction: Unused,
    pub rollback_transaction: SessionCall,
    timestamp_transaction: Unused,
    query_timestamp: Unused,
    pub checkpoint: SessionCall,
}

/// `WT_CONNECTION`.
#[repr(C)]
pub struct Connection {
    async_flush: Unused,
    async_new_op: Unused,
    pub close: unsafe extern "C" fn(*mut Connection, *const c_char) -> c_int,
    debug_info: Unused,
    reconfigure: Unused,
    get_home: Unused,
    configure_method: Unused,
    is_new: Unused,
    pub open_session:
        unsafe extern "C" fn(*mut Connection, *mut EventHandler, *const c_char, *mut *mut Session) -> c_int,
}

/// `WT_EVENT_HANDLER`.
#[repr(C)]
pub struct EventHandler {
    pub handle_error: unsafe extern "C" fn(*mut EventHandler, *mut Session, c_int, *const c_char) -> c_int,
    pub handle_message: unsafe extern "C" fn(*mut EventHandler, *mut Session, *const c_char) -> c_int,
    pub handle_progress: unsafe extern "C" fn(*mut EventHandler, *mut Session, *const c_char, u64) -> c_int,
    pub handle_close: Option<unsafe extern "C" fn(*mut EventHandler, *mut Session, *mut Cursor) -> c_int>,
}

/// `wiredtiger_open`.
pub type Open = unsafe extern "C" fn(*const c_char, *mut EventHandler, *const c_char, *mut *mut Connection) -> c_int;
/// `wiredtiger_strerror`.
pub type Strerror = unsafe extern "C" fn(c_int) -> *const c_char;
/// `wiredtiger_version`.
pub type Version = unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_int) -> *const c_char;
/// `wiredtiger_config_validate`.
pub type Validate = unsafe extern "C" fn(*mut Session, *mut EventHandler, *const c_char, *const c_char) -> c_int;

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};
    use std::process::Command;

    use super::*;

    macro_rules! offsets {
        ($($c:literal $rust:ident { $($member:ident),* })*) => {
            vec![$($(($c, stringify!($member), offset_of!($rust, $member))),*),*]
        };
    }

    fn declared() -> Vec<(&'static str, &'static str, usize)> {
        offsets! {
            "WT_ITEM" Item { data, size, mem, memsize, flags }
            "WT_CURSOR" Cursor {
                session, get_key, get_value, set_key, set_value, next, reset, search, search_near,
                insert, remove, close
            }
            "WT_SESSION" Session {
                connection, close, open_cursor, create, begin_transaction, commit_transaction,
                rollback_transaction, checkpoint
            }
            "WT_CONNECTION" Connection { async_flush, close, open_session }
            "WT_EVENT_HANDLER" EventHandler { handle_error, handle_message, handle_progress, handle_close }
        }
    }

    /// A wrong offset calls a wrong function, so all unsafe code here depends on this test.
    #[test]
    #[needs(CCompiler, WiredTigerHeader)]
    fn every_offset_matches_the_c_compiler() {
        let declared = declared();
        let mut program = String::from(
            "#include <stddef.h>\n#include <stdio.h>\n#include <wiredtiger.h>\nint main(void) {\n\
             printf(\"%d %d %d %d %d\\n\", WT_ROLLBACK, WT_NOTFOUND, WT_PANIC, WT_RUN_RECOVERY, WT_CACHE_FULL);\n\
             printf(\"%zu %zu\\n\", sizeof(WT_ITEM), sizeof(WT_EVENT_HANDLER));\n",
        );
        let mut expected = format!(
            "{WT_ROLLBACK} {WT_NOTFOUND} {WT_PANIC} {WT_RUN_RECOVERY} {WT_CACHE_FULL}\n{} {}\n",
            size_of::<Item>(),
            size_of::<EventHandler>()
        );
        for (c, member, offset) in &declared {
            program.push_str(&format!("printf(\"{c}.{member} %zu\\n\", offsetof({c}, {member}));\n"));
            expected.push_str(&format!("{c}.{member} {offset}\n"));
        }
        program.push_str("return 0; }\n");

        let dir = tempfile::tempdir().unwrap();
        let (source, binary) = (dir.path().join("offsets.c"), dir.path().join("offsets"));
        std::fs::write(&source, program).unwrap();
        let compiled = Command::new("cc").arg(&source).arg("-o").arg(&binary).output().unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        let printed = String::from_utf8(Command::new(&binary).output().unwrap().stdout).unwrap();
        assert_eq!(printed, expected);
    }
}
