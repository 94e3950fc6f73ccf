//! An interpreter: LuaJIT with sysbench's functions and a script, for one client.

mod calls;

use std::cell::{Cell, Ref, RefCell, RefMut, UnsafeCell};
use std::ffi::{CStr, CString, c_int};
use std::ptr::{NonNull, null};
use std::sync::Arc;
use std::task::{Context, Poll};

use mlua::Lua;
use mlua::ffi::{self, lua_State};
use rumba_engine_api::conflict::tried_again;
use rumba_engine_api::error::{EngineError, ErrorCode};
use rumba_engine_api::sql::Answer;
use rumba_engine_api::worker::{Op, Pace};

use crate::bundled;
use crate::connection::{Connection, DriverHead};
use crate::counters::{Counter, Counters};
use crate::depth;
use crate::executable;
use crate::failure::ScriptError;
use crate::fiber::{Waits, wait_alone};
use crate::gaps::found_no_row;
use crate::histograms::Histograms;
use crate::host::Host;
use crate::interface;
use crate::memory;
use crate::places::Places;
use crate::random::Random;
use crate::setup::{Script, Setup};

const API: &str = include_str!("lua/api.lua");
/// The only operation type of a script.
const EVENT: usize = 0;

/// The program's side of an interpreter: the state that its functions use.
pub(crate) struct Client {
    setup: RefCell<Arc<Setup>>,
    number: u32,
    counters: Arc<Counters>,
    random: UnsafeCell<Random>,
    drivers: Vec<Driver>,
    connections: RefCell<Places<Connection>>,
    /// How many connections the script has made.
    connected: Cell<u32>,
    /// Those connections that the script has released.
    spare: RefCell<Vec<*mut Connection>>,
    histograms: RefCell<Histograms>,
    waits: Cell<*const Waits>,
    pace: Cell<Option<NonNull<dyn Pace>>>,
    /// How often the current event was restarted.
    restarts: Cell<u32>,
    is_in_event: Cell<bool>,
    /// The statement counts when the event began.
    before_event: Cell<[u64; 3]>,
    /// Statements are operations of a load.
    is_load: Cell<bool>,
}

struct Driver {
    head: Box<DriverHead>,
    name: CString,
    _about: CString,
}

impl Client {
    pub(crate) fn host(&self) -> Arc<dyn Host> {
        self.setup.borrow().host.clone()
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    #[inline]
    pub(crate) fn count(&self, counter: Counter) {
        self.counters.count(counter);
    }

    /// Adds a number to a counter.
    pub(crate) fn count_by(&self, counter: Counter, number: u64) {
        self.counters.count_by(counter, number);
    }

    pub(crate) fn setup(&self) -> Ref<'_, Arc<Setup>> {
        self.setup.borrow()
    }

