//! The functions that `api.lua` calls. Those that only differ in the method that they call are made by macros.
//!
//! They are called through FFI, which LuaJIT compiles into the script's own traces. Each receives pointers that api.lua
//! got from another of them. Scripts do not make up pointers, because a script is as trusted as the user who runs it.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::slice::from_raw_parts;

use crate::connection::{BoundStatement, Connection, DriverHead};
use crate::counters::Counter;
use crate::handles::{Found, Handles};
use crate::histograms::HistogramSlot;
use crate::host::Rank;
use crate::outcome::Outcome;
use crate::output;
use crate::random::Distribution;
use crate::rows::RowRoom;
use crate::statement::ParamHead;

/// Defines the table of these functions.
macro_rules! interface {
    ($($name:ident,)*) => {
        /// The addresses of `rumba_interface` of api.lua, and then of `rumba_own` of rumba.lua, which adds to it.
        const INTERFACE: &[*const c_void] = &[$($name as *const c_void),*];
    };
}

interface! {
    driver, connect, let_go, disconnect, reconnect, fail_again, query, prepare, let_go_statement, bind, execute, close,
    row, forget_rows, bulk_begin, bulk_add, bulk_add_numbers, bulk_end, load_begin, load_int, load_text, load_string,
    load_end, more_events, event_start, event_stop, count, rand_uint64, rand_double, rand_default, rand_uniform,
    rand_gaussian, rand_special, rand_pareto, rand_zipfian, rand_wide, rand_unique, rand_string, rand_varstring,
    histogram_new, histogram_let_go, histogram_update, histogram_print, alert, seldom, legacy, own,
    // `rumba_own` of rumba.lua.
    operation, counter, name_event, add_to_counter, add_logical_bytes, kv_open, kv_get, kv_put, kv_delete, kv_scan,
    kv_begin, kv_commit, kv_rollback, kv_value, kv_entry, kv_error,
}

/// Bytes until the next call: `rumba_bytes` of rumba.lua.
#[repr(C)]
struct Bytes {
    start: *const u8,
    length: usize,
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        Self { start: bytes.as_ptr(), length: bytes.len() }
    }
}

/// The address of the function table.
pub(crate) fn table() -> *const c_void {
    INTERFACE.as_ptr().cast()
}

// SAFETY of all functions below: see the head of this file.

unsafe extern "C" fn driver(client: *const Handles, name: *const c_char) -> *const DriverHead {
    let name = if name.is_null() { None } else { Some(unsafe { CStr::from_ptr(name) }) };
    unsafe { &*client }.driver(name.filter(|name| !name.is_empty()))
}

unsafe extern "C" fn connect(client: *const Handles, driver: *const DriverHead) -> *mut Connection {
    unsafe { &*client }.connect(driver)
}

/// Called when the interpreter collects the script's handle of a connection.
unsafe extern "C" fn let_go(client: *const Handles, connection: *mut Connection) -> bool {
    let is_closed = unsafe { &mut *connection }.let_go();
    unsafe { &*client }.take_back(connection);
    is_closed
}

/// Functions of a connection, each named after its method of `Connection`.
macro_rules! calls {
    ($($name:ident $(-> $answer:ty)?,)*) => {
        $(unsafe extern "C" fn $name(connection: *mut Connection) $(-> $answer)? {
            unsafe { &mut *connection }.$name()
        })*
    };
}

calls! {
    disconnect,
    reconnect -> Outcome,
    fail_again,
    forget_rows,
    bulk_end -> Outcome,
    load_end -> Outcome,
}

/// Functions of a connection that take a text, each named after its method of `Connection`.
macro_rules! calls_with_text {
    ($($name:ident,)*) => {
        $(unsafe extern "C" fn $name(connection: *mut Connection, text: *const u8, length: usize) -> Outcome {
            unsafe { (*connection).$name(from_raw_parts(text, length)) }
        })*
    };
}

calls_with_text! { query, bulk_begin, bulk_add, load_text, load_string, }

unsafe extern "C" fn prepare(connection: *mut Connection, sql: *const u8, length: usize) -> *mut BoundStatement {
    unsafe { (*connection).prepare(from_raw_parts(sql, length)) }
}

/// Called when the interpreter collects the script's handle of a statement.
unsafe extern "C" fn let_go_statement(client: *const Handles, statement: *mut BoundStatement) -> bool {
    let connection = unsafe { &*statement }.connection;
    let is_closed = unsafe { &mut *connection }.let_go_statement(statement);
    unsafe { &*client }.take_back(connection);
    is_closed
}

unsafe extern "C" fn bind(statement: *mut BoundStatement, params: *const *const ParamHead, count: u32) -> Outcome {
    unsafe {
        let statement = &mut *statement;
        match statement.bind(from_raw_parts(params, count as usize)) {
            true => (*statement.connection).prepare_bound(statement),
            false => Outcome::Done,
        }
    }
}

