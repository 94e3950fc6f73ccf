//! Which sysbench this is.

/// The version of sysbench that the command line, scripts and output follow. Scripts see it as `sysbench.version`.
///
/// It is that of sysbench's main branch, which has no release yet. Scripts and tools that require "1." or at least 1.0
/// may continue.
pub const SYSBENCH: &str = "1.1.0";

/// The value of `sysbench.version_string` for scripts.
pub const VERSION_STRING: &str = "sysbench 1.1.0";

const RUMBA: &str = env!("CARGO_PKG_VERSION");

/// The output of `--version`, without the line end.
///
/// Tools take the second word, or the text after `sysbench ` up to a blank: for those it is an ordinary sysbench. A
/// reader of the whole line sees that the figures come from rumba. sysbench's own builds have a suffix at the end as
/// well.
pub fn line() -> String {
    format!("{VERSION_STRING} (rumba {RUMBA})")
}

/// The first line of output, and the empty line after it. `lua` is the interpreter with its version.
///
/// sysbench prints `(using bundled LuaJIT 2.1.0-beta3)`.
pub fn banner(lua: &str) -> String {
    format!("{VERSION_STRING} (using rumba {RUMBA}, {lua})\n\n")
}
