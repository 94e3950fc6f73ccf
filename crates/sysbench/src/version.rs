//! Which sysbench this is.

/// The version of sysbench whose command line, scripts and output these are. Scripts see it as `sysbench.version`.
///
/// It is that of sysbench's main branch, of which there is no release yet: scripts and tools that ask for "1." or for
/// at least 1.0 are right to go on.
pub const SYSBENCH: &str = "1.1.0";

/// What scripts see as `sysbench.version_string`.
pub const VERSION_STRING: &str = "sysbench 1.1.0";

const RUMBA: &str = env!("CARGO_PKG_VERSION");

/// What `--version` prints, without the end of the line.
///
/// Tools take the second word, or what follows `sysbench ` up to a blank: for those it is an ordinary sysbench. Whoever
/// reads the whole line sees whose figures these are; sysbench's own builds have a suffix at the end as well.
pub fn line() -> String {
    format!("{VERSION_STRING} (rumba {RUMBA})")
}

/// The first line of output, and the empty one below it. `lua` is the interpreter with its version.
///
/// sysbench says `(using bundled LuaJIT 2.1.0-beta3)`.
pub fn banner(lua: &str) -> String {
    format!("{VERSION_STRING} (using rumba {RUMBA}, {lua})\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_find_the_version_as_the_second_word() {
        assert_eq!(line().split(' ').nth(1), Some(SYSBENCH));
        assert!(line().starts_with("sysbench 1."));
        assert_eq!(VERSION_STRING, format!("sysbench {SYSBENCH}"));
        assert!(banner("LuaJIT 2.1").ends_with(", LuaJIT 2.1)\n\n"));
    }
}
