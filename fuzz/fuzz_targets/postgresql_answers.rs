#![no_main]

#[path = "../../protocols/postgresql/fuzz/entry.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::answers(bytes));
