//! Volumes: a separate filesystem for a trial, on a loop device over a file. Includes the throttle, and the removal
//! from any state.

mod aligned;
mod calibration;
mod delay;
mod loop_device;
mod mounted;
mod place;
mod share;
#[cfg(test)]
mod tests;
mod throttle;

pub use calibration::measure;
pub use delay::{FUSE, serve as delay_requests};
pub use loop_device::{CONTROL as LOOP_CONTROL, LoopDevice};
pub use mounted::Volume;
pub use place::{KIND, THROTTLES, Throttled, VolumeDir};
pub use share::Share;
pub use throttle::Throttle;
