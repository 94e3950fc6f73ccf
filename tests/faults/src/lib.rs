//! The fault suite. It injects many faults into real runs of rumba, over real engines and servers and at many moments.
//! After each it answers the same five questions: what the user saw, the exit code, the kept results, the leftovers,
//! and whether the next run works.
//!
//! The required answers are data next to each fault ([`FAULTS`]), so that a miss names its question. Cases are drawn
//! from the table by a seed ([`draw`]). The suite drives rumba as a user does, through its program and its output; no
//! code here depends on rumba's internals.
#![deny(missing_docs)]

mod action;
mod answers;
mod available;
mod axes;
mod case;
mod counts;
mod draw;
mod existing;
mod host;
mod kept;
mod page;
mod place;
mod plant;
mod promise;
mod run;
mod stage;
mod table;
mod trouble;

pub use action::{Action, Who};
pub use answers::{AllowedLeftovers, Answers, Exit, Miss, Next, Question, RequiredResults};
pub use available::Available;
pub use axes::{Engine, Limit, Moment};
pub use case::{Again, Case, Outcome};
pub use counts::{Counts, Tally};
pub use draw::draw;
pub use page::{PAGE, RECORD, page};
pub use place::Bench;
pub use plant::Planted;
pub use promise::{PROMISES, Promise, PromiseEntry};
pub use table::{FAULTS, Fault, fault};
pub use trouble::Trouble;
