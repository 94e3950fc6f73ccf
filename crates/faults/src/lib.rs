//! The fault suite. It harms real runs of rumba, over real engines and servers, in many ways, at many moments, and asks
//! the same five questions after each: what did the user see, what was the exit code, what was kept, what was left,
//! does the next run work?
//!
//! What the answers must be is data beside each fault ([`FAULTS`]), so that a miss names its question. Cases are drawn
//! from the table by a seed ([`draw`]). rumba is driven as a user drives it, through its program and what that prints;
//! nothing here knows how it is built.
#![deny(missing_docs)]

mod answers;
mod available;
mod axes;
mod case;
mod counts;
mod deed;
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

pub use answers::{AllowedLeftovers, Answers, Exit, Miss, Next, Question, RequiredResults};
pub use available::Available;
pub use axes::{Engine, Limit, Moment};
pub use case::{Again, Case, Outcome};
pub use counts::{Counts, Tally};
pub use deed::{Deed, Who};
pub use draw::draw;
pub use page::{PAGE, RECORD, page};
pub use place::Bench;
pub use plant::Planted;
pub use promise::{PROMISES, Promise, PromiseEntry};
pub use table::{FAULTS, Fault, fault};
pub use trouble::Trouble;
