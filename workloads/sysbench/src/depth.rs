//! How deep functions of a script and of C may call each other.
//!
//! Lua 5.1 counts such calls and LuaJIT does not: where they fill the C stack, the program ends without a word. Of
//! LuaJIT's functions that call a script's, `gsub` takes by far the most of it, 9 KB each time, so it looks before. Of
//! the others `table.sort` and `tostring` take 200 bytes, and fill Lua's own stack first, which LuaJIT tells. Not looked
//! after are those that a script needs thousands of levels for: coroutines in coroutines, `load` by a function, and a
//! `__tostring` or `__gc` that comes to itself.

use std::ffi::c_int;
use std::ptr::null_mut;

use mlua::ffi::{self, lua_State};

use crate::interpreter::Client;

/// What has to be left: for `gsub`, and for what the script's function calls then, such as LuaJIT's compiler or an
/// engine that is built in.
const LEAST_LEFT_BYTES: usize = 128 << 10;

/// Has `string.gsub` raise an error before the stack is full.
///
/// # Safety
/// The state is open, and closed before the client is dropped.
pub(crate) unsafe fn guard(state: *mut lua_State, client: *const Client) {
    // SAFETY: as above; what is pushed is taken away.
    unsafe {
        ffi::lua_getglobal(state, c"string".as_ptr());
        ffi::lua_pushlightuserdata(state, client.cast_mut().cast());
        ffi::lua_getfield(state, -2, c"gsub".as_ptr());
        ffi::lua_pushcclosure(state, gsub, 2);
        ffi::lua_setfield(state, -2, c"gsub".as_ptr());
        ffi::lua_settop(state, -2);
    }
}

/// In the place of LuaJIT's own, which it has behind the client. Errors pass through it: it has nothing to be dropped.
unsafe extern "C-unwind" fn gsub(state: *mut lua_State) -> c_int {
    // SAFETY: see `guard`.
    unsafe {
        let client: *const Client = ffi::lua_touserdata(state, ffi::lua_upvalueindex(1)).cast();
        match ffi::lua_tocfunction(state, ffi::lua_upvalueindex(2)) {
            Some(own) if stack_left_bytes(&*client) >= LEAST_LEFT_BYTES => own(state),
            _ => ffi::luaL_error(state, c"stack overflow".as_ptr()),
        }
    }
}

/// How much is left of the stack that a client's script runs on.
fn stack_left_bytes(client: &Client) -> usize {
    let here = 0_u8;
    let end = client.stack_end().unwrap_or_else(|| END_OF_THREAD.with(|end| *end));
    (&raw const here).addr().saturating_sub(end)
}

thread_local! {
    /// Where the thread's own stack ends: of scripts that are not on a fiber, as when they prepare.
    static END_OF_THREAD: usize = end_of_thread();
}

/// The lowest address of the thread's stack; 0 where the system does not tell.
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
