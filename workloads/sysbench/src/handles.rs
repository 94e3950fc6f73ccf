//! The objects that scripts hold by address: drivers, connections, histograms.

use std::cell::{Cell, RefCell, RefMut, UnsafeCell};
use std::ffi::{CStr, CString};
use std::ptr::null;

use rumba_engine_api::error::Result;

use crate::connection::{Connection, DriverHead};
use crate::context::ClientContext;
use crate::counters::Counter;
use crate::histograms::Histograms;
use crate::host::Rank;
use crate::key_values::KeyValues;
use crate::places::Places;

/// A client with everything that its script holds.
pub(crate) struct Handles {
    pub(crate) context: ClientContext,
    drivers: Vec<Driver>,
    connections: RefCell<Places<Connection>>,
    /// How many connections the script has made.
    connected: Cell<u32>,
    /// Those connections that the script has released.
    spare: RefCell<Vec<*mut Connection>>,
    histograms: RefCell<Histograms>,
    /// A `RefCell` would stay borrowed when a client is dropped in the middle of a call.
    key_values: UnsafeCell<KeyValuesSlot>,
}

/// A client's keys and values, once its script has requested them, and the last error.
#[derive(Default)]
struct KeyValuesSlot {
    open: Option<Box<KeyValues>>,
    error: String,
}

/// The outcome of a call for keys and values, as rumba.lua knows it.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Done, and the key is absent.
    No,
    /// Done, and the key is present if there is one.
    Yes,
    /// The run ends with an error.
    Failed,
    /// Another transaction was in the way: the event is restarted.
    Restart,
}

struct Driver {
    head: Box<DriverHead>,
    name: CString,
    _about: CString,
}

impl Handles {
    pub(crate) fn new(context: ClientContext) -> Self {
        let host = context.host();
        let drivers = host.drivers().iter().map(|driver| {
            let text = |text: &str| CString::new(text).unwrap_or_default();
            let (name, about) = (text(driver.name), text(driver.title));
            let head = Box::new(DriverHead { sname: name.as_ptr(), lname: about.as_ptr() });
            Driver { head, name, _about: about }
        });
        Self {
            drivers: drivers.collect(),
            context,
            connections: RefCell::default(),
            connected: Cell::new(0),
            spare: RefCell::default(),
            histograms: RefCell::default(),
            key_values: UnsafeCell::default(),
        }
    }

    /// The script's histograms. No Lua code runs while one of their functions does.
    pub(crate) fn histograms(&self) -> RefMut<'_, Histograms> {
        self.histograms.borrow_mut()
    }

    #[expect(clippy::mut_from_ref, reason = "one caller at a time")]
    fn key_values(&self) -> &mut KeyValuesSlot {
        // SAFETY: a client runs on one thread, and its script makes one call at a time: no call runs Lua code. A call that
        // the client was dropped in never continues.
        unsafe { &mut *self.key_values.get() }
    }

    /// Takes the client's keys and values from the program, if the script has not done so yet.
    pub(crate) fn open_key_values(&self) -> Found {
        let slot = self.key_values();
        if slot.open.is_some() {
            return Found::Yes;
        }
        let session = self.context.host().key_values(self.context.number);
        match session.and_then(KeyValues::new) {
            Ok(opened) => {
                slot.open = Some(Box::new(opened));
                Found::Yes
            }
            Err(error) => {
                slot.error = error.to_string();
                Found::Failed
            }
        }
    }

    /// Makes a call for keys and values. After a conflict, the transaction is rolled back.
    pub(crate) fn key_values_call(&self, call: impl FnOnce(&mut KeyValues, &ClientContext) -> Result<bool>) -> Found {
        let slot = self.key_values();
        let Some(open) = &mut slot.open else { return Found::Failed };
        match call(open, &self.context) {
            Ok(true) => Found::Yes,
            Ok(false) => Found::No,
            Err(error) => {
                slot.error = error.to_string();
                self.context.count(Counter::Error);
                self.context.failed(&error);
                // A load is not restarted.
                let is_restarted = error.is_conflict() && !self.context.is_load();
                // The rollback waits, and a client that is dropped there would leave the memory of the error.
                drop(error);
                // The first error is more useful than a second one.
                let _ = open.rollback(&self.context);
                if is_restarted { Found::Restart } else { Found::Failed }
            }
        }
    }

    pub(crate) fn key_values_result<T>(&self, read: impl FnOnce(&KeyValues) -> T) -> Option<T> {
        self.key_values().open.as_deref().map(read)
    }

    /// The error of the last call that failed.
    pub(crate) fn key_values_error(&self) -> &str {
        &self.key_values().error
    }

    /// Sends the rest of a load.
    pub(crate) fn end_load(&self) -> Result<(), String> {
        match &mut self.key_values().open {
            Some(open) => open.flush(&self.context).map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }

    /// The driver with this name, or the default one.
    pub(crate) fn driver(&self, name: Option<&CStr>) -> *const DriverHead {
        self.context.host().driver_requested();
        let driver = match name {
            Some(name) => {
                let found = self.drivers.iter().find(|driver| driver.name.as_c_str() == name);
                if found.is_none() {
                    let words = format!("invalid database driver name: '{}'", name.to_string_lossy());
                    self.context.host().log(Rank::Fatal, &words);
                }
                found
            }
            None => self.context.host().default_driver().and_then(|driver| self.drivers.get(driver)),
        };
        driver.map_or(null(), |driver| &raw const *driver.head)
    }

    pub(crate) fn connect(&self, driver: *const DriverHead) -> *mut Connection {
        let number =
            self.drivers.iter().position(|known| std::ptr::eq(&raw const *known.head, driver)).unwrap_or_default();
        let turn = self.connected.replace(self.connected.get().wrapping_add(1));
        let spare = self.spare.borrow_mut().pop();
        let connection = spare.unwrap_or_else(|| Connection::put(&mut self.connections.borrow_mut(), &self.context));
        // SAFETY: connections exist until the client ends, and this one has no other user.
        unsafe { (*connection).open(driver, number, turn) };
        connection
    }

    /// Keeps the place of a closed connection for the next one, if it has just become free.
    pub(crate) fn take_back(&self, connection: *mut Connection) {
        // SAFETY: connections exist until the client ends, and no caller is in the middle of a call of this one.
        if unsafe { &mut *connection }.takes_leave() {
            self.spare.borrow_mut().push(connection);
        }
    }

    /// Closes all connections; their last answers are no longer needed.
    pub(crate) fn shut(&self) {
        for connection in self.connections.borrow().addresses() {
            // SAFETY: connections exist until the client ends, and a caller that was in the middle of a call is gone.
            unsafe { (*connection).shut() };
        }
        *self.key_values() = KeyValuesSlot { open: None, error: "the run has ended".to_owned() };
    }
}