unsafe extern "C" fn execute(statement: *mut BoundStatement) -> Outcome {
    unsafe {
        let statement = &*statement;
        (*statement.connection).execute(statement)
    }
}

unsafe extern "C" fn close(statement: *mut BoundStatement) -> Outcome {
    let statement = unsafe { &mut *statement };
    match statement.forget() {
        Some(prepared) => unsafe { &mut *statement.connection }.close(prepared),
        None => Outcome::Done,
    }
}

unsafe extern "C" fn row(connection: *mut Connection, room: *mut RowRoom) -> u32 {
    unsafe { (*connection).fetch(room) }
}

unsafe extern "C" fn bulk_add_numbers(connection: *mut Connection, a: i64, b: i64) -> Outcome {
    unsafe { &mut *connection }.bulk_add_numbers([a, b])
}

unsafe extern "C" fn load_begin(
    connection: *mut Connection,
    table: *const u8,
    table_length: usize,
    columns: *const u8,
    columns_length: usize,
) -> Outcome {
    unsafe { (*connection).load_begin(from_raw_parts(table, table_length), from_raw_parts(columns, columns_length)) }
}

unsafe extern "C" fn load_int(connection: *mut Connection, value: i64) -> Outcome {
    unsafe { (*connection).load_int(value) }
}

unsafe extern "C" fn more_events(client: *const Handles) -> bool {
    unsafe { &(*client).context }.more_events()
}

unsafe extern "C" fn event_start(client: *const Handles) {
    unsafe { &(*client).context }.event_start();
}

unsafe extern "C" fn event_stop(client: *const Handles) {
    unsafe { &(*client).context }.event_stop();
}

unsafe extern "C" fn count(client: *const Handles, _thread: c_int, counter: c_int, number: u64) {
    // The count goes to this client, for any client that the script names, because the sum is the same.
    if let Some(counter) = Counter::of(counter) {
        unsafe { &(*client).context }.count_by(counter, number);
    }
}

unsafe extern "C" fn rand_uint64(client: *const Handles) -> u64 {
    unsafe { (*client).context.random().bits() }
}

unsafe extern "C" fn rand_double(client: *const Handles) -> f64 {
    unsafe { (*client).context.random().share() }
}

/// Functions that draw a number of a range, each named after its method of `Random`.
macro_rules! draws {
    ($($name:ident: $draw:ident,)*) => {
        $(unsafe extern "C" fn $name(client: *const Handles, a: u32, b: u32) -> u32 {
            unsafe { (*client).context.random().$draw(a, b) }
        })*
    };
}

draws! {
    rand_default: default,
    rand_uniform: uniform,
    rand_gaussian: gaussian,
    rand_special: special,
    rand_pareto: pareto,
    rand_zipfian: zipfian,
}

/// A number of a range that exceeds 32 bits. The kinds are the distributions in the order of their names, from 1; all
/// others are the default.
unsafe extern "C" fn rand_wide(client: *const Handles, kind: c_int, a: f64, b: f64) -> f64 {
    let random = unsafe { (*client).context.random() };
    let number = usize::try_from(kind).ok().and_then(|kind| kind.checked_sub(1));
    let distribution = number.and_then(|number| Distribution::NAMES.get(number).map(|(_, distribution)| *distribution));
    random.wide(distribution, a, b)
}

unsafe extern "C" fn rand_unique(client: *const Handles) -> u32 {
    unsafe { &(*client).context }.setup().unique.next()
}

unsafe extern "C" fn rand_string(client: *const Handles, format: *const u8, length: usize, out: *mut u8) {
    unsafe {
        (*client).context.random().string(from_raw_parts(format, length), std::slice::from_raw_parts_mut(out, length))
    }
}

unsafe extern "C" fn rand_varstring(client: *const Handles, out: *mut u8, least: u32, most: u32) -> u32 {
    if most == 0 {
        return 0;
    }
    let random = unsafe { (*client).context.random() };
    let length = random.uniform(if least > most { 1 } else { least }, most);
    random.characters(unsafe { std::slice::from_raw_parts_mut(out, length as usize) });
    length
}

unsafe extern "C" fn histogram_new(client: *const Handles, size: usize, least: f64, most: f64) -> *mut HistogramSlot {
    unsafe { &*client }.histograms().make(size, least, most)
}

/// Called when the interpreter collects the script's handle of a histogram.
unsafe extern "C" fn histogram_let_go(client: *const Handles, histogram: *mut HistogramSlot) {
    unsafe { (*client).histograms().let_go(histogram) }
}

unsafe extern "C" fn histogram_update(histogram: *mut HistogramSlot, value: f64) {
    unsafe { &mut *histogram }.record(value);
}

