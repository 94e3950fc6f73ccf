//! An interpreter: LuaJIT with sysbench's functions and a script, for one client.

mod calls;

use std::ffi::{CString, c_int};
use std::ptr::null;
use std::sync::{Arc, OnceLock};

use mlua::Lua;
use mlua::ffi::{self, lua_State};

use crate::bundled;
use crate::context::ClientContext;
use crate::counters::Counters;
use crate::depth;
use crate::executable;
use crate::failure::ScriptError;
use crate::handles::Handles;
use crate::interface;
use crate::memory;
use crate::setup::{Script, Setup};

const API: &str = include_str!("lua/api.lua");
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// The script's events, then its end function.
    Events,
    /// Filling the database, each statement an operation.
    Fill(Fill),
}

/// How a script fills the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    Command,
    Function,
}

/// An interpreter with its script loaded.
pub struct Interpreter {
    // Drop order: first mlua's side of the state, then the state, then the client. The final collection calls functions
    // that need the client.
    lua: Lua,
    state: State,
    client: Box<Handles>,
}

/// A client may be left in the middle of an event: its fiber is gone, and a finaliser has no way to wait. A `__gc` that
/// sent a statement then would take the event's missing answer for its own.
impl Drop for Interpreter {
    fn drop(&mut self) {
        if self.client.context.end() {
            self.client.shut();
        }
    }
}

/// LuaJIT's own state, with all libraries; dropped, it is closed.
struct State(*mut lua_State);

impl State {
    /// A state in the thread's memory (`crate::memory`); `None` if there is no memory.
    fn new() -> Option<Self> {
        // SAFETY: the function follows LuaJIT's rules. Libraries raise only an out-of-memory error, which ends the
        // program, as it does elsewhere.
        unsafe {
            let state = ffi::lua_newstate(memory::allocate, std::ptr::null_mut());
            if state.is_null() {
                return None;
            }
            ffi::lua_gc(state, ffi::LUA_GCSTOP, 0);
            ffi::luaL_openlibs(state);
            ffi::lua_gc(state, ffi::LUA_GCRESTART, -1);
            Some(Self(state))
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // SAFETY: it is open, and its users are gone.
        unsafe { ffi::lua_close(self.0) };
    }
}

impl Interpreter {
    /// An interpreter for a client, with the script loaded and its options set.
    ///
    /// # Errors
    /// The script is missing, or cannot be loaded.
    pub fn new(setup: &Arc<Setup>, number: u32, counters: Arc<Counters>) -> Result<Self, ScriptError> {
        let client = Box::new(Handles::new(ClientContext::new(setup, number, counters)));
        let state = State::new().ok_or_else(|| ScriptError::Load("not enough memory".to_owned()))?;
        // SAFETY: scripts may call anything, as in sysbench: they are the user's own. The state is closed when nothing
        // refers to it any more. A state of mlua's own would have a `pcall` of mlua's, which is not compiled into
        // traces; this one has Lua's. Panics do not cross Lua: functions that it calls here do not unwind.
        let lua = unsafe {
            depth::guard(state.0, &raw const client.context);
            Lua::get_or_init_from_ptr(state.0).clone()
        };
        let interpreter = Self { lua, state, client };
        interpreter.provide().map_err(unexpected)?;
        interpreter.load()?;
        interpreter.set_options().map_err(unexpected)?;
        Ok(interpreter)
    }

    /// Sets up the globals of scripts.
    fn provide(&self) -> mlua::Result<()> {
        let (lua, setup) = (&self.lua, self.client.context.setup().clone());
        if !executable::is_allowed() {
            // Compiled code would end the process, also that of a script that calls `jit.on`.
            lua.load("jit.off() jit.on = jit.off").set_name("=sysbench").exec()?;
        }
        if let Some(command) = &setup.luajit_command {
            lua.load(include_str!("lua/jit.lua")).set_name("=luajit-cmd").call::<()>(command.as_str())?;
        }
        let known = lua.create_table()?;
        known.set("tid", self.client.context.number)?;
        known.set("version", setup.version.as_str())?;
        known.set("version_string", format!("sysbench {}", setup.version))?;
        known.set("command", setup.command.as_deref())?;
        known.set("script_path", setup.script.path())?;
        known.set("is_quiet", setup.is_quiet)?;
        let argv = lua.create_table()?;
        for (number, word) in setup.argv.iter().enumerate() {
            argv.set(number, word.as_str())?;
        }
        known.set("argv", argv)?;
        let address = |address: *const std::ffi::c_void| mlua::LightUserData(address.cast_mut());
        let (table, client) = (address(interface::table()), address((&raw const *self.client).cast()));
        api(lua)?.call::<()>((table, client, known))?;
        bundled::provide(lua)
    }

