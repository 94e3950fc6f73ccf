//! The maximum depth of calls between a script's functions and C functions.
//!
//! Lua 5.1 counts such calls, and LuaJIT does not: if they fill the C stack, the program ends without a message. Among
//! LuaJIT's functions that call a script's, `gsub` uses by far the most stack, 9 KB for each call, so it checks first.
//! `table.sort` and `tostring` use 200 bytes, and fill Lua's own stack first, which LuaJIT reports.
//!
//! Other cases are not checked, because a script needs thousands of levels for them: coroutines in coroutines, `load`
//! with a function, and a recursive `__tostring` or `__gc`.

use std::ffi::c_int;
use std::ptr::null_mut;

use mlua::ffi::{self, lua_State};

use crate::context::ClientContext;

/// The stack that must be left: for `gsub`, and for the calls of the script's function, such as LuaJIT's compiler or a
/// built-in engine.
const LEAST_LEFT_BYTES: usize = 128 << 10;

/// Makes `string.gsub` raise an error before the stack is full.
///
/// # Safety
/// The state is open, and closed before the client is dropped.
pub(crate) unsafe fn guard(state: *mut lua_State, client: *const ClientContext) {
    // SAFETY: as above; the pushed values are popped.
    unsafe {
        ffi::lua_getglobal(state, c"string".as_ptr());
        ffi::lua_pushlightuserdata(state, client.cast_mut().cast());
        ffi::lua_getfield(state, -2, c"gsub".as_ptr());
        ffi::lua_pushcclosure(state, gsub, 2);
        ffi::lua_setfield(state, -2, c"gsub".as_ptr());
        ffi::lua_settop(state, -2);
    }
}

/// Replaces LuaJIT's own `gsub`, which it then calls. Errors pass through it: it has nothing to be dropped.
unsafe extern "C-unwind" fn gsub(state: *mut lua_State) -> c_int {
    // SAFETY: see `guard`.
    unsafe {
        let client: *const ClientContext = ffi::lua_touserdata(state, ffi::lua_upvalueindex(1)).cast();
        match ffi::lua_tocfunction(state, ffi::lua_upvalueindex(2)) {
            Some(own) if stack_left_bytes(&*client) >= LEAST_LEFT_BYTES => own(state),
            _ => ffi::luaL_error(state, c"stack overflow".as_ptr()),
        }
    }
}

/// The stack that is left for a client's script.
fn stack_left_bytes(client: &ClientContext) -> usize {
    let here = 0_u8;
    let end = client.stack_end().unwrap_or_else(|| END_OF_THREAD.with(|end| *end));
    (&raw const here).addr().saturating_sub(end)
}

thread_local! {
    /// The end of the thread's own stack, for scripts that do not run on a fiber, as in `prepare`.
    static END_OF_THREAD: usize = end_of_thread();
}

/// The lowest address of the thread's stack; 0 if the system does not report it.
fn end_of_thread() -> usize {
    let (mut lowest, mut bytes) = (null_mut(), 0);
    // SAFETY: the attributes are written by the first call, and read and freed when that has done so.
    let failed = unsafe {
        let mut attributes = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) != 0 {
            return 0;
        }
        let failed = libc::pthread_attr_getstack(&raw const attributes, &raw mut lowest, &raw mut bytes);
        libc::pthread_attr_destroy(&raw mut attributes);
        failed
    };
    if failed == 0 { lowest.addr() } else { 0 }
}
