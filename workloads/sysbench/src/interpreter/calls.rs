//! Calls of a script's functions from outside.
//!
//! Each call is protected from the lookup of the function on. A script may have put anything in its place, and the
//! lookup may run code of the script that fails. Unprotected, that would end the process.

use std::ffi::c_int;
use std::ptr::NonNull;

use mlua::ffi::{self, lua_State};
use rumba_engine_api::worker::Pace;

use super::{Fill, Interpreter, Work};
use crate::declared;
use crate::failure::{Function, ScriptError};
use crate::fiber::Waits;

struct FunctionCall<'a> {
    /// The names on the path to the function, starting from the globals.
    path: &'a [&'a str],
    argument: Argument<'a>,
    /// Whether the answer was true; `None` if there was no answer.
    answer: Option<bool>,
}

/// A global function that is looked for.
struct Sought<'a> {
    function: &'a str,
    is_there: bool,
}

#[derive(Clone, Copy)]
enum Argument<'a> {
    Nothing,
    Number(f64),
    Text(&'a str),
}

impl Interpreter {
    /// Calls a function; returns whether its answer was true. The call may run on a fiber, which may be left in the
    /// middle. That is safe because no frames of mlua lie between, and the frames there have nothing to drop.
    fn fetch(&self, path: &[&str], argument: Argument<'_>) -> Result<Option<bool>, String> {
        let mut requested = FunctionCall { path, argument, answer: None };
        // SAFETY: the state is the interpreter's, and the call's data exists until the call has returned.
        let ended = unsafe { ffi::lua_cpcall(self.state.0, fetch, (&raw mut requested).cast()) };
        if ended == ffi::LUA_OK { Ok(requested.answer) } else { Err(self.take_words()) }
    }

    /// Takes an error's message from the stack.
    pub(super) fn take_words(&self) -> String {
        let mut length = 0;
        // SAFETY: the value is on the top of the stack; its text is copied before it is taken away.
        unsafe {
            let text = ffi::lua_tolstring(self.state.0, -1, &raw mut length);
            let words = if text.is_null() {
                "(not a string)".to_owned()
            } else {
                String::from_utf8_lossy(std::slice::from_raw_parts(text.cast(), length)).into_owned()
            };
            ffi::lua_settop(self.state.0, -2);
            words
        }
    }

    pub(super) fn require(&self, name: &str) -> Result<(), ScriptError> {
        match self.fetch(&["require"], Argument::Text(name)) {
            Ok(_) => Ok(()),
            Err(words) if words.starts_with("module ") => Err(ScriptError::NotFound(name.to_owned())),
            Err(words) => Err(ScriptError::Load(words)),
        }
    }

    /// Whether the script defines a global function; an error in the lookup counts as undefined. This may run on a
    /// fiber too, as above.
    pub fn has(&self, function: &str) -> bool {
        let mut sought = Sought { function, is_there: false };
        // SAFETY: the state is the interpreter's, and the lookup's data exists until the call has returned.
        let ended = unsafe { ffi::lua_cpcall(self.state.0, seek, (&raw mut sought).cast()) };
        if ended != ffi::LUA_OK {
            drop(self.take_words());
        }
        sought.is_there
    }

    /// Calls a function, with the client's number if it is a thread function; does nothing if the script does not
    /// define it.
    pub fn call(&self, function: Function) -> Result<(), ScriptError> {
        let name = function.name();
        if !self.has(name) {
            return Ok(());
        }
        let number = Argument::Number(f64::from(self.client.context.number));
        let argument = if function.is_of_thread() { number } else { Argument::Nothing };
        self.fetch(&[name], argument).map(drop).map_err(|words| ScriptError::Call { function, words })
    }