    /// The script's histograms. No Lua code runs while one of their functions does.
    pub(crate) fn histograms(&self) -> RefMut<'_, Histograms> {
        self.histograms.borrow_mut()
    }

    /// The client's random numbers.
    ///
    /// # Safety
    /// No other reference to them exists; only the interpreter's functions use them, one at a time.
    #[inline]
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn random(&self) -> &mut Random {
        // SAFETY: as above.
        unsafe { &mut *self.random.get() }
    }

    /// Waits for an answer: on a fiber, other clients continue; otherwise the whole thread waits.
    #[inline]
    pub(crate) fn wait<T>(&self, poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
        // SAFETY: it is set for as long as the fiber's work lasts, and this is a part of it.
        match unsafe { self.waits.get().as_ref() } {
            Some(waits) => waits.wait(poll),
            None => wait_alone(poll),
        }
    }

    /// The end of the stack that the script runs on, if it is a fiber's.
    pub(crate) fn stack_end(&self) -> Option<usize> {
        // SAFETY: as above.
        unsafe { self.waits.get().as_ref() }.map(Waits::stack_end)
    }

    /// Notes an error for the report.
    #[cold]
    pub(crate) fn failed(&self, error: &EngineError) {
        self.restarts.set(self.restarts.get() + 1);
        tried_again(error);
        let code = match error {
            EngineError::CutOff(_) | EngineError::Lost(_) => "connection lost".to_owned(),
            other if other.code() == ErrorCode::NONE => "without a code".to_owned(),
            other => other.code().to_string(),
        };
        self.counters.error(code);
    }

    /// The driver with this name, or the default one.
    pub(crate) fn driver(&self, name: Option<&CStr>) -> *const DriverHead {
        self.host().driver_requested();
        let driver = match name {
            Some(name) => self.drivers.iter().find(|driver| driver.name.as_c_str() == name),
            None => self.host().default_driver().and_then(|driver| self.drivers.get(driver)),
        };
        driver.map_or(null(), |driver| &raw const *driver.head)
    }

    /// Makes a connection.
    pub(crate) fn connect(&self, driver: *const DriverHead) -> *mut Connection {
        let number =
            self.drivers.iter().position(|known| std::ptr::eq(&raw const *known.head, driver)).unwrap_or_default();
        let turn = self.connected.replace(self.connected.get().wrapping_add(1));
        let spare = self.spare.borrow_mut().pop();
        let connection = spare.unwrap_or_else(|| Connection::put(&mut self.connections.borrow_mut(), self));
        // SAFETY: connections exist until the client ends, and this one has no other user.
        unsafe { (*connection).open(driver, number, turn) };
        connection
    }

    /// Keeps the place of a closed connection for the next one.
    pub(crate) fn take_back(&self, connection: *mut Connection) {
        self.spare.borrow_mut().push(connection);
    }

    /// Closes all connections; their last answers are no longer needed.
    fn shut(&self) {
        for connection in self.connections.borrow().addresses() {
            // SAFETY: connections exist until the client ends, and a caller that was in the middle of a call is gone.
            unsafe { (*connection).shut() };
        }
    }

    /// Waits for the next event's turn; false if there are no more events.
    pub(crate) fn more_events(&self) -> bool {
        let Some(mut pace) = self.pace.get() else { return false };
        if !self.setup.borrow().events.take() {
            return false;
        }
        // SAFETY: the pace lives as long as the run that set it, and only this client uses it.
        let pace = unsafe { pace.as_mut() };
        self.wait(|context| pace.poll_turn(context))
    }

    /// In a load, begins a statement as an operation.
    ///
    /// # Errors
    /// The load must end.
    #[inline]
    pub(crate) fn statement_begins(&self) -> Result<(), EngineError> {
        if self.is_load.get() { self.load_begins() } else { Ok(()) }
    }

    fn load_begins(&self) -> Result<(), EngineError> {
        let Some(mut pace) = self.pace.get() else { return Ok(()) };
        // SAFETY: the pace lives as long as the run that set it, and only this client uses it.
        let pace = unsafe { pace.as_mut() };
        if !self.wait(|context| pace.poll_turn(context)) {
            return Err(EngineError::failed("prepare", "the load was ended before the script had done"));
        }
        self.is_in_event.set(true);
        self.before_event.set(self.counters.statements());
        pace.start(EVENT);
        Ok(())
    }

    /// Counts a statement that looked for rows and found none. In a load, ends the operation.
    #[inline]
    pub(crate) fn statement_answered(&self, answer: &Answer, sql: &[u8], is_counted: bool) {
        if found_no_row(answer, sql) {
            self.counters.count_not_found();
        }
        self.statement_done(answer.affected, is_counted);
    }

    /// In a load, ends the operation: the statement wrote this many rows, and their bytes were counted or not.
    #[inline]
    pub(crate) fn statement_done(&self, rows: u64, is_counted: bool) {
        if self.is_load.get() {
            if rows > 0 && !is_counted {
                self.counters.note_uncounted();
            }
            self.load_done(rows);
        }
    }

    fn load_done(&self, rows: u64) {
        let Some(mut pace) = self.pace.get() else { return };
        if self.is_in_event.replace(false) {
            // SAFETY: as above.
            let pace = unsafe { pace.as_mut() };
            pace.statements(EVENT, self.counters.statements_since(self.before_event.get()));
            pace.done(EVENT, Op { rows, ..Op::default() });
        }
    }

    /// In a load, counts the bytes to be written.
    #[inline]
    pub(crate) fn loaded(&self, bytes: u64) {
        if self.is_load.get() {
            self.counters.count_by(Counter::BytesWritten, bytes);
        }
    }

    /// Whether an event is under way.
    pub(crate) fn is_in_event(&self) -> bool {
        self.is_in_event.get()
    }

    pub(crate) fn event_start(&self) {
        let Some(mut pace) = self.pace.get() else { return };
        self.restarts.set(0);
        self.is_in_event.set(true);
        self.before_event.set(self.counters.statements());
        // SAFETY: as above.
        unsafe { pace.as_mut() }.start(EVENT);
    }

    pub(crate) fn event_stop(&self) {
        let Some(mut pace) = self.pace.get() else { return };
        if self.is_in_event.replace(false) {
            let op = Op { rows: 0, retries: self.restarts.get(), failed: false };
            let statements = self.counters.statements_since(self.before_event.get());
            // SAFETY: as above.
            let pace = unsafe { pace.as_mut() };
            pace.statements(EVENT, statements);
            self.counters.event(pace.done(EVENT, op));
        }
    }
}

