//! Connecting anew after a connection was lost: how often, and for how long.

use std::time::Duration;

use crate::WireError;
use crate::error::lost;

/// How long one attempt to connect may take, setup included.
pub(crate) const CONNECT: Duration = Duration::from_secs(10);
/// How long connecting anew is tried.
pub(crate) const GIVE_UP: Duration = Duration::from_secs(30);
/// The pause after the first attempt; each is twice as long as the one before.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// The longest pause.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Whether what kept it from connecting may pass: a server that starts, or that has no room yet.
pub(crate) fn may_pass(error: &WireError) -> bool {
    match error {
        WireError::Io { .. } => true,
        WireError::Server { code, .. } => lost(*code) || matches!(code, 1040 | 1203),
        WireError::Protocol(_) | WireError::Tls(_) => false,
    }
}