    /// Does the client's work.
    ///
    /// # Errors
    /// Any error that the script raised.
    pub(crate) fn run(&self, work: Work, pace: NonNull<dyn Pace>, waits: &Waits) -> Result<(), ScriptError> {
        let context = &self.client.context;
        context.begin(waits, pace, matches!(work, Work::Fill(_)));
        let ran = match work {
            Work::Events => self.call(Function::ThreadRun),
            Work::Fill(Fill::Function) => self.call(Function::Prepare),
            Work::Fill(Fill::Command) => self.call_prepare(),
        };
        context.give_event_up();
        let ended = match work {
            Work::Events => ran.and_then(|()| self.call(Function::ThreadDone)),
            Work::Fill(_) => ran.and_then(|()| {
                let function = Function::Prepare;
                self.client.end_load().map_err(|words| ScriptError::Call { function, words })
            }),
        };
        context.end();
        ended
    }

    fn call_prepare(&self) -> Result<(), ScriptError> {
        let raised = |words| ScriptError::Call { function: Function::Prepare, words };
        match self.fetch(&["sysbench", "cmdline", "call_command"], Argument::Text(Function::Prepare.name())) {
            Ok(Some(true)) => Ok(()),
            Ok(_) => Err(raised("it answered with false".to_owned())),
            Err(words) => Err(raised(words)),
        }
    }

    /// Calls a hook of `sysbench.hooks` with the figures of a report; false if there is no such hook.
    pub fn report(&self, hook: &str, stat: &[(&str, f64)]) -> Result<bool, ScriptError> {
        let reported =
            |error: mlua::Error| ScriptError::Hook { place: hook.to_owned(), words: declared::plain(&error) };
        let sysbench: mlua::Table = self.lua.globals().get("sysbench").map_err(reported)?;
        let hooks: mlua::Value = sysbench.get("hooks").map_err(reported)?;
        let Some(hooks) = hooks.as_table() else { return Ok(false) };
        let mlua::Value::Function(function) = hooks.get::<mlua::Value>(hook).map_err(reported)? else {
            return Ok(false);
        };
        // `report_json` writes an array for each hook.
        sysbench.set("reporting", hook).map_err(reported)?;
        let table = self.lua.create_table_from(stat.iter().copied()).map_err(reported)?;
        function.call::<()>(table).map_err(reported)?;
        Ok(true)
    }
}

/// Makes the call in a separate stack frame. Errors pass through it: it has nothing to be dropped.
unsafe extern "C-unwind" fn fetch(state: *mut lua_State) -> c_int {
    // SAFETY: the call's data exists until the call has returned, and has no other user meanwhile.
    unsafe {
        let requested: *mut FunctionCall<'_> = ffi::lua_touserdata(state, 1).cast();
        let FunctionCall { path, argument, .. } = *requested;
        ffi::lua_pushvalue(state, ffi::LUA_GLOBALSINDEX);
        for name in path {
            push(state, name);
            ffi::lua_gettable(state, -2);
        }
        match argument {
            Argument::Nothing => ffi::lua_pushnil(state),
            Argument::Number(number) => ffi::lua_pushnumber(state, number),
            Argument::Text(text) => push(state, text),
        }
        ffi::lua_call(state, 1, 1);
        (*requested).answer = match ffi::lua_type(state, -1) {
            ffi::LUA_TNIL => None,
            _ => Some(ffi::lua_toboolean(state, -1) != 0),
        };
    }
    0
}

/// Looks up a function in a separate stack frame, because the globals' metamethods may run any code.
unsafe extern "C-unwind" fn seek(state: *mut lua_State) -> c_int {
    // SAFETY: as above.
    unsafe {
        let sought: *mut Sought<'_> = ffi::lua_touserdata(state, 1).cast();
        push(state, (*sought).function);
        ffi::lua_gettable(state, ffi::LUA_GLOBALSINDEX);
        (*sought).is_there = ffi::lua_type(state, -1) == ffi::LUA_TFUNCTION;
    }
    0
}

unsafe fn push(state: *mut lua_State, text: &str) {
    // SAFETY: as the caller guarantees for the state.
    unsafe { ffi::lua_pushlstring(state, text.as_ptr().cast(), text.len()) };
}