/// The work of a client.
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
    /// By its command `prepare`.
    Command,
    /// By its function `prepare`.
    Function,
}

/// An interpreter with its script loaded.
pub struct Interpreter {
    // Drop order: first mlua's side of the state, then the state, then the client. The final collection calls functions
    // that need the client.
    lua: Lua,
    state: State,
    client: Box<Client>,
}

/// A client may be left in the middle of an event: its fiber is gone, and a finaliser has no way to wait. A `__gc` that
/// sent a statement then would take the event's missing answer for its own.
impl Drop for Interpreter {
    fn drop(&mut self) {
        if !self.client.waits.replace(null()).is_null() {
            self.client.shut();
        }
        self.client.pace.set(None);
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
        let drivers = setup.host.drivers().iter().map(|driver| {
            let text = |text: &str| CString::new(text).unwrap_or_default();
            let (name, about) = (text(driver.name), text(driver.about));
            let head = Box::new(DriverHead { sname: name.as_ptr(), lname: about.as_ptr() });
            Driver { head, name, _about: about }
        });
        let client = Box::new(Client {
            number,
            counters,
            random: UnsafeCell::new(Random::new(setup.seed, number, setup.shapes)),
            drivers: drivers.collect(),
            connections: RefCell::default(),
            connected: Cell::new(0),
            spare: RefCell::default(),
            histograms: RefCell::default(),
            waits: Cell::new(null()),
            pace: Cell::new(None),
            restarts: Cell::new(0),
            is_in_event: Cell::new(false),
            before_event: Cell::default(),
            is_load: Cell::new(false),
            setup: RefCell::new(setup.clone()),
        });
        let state = State::new().ok_or_else(|| ScriptError::Load("not enough memory".to_owned()))?;
        // SAFETY: scripts may call anything, as in sysbench: they are the user's own. The state is closed when nothing
        // refers to it any more. A state of mlua's own would have a `pcall` of mlua's, which is not compiled into
        // traces; this one has Lua's. Panics do not cross Lua: functions that it calls here do not unwind.
        let lua = unsafe {
            depth::guard(state.0, &raw const *client);
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
        let (lua, setup) = (&self.lua, self.client.setup().clone());
        if !executable::is_allowed() {
            // Compiled code would end the process, also that of a script that calls `jit.on`.
            lua.load("jit.off() jit.on = jit.off").set_name("=sysbench").exec()?;
        }
        if let Some(command) = &setup.luajit_command {
            lua.load(include_str!("lua/jit.lua")).set_name("=luajit-cmd").call::<()>(command.as_str())?;
        }
        let known = lua.create_table()?;
        known.set("tid", self.client.number)?;
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
        lua.load(API).set_name("=sysbench").call::<()>((table, client, known))?;
        bundled::provide(lua)
    }

    /// Runs the script's text, which defines its functions.
    fn load(&self) -> Result<(), ScriptError> {
        match &self.client.setup().clone().script {
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
        self.client.setup.replace(setup.clone());
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

    /// The setup of the interpreter.
    pub(crate) fn setup(&self) -> Arc<Setup> {
        self.client.setup().clone()
    }

    /// The interpreter itself, for uses outside of the load.
    pub fn lua(&self) -> &Lua {
        &self.lua
    }
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
