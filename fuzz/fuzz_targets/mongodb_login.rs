#![no_main]

#[path = "../../protocols/mongodb/fuzz/entry.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::login(bytes));
