//! The objects that scripts hold by address: drivers, connections, histograms.

use std::cell::{Cell, RefCell, RefMut};
use std::ffi::{CStr, CString};
use std::ptr::null;

use crate::connection::{Connection, DriverHead};
use crate::context::ClientContext;
use crate::histograms::Histograms;
use crate::host::Rank;
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
        }
    }

    /// The script's histograms. No Lua code runs while one of their functions does.
    pub(crate) fn histograms(&self) -> RefMut<'_, Histograms> {
        self.histograms.borrow_mut()
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

    /// Makes a connection.
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
    }
}
