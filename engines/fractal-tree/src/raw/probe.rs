//! Whether the library's structures are those that `ffi` declares.
//!
//! Every PerconaFT of a decade says 4.6.119, whatever stands in its structs of function pointers. So an environment is
//! made, and looked at before anything in it is called: what should be a function is one of the library's own, what the
//! library leaves null is null, and its members are as many as declared. Then what is set is read back. Databases,
//! transactions and cursors each hold a pointer back to what they are of, and that must be where it is declared.

use std::ffi::c_int;
use std::mem::{offset_of, size_of};
use std::ptr::null_mut;

use super::ffi::{Db, DbEnv, DbTxn, Dbc, EnvCreate};

const WORD: usize = size_of::<usize>();
const MEMBERS: usize = size_of::<DbEnv>() / WORD;

/// Members that are null in an environment that was just made; all others but the first are functions.
const NULL: [usize; 4] = [
    offset_of!(DbEnv, get_redzone) / WORD,
    offset_of!(DbEnv, app_private) / WORD,
    offset_of!(DbEnv, api1_internal) / WORD,
    offset_of!(DbEnv, get_flags) / WORD,
];

/// Makes an environment, looks at it and closes it.
///
/// # Errors
/// What is not as declared.
pub fn environment(create: EnvCreate, is_function: &dyn Fn(usize) -> bool) -> Result<(), &'static str> {
    let mut env = null_mut();
    // SAFETY: it takes a place for the environment and no flags, as Berkeley DB's function of this name does.
    if unsafe { create(&mut env, 0) } != 0 || env.is_null() {
        return Err("db_env_create makes no environment");
    }
    // SAFETY: the library has just allocated it with malloc.
    if unsafe { libc::malloc_usable_size(env.cast()) } < size_of::<DbEnv>() {
        return Err("DB_ENV has fewer members");
    }
    // SAFETY: so many bytes are there, and the library has set all of them.
    let members = unsafe { std::slice::from_raw_parts(env.cast::<usize>(), MEMBERS) };
    // In this order: a call is safe only after the look. What is not as declared stays open.
    look(members, is_function)?;
    // SAFETY: the members are where they are declared.
    let done = unsafe { read_back(&mut *env) };
    // SAFETY: as above; it was never opened.
    unsafe { ((*env).close)(env, 0) };
    done
}

/// Whether functions are where functions should be, and nothing else.
fn look(members: &[usize], is_function: &dyn Fn(usize) -> bool) -> Result<(), &'static str> {
    for (position, &member) in members.iter().enumerate().skip(1) {
        let is_null = NULL.contains(&position);
        if is_null != (member == 0) {
            return Err("DB_ENV has other members, or in another order");
        }
        if !is_null && !is_function(member) {
            return Err("DB_ENV holds what is no function of the library");
        }
    }
    Ok(())
}

/// Whether what is set comes back: neighbours in the order would be told apart.
///
/// # Safety
/// The members that are used are functions.
unsafe fn read_back(env: &mut DbEnv) -> Result<(), &'static str> {
    let (mut gigabytes, mut bytes, mut caches, mut length, mut timeout) = (0, 0, 0 as c_int, 0, 0);
    // SAFETY: each is called with the arguments of its type, before the environment is opened.
    unsafe {
        (env.set_cachesize)(env, 1, 4096, 1);
        (env.get_cachesize)(env, &mut gigabytes, &mut bytes, &mut caches);
        (env.set_lg_max)(env, 1 << 20);
        (env.get_lg_max)(env, &mut length);
        (env.set_lock_timeout)(env, 1234, None);
        (env.get_lock_timeout)(env, &mut timeout);
    }
    match (gigabytes, bytes, length, timeout) {
        (1, 4096, 0x10_0000, 1234) => Ok(()),
        _ => Err("what is set in a DB_ENV does not come back"),
    }
}

/// Whether a database knows its environment.
///
/// # Safety
/// The library has just made it.
pub unsafe fn database(db: *mut Db, env: *mut DbEnv) -> Result<(), &'static str> {
    // SAFETY: the caller's; another layout is larger or smaller by some members, of which the allocation has room.
    let is_known = unsafe { libc::malloc_usable_size(db.cast()) >= size_of::<Db>() && (*db).dbenv == env };
    if is_known { Ok(()) } else { Err("DB has other members, or in another order") }
}

/// Whether a transaction knows its environment.
///
/// # Safety
/// The library has just made it.
pub unsafe fn transaction(txn: *mut DbTxn, env: *mut DbEnv) -> Result<(), &'static str> {
    // SAFETY: the caller's.
    if unsafe { (*txn).mgrp == env } { Ok(()) } else { Err("DB_TXN has other members, or in another order") }
}

/// Whether a cursor knows its database.
///
/// # Safety
/// The library has just made it.
pub unsafe fn cursor(cursor: *mut Dbc, db: *mut Db) -> Result<(), &'static str> {
    // SAFETY: the caller's.
    if unsafe { (*cursor).dbp == db } { Ok(()) } else { Err("DBC has other members, or in another order") }
}
