//! Whether this process may make memory executable, which LuaJIT's compiler needs. systemd's
//! `MemoryDenyWriteExecute=yes`, `PR_SET_MDWE`, seccomp filters and SELinux may forbid it. LuaJIT would end the process at
//! its first compiled loop then, so scripts are interpreted instead.

use std::ptr::null_mut;
use std::sync::LazyLock;

/// The warning for scripts that are interpreted.
pub const INTERPRETED: &str = "this process may not make memory executable (PR_SET_MDWE, seccomp or SELinux), so scripts \
                               are interpreted and use more CPU; allow it, or confirm it by --luajit-cmd=off";

static IS_ALLOWED: LazyLock<bool> = LazyLock::new(try_it);

/// Whether it may; tried once.
pub fn is_allowed() -> bool {
    *IS_ALLOWED
}

/// Does what LuaJIT does: maps memory, writes to it, and makes it executable.
fn try_it() -> bool {
    const BYTES: usize = 4096;
    // SAFETY: the mapping is new and is used here only; it has this many bytes.
    unsafe {
        let readable = libc::PROT_READ | libc::PROT_WRITE;
        let memory = libc::mmap(null_mut(), BYTES, readable, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
        if memory == libc::MAP_FAILED {
            // No memory at all is another error, which is reported elsewhere.
            return true;
        }
        memory.cast::<u8>().write(0);
        let is_allowed = libc::mprotect(memory, BYTES, libc::PROT_READ | libc::PROT_EXEC) == 0;
        libc::munmap(memory, BYTES);
        is_allowed
    }
}