    /// Runs the script's text, which defines its functions.
    fn load(&self) -> Result<(), ScriptError> {
        match &self.client.context.setup().clone().script {
            Script::Text { name, text } => {
                let text = without_shebang(text);
                let chunk = CString::new(format!("={name}")).unwrap_or_default();
                // SAFETY: the buffer outlives the call, and the next call takes the pushed value.
                let loaded = unsafe {
                    ffi::luaL_loadbufferx(self.state.0, text.as_ptr().cast(), text.len(), chunk.as_ptr(), null())
                };
                self.finish_load(loaded)
            }
            Script::Named(name) if std::path::Path::new(name).is_file() => {
                let file = CString::new(name.as_str()).unwrap_or_default();
                // SAFETY: as above.
                let loaded = unsafe { ffi::luaL_loadfile(self.state.0, file.as_ptr()) };
                self.finish_load(loaded)
            }
            Script::Named(name) => self.require(name),
        }
    }

    fn finish_load(&self, loaded: c_int) -> Result<(), ScriptError> {
        if loaded != ffi::LUA_OK {
            return Err(ScriptError::Load(self.take_words()));
        }
        // SAFETY: the chunk is on the stack.
        match unsafe { ffi::lua_pcall(self.state.0, 0, 0, 0) } {
            ffi::LUA_OK => Ok(()),
            _ => Err(ScriptError::Load(self.take_words())),
        }
    }

    /// Adopts the values of all options, once they are known. Random numbers continue from where they were.
    ///
    /// # Errors
    /// The interpreter has no memory.
    pub fn adopt(&self, setup: &Arc<Setup>) -> Result<(), ScriptError> {
        self.client.context.adopt(setup);
        self.set_options().map_err(unexpected)
    }

    /// Sets the text that `sysbench.cmdline.print_test_options` prints.
    ///
    /// # Errors
    /// The interpreter has no memory.
    pub fn describe_options(&self, text: &str) -> Result<(), ScriptError> {
        let sysbench: mlua::Table = self.lua.globals().get("sysbench").map_err(unexpected)?;
        let cmdline: mlua::Table = sysbench.get("cmdline").map_err(unexpected)?;
        cmdline.set("test_options", text).map_err(unexpected)
    }

    /// Frees the garbage of loading, a third of an interpreter, so that the thread's next interpreter can reuse it.
    /// LuaJIT would only do so once twice as much is in use, which a script without allocations never reaches.
    pub(crate) fn tidy_up(&self) {
        // An error of a finaliser does not concern the caller; the rest is collected as usual.
        let _ = self.lua.gc_collect();
    }

    pub(crate) fn setup(&self) -> Arc<Setup> {
        self.client.context.setup().clone()
    }

    /// The interpreter itself, for uses outside of the load.
    pub fn lua(&self) -> &Lua {
        &self.lua
    }
}

/// The function that defines sysbench's, compiled once for all interpreters. Names of variables and numbers of lines are
/// left out, because each client would have them.
fn api(lua: &Lua) -> mlua::Result<mlua::Function> {
    static COMPILED: OnceLock<Vec<u8>> = OnceLock::new();
    let load: mlua::Function = lua.globals().get("loadstring")?;
    if COMPILED.get().is_none() {
        let source = load.call::<mlua::Function>((API, "=sysbench"))?;
        let dump: mlua::Function = lua.globals().get::<mlua::Table>("string")?.get("dump")?;
        let compiled: mlua::String = dump.call((source, true))?;
        // Another interpreter may have been first, with the same.
        let _ = COMPILED.set(compiled.as_bytes().to_vec());
    }
    load.call(lua.create_string(COMPILED.get().map_or(&[][..], Vec::as_slice))?)
}

/// An error in the interpreter's own setup.
fn unexpected(error: mlua::Error) -> ScriptError {
    ScriptError::Load(error.to_string())
}

/// A text without the name of an interpreter in its first line; the line itself stays, so that line numbers are right.
fn without_shebang(text: &[u8]) -> &[u8] {
    if !text.starts_with(b"#") {
        return text;
    }
    text.iter().position(|&byte| byte == b'\n').map_or(&[], |end| &text[end..])
}
