//! Checks that the library's structs match the declarations in `ffi`.
//!
//! For a decade every PerconaFT has reported version 4.6.119, although the structs of function pointers differ.
//! Therefore the probe creates an environment and inspects it before calling any of its members. Function members must
//! point into the library, members that the library leaves null must be null, and the number of members must match.
//! Then settings are set and read back. Databases, transactions and cursors each hold a pointer to their parent, which
//! must be at the declared place.

use std::ffi::c_int;
use std::mem::{offset_of, size_of};
use std::ptr::null_mut;

use super::ffi::{Db, DbEnv, DbTxn, Dbc, EnvCreate};

const WORD: usize = size_of::<usize>();
const MEMBERS: usize = size_of::<DbEnv>() / WORD;

/// Members that are null in a new environment. All others except the first are functions.
const NULL: [usize; 4] = [
    offset_of!(DbEnv, get_redzone) / WORD,
    offset_of!(DbEnv, app_private) / WORD,
    offset_of!(DbEnv, api1_internal) / WORD,
    offset_of!(DbEnv, get_flags) / WORD,
];

/// Creates an environment, inspects it and closes it.
///
/// # Errors
/// The difference from the declarations.
pub fn environment(create: EnvCreate, is_function: &dyn Fn(usize) -> bool) -> Result<(), &'static str> {
    let mut env = null_mut();
    // SAFETY: the function takes a pointer for the new environment and no flags, as Berkeley DB's does.
    if unsafe { create(&mut env, 0) } != 0 || env.is_null() {
        return Err("db_env_create makes no environment");
    }
    // SAFETY: the library has just allocated it with malloc.
    if unsafe { libc::malloc_usable_size(env.cast()) } < size_of::<DbEnv>() {
        return Err("DB_ENV has fewer members");
    }
    // SAFETY: the allocation has at least this size, and the library has initialized all of it.
    let members = unsafe { std::slice::from_raw_parts(env.cast::<usize>(), MEMBERS) };
    // Keep this order: a call is safe only after the inspection. An environment with another layout stays open.
    look(members, is_function)?;
    // SAFETY: the members are at their declared places.
    let done = unsafe { read_back(&mut *env) };
    // SAFETY: as above; it was never opened.
    unsafe { ((*env).close)(env, 0) };
    done
}

/// Checks that function members point to functions and that the others do not.
fn look(members: &[usize], is_function: &dyn Fn(usize) -> bool) -> Result<(), &'static str> {
    for (position, &member) in members.iter().enumerate().skip(1) {
        let is_null = NULL.contains(&position);
        if is_null != (member == 0) {
            return Err("DB_ENV has other members, or in another order");
        }
        if !is_null && !is_function(member) {
            return Err("an entry of DB_ENV is not a function of the library");
        }
    }
    Ok(())
}

/// Sets values and reads them back, which detects swapped neighbors.
///
/// # Safety
/// The members used must be functions.
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
        _ => Err("a value that was set in a DB_ENV does not read back"),
    }
}

/// Checks that a database points to its environment.
///
/// # Safety
/// The library has just created the database.
pub unsafe fn database(db: *mut Db, env: *mut DbEnv) -> Result<(), &'static str> {
    // SAFETY: guaranteed by the caller. Another layout has a few members more or fewer, for which the allocation has
    // space.
    let is_known = unsafe { libc::malloc_usable_size(db.cast()) >= size_of::<Db>() && (*db).dbenv == env };
    if is_known { Ok(()) } else { Err("DB has other members, or in another order") }
}

/// Checks that a transaction points to its environment.
///
/// # Safety
/// The library has just created the transaction.
pub unsafe fn transaction(txn: *mut DbTxn, env: *mut DbEnv) -> Result<(), &'static str> {
    // SAFETY: guaranteed by the caller.
    if unsafe { (*txn).mgrp == env } { Ok(()) } else { Err("DB_TXN has other members, or in another order") }
}

/// Checks that a cursor points to its database.
///
/// # Safety
/// The library has just created the cursor.
pub unsafe fn cursor(cursor: *mut Dbc, db: *mut Db) -> Result<(), &'static str> {
    // SAFETY: guaranteed by the caller.
    if unsafe { (*cursor).dbp == db } { Ok(()) } else { Err("DBC has other members, or in another order") }
}