unsafe extern "C" fn histogram_print(histogram: *const HistogramSlot) {
    output::print(&unsafe { &*histogram }.text());
}

/// Reports an error that occurs where the script has no caller to handle it.
unsafe extern "C" fn alert(client: *const Handles, words: *const u8, length: usize) {
    let words = String::from_utf8_lossy(unsafe { from_raw_parts(words, length) });
    unsafe { &(*client).context }.host().log(Rank::Alert, &words);
}

/// The text that api.lua loads on demand.
unsafe extern "C" fn seldom() -> *const c_char {
    concat!(include_str!("lua/seldom.lua"), "\0").as_ptr().cast()
}

/// The text of the functions from before 1.0, also loaded on demand.
unsafe extern "C" fn legacy() -> *const c_char {
    concat!(include_str!("lua/legacy.lua"), "\0").as_ptr().cast()
}

/// The text of the table `rumba`, also loaded on demand.
unsafe extern "C" fn own() -> *const c_char {
    concat!(include_str!("lua/rumba.lua"), "\0").as_ptr().cast()
}

unsafe extern "C" fn operation(client: *const Handles, name: *const u8, length: usize) -> u32 {
    unsafe { (*client).context.operation(from_raw_parts(name, length)) }
}

unsafe extern "C" fn counter(client: *const Handles, name: *const u8, length: usize) -> u32 {
    unsafe { (*client).context.counter(from_raw_parts(name, length)) }
}

unsafe extern "C" fn name_event(client: *const Handles, operation: u32) {
    unsafe { &(*client).context }.name_event(operation);
}

unsafe extern "C" fn add_to_counter(client: *const Handles, counter: u32, number: f64) {
    unsafe { &(*client).context }.add_to_counter(counter, number as u64);
}

unsafe extern "C" fn add_logical_bytes(client: *const Handles, bytes: f64) {
    unsafe { &(*client).context }.add_logical_bytes(bytes as i64);
}

unsafe extern "C" fn kv_open(client: *const Handles) -> Found {
    unsafe { &*client }.open_key_values()
}

unsafe extern "C" fn kv_get(client: *const Handles, key: *const u8, length: usize, for_update: bool) -> Found {
    let key = unsafe { from_raw_parts(key, length) };
    unsafe { &*client }.key_values_call(|values, context| values.get(context, key, for_update))
}

unsafe extern "C" fn kv_put(
    client: *const Handles,
    key: *const u8,
    key_length: usize,
    value: *const u8,
    value_length: usize,
) -> Found {
    let (key, value) = unsafe { (from_raw_parts(key, key_length), from_raw_parts(value, value_length)) };
    unsafe { &*client }.key_values_call(|values, context| values.put(context, key, value).map(|()| true))
}

unsafe extern "C" fn kv_delete(client: *const Handles, key: *const u8, length: usize) -> Found {
    let key = unsafe { from_raw_parts(key, length) };
    unsafe { &*client }.key_values_call(|values, context| values.delete(context, key).map(|()| true))
}

unsafe extern "C" fn kv_scan(client: *const Handles, from: *const u8, length: usize, limit: u32) -> Found {
    let from = unsafe { from_raw_parts(from, length) };
    unsafe { &*client }.key_values_call(|values, context| Ok(values.scan(context, from, limit as usize)? > 0))
}

unsafe extern "C" fn kv_begin(client: *const Handles) -> Found {
    unsafe { &*client }.key_values_call(|values, context| values.begin(context).map(|()| true))
}

unsafe extern "C" fn kv_commit(client: *const Handles) -> Found {
    unsafe { &*client }.key_values_call(|values, context| values.commit(context).map(|()| true))
}

unsafe extern "C" fn kv_rollback(client: *const Handles) -> Found {
    unsafe { &*client }.key_values_call(|values, context| values.rollback(context).map(|()| true))
}

/// The value that was read last; valid until the next call.
unsafe extern "C" fn kv_value(client: *const Handles, out: *mut Bytes) {
    let value = unsafe { &*client }.key_values_result(|values| Bytes::from(values.value()));
    unsafe { *out = value.unwrap_or_else(|| Bytes::from(&[][..])) };
}

/// The key and value of an entry of the last scan; valid until the next call. False after the last entry.
unsafe extern "C" fn kv_entry(client: *const Handles, place: u32, out: *mut [Bytes; 2]) -> bool {
    let entry = unsafe { &*client }.key_values_result(|values| {
        values.entry(place as usize).map(|(key, value)| [Bytes::from(key), Bytes::from(value)])
    });
    let Some(entry) = entry.flatten() else { return false };
    unsafe { *out = entry };
    true
}

unsafe extern "C" fn kv_error(client: *const Handles, out: *mut Bytes) {
    unsafe { *out = Bytes::from((*client).key_values_error().as_bytes()) };
}
