//! File descriptors: a connection takes one, and the usual limit is a thousand.

use std::io;

use rumba_engine_api::error::EngineError;

/// The most descriptors of a trial other than its connections: meters, an engine's files, the loops' own.
pub const OTHERS: u64 = 256;

/// The number of descriptors that the host allows this user; `None` if unknown.
pub fn most() -> Option<u64> {
    limit().ok().map(|limit| limit.rlim_max)
}

/// Raises the limit so that this many connections can be open, if the host allows it.
///
/// # Errors
/// When the host does not allow as many.
pub fn allow(connections: u32) -> Result<(), EngineError> {
    let wanted = u64::from(connections) + OTHERS;
    let mut limit = limit().map_err(|error| EngineError::failed("getrlimit", error.to_string()))?;
    if limit.rlim_cur >= wanted {
        return Ok(());
    }
    if limit.rlim_max < wanted {
        let words = format!(
            "{connections} connections need {wanted} file descriptors, and the host allows {} (`ulimit -Hn`): \
             raise that limit, or lower clients",
            limit.rlim_max
        );
        return Err(EngineError::failed("clients", words));
    }
    limit.rlim_cur = wanted;
    set(&limit).map_err(|error| EngineError::failed("setrlimit", error.to_string()))
}

/// Raises the limit by this many descriptors, so that meters take none of the engine's; at most to what the host allows.
pub fn add(more: u64) -> io::Result<()> {
    let limit = limit()?;
    set(&libc::rlimit { rlim_cur: limit.rlim_cur.saturating_add(more).min(limit.rlim_max), ..limit })
}

fn set(limit: &libc::rlimit) -> io::Result<()> {
    // SAFETY: the limit lives through the call.
    match unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, limit) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn limit() -> io::Result<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes into a limit that lives through the call.
    match unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } {
        0 => Ok(limit),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptor_limit_is_raised_or_a_remedy_is_named() {
        let hard = limit().unwrap().rlim_max;
        allow(1024.min(hard.saturating_sub(OTHERS) as u32)).unwrap();
        assert!(limit().unwrap().rlim_cur >= 1024.min(hard));
        if let Ok(beyond) = u32::try_from(hard) {
            let error = allow(beyond).unwrap_err().to_string();
            assert!(error.contains("ulimit -Hn") && error.contains("lower clients"), "{error}");
        }
    }
}
