//! Metrics over several phases: the cost of rows and operations, including deferred work.

use crate::metric::{Better, Class, MetricInfo};
use crate::prices::PRICED;

macro_rules! charged {
    ($($name:expr, $unit:literal, $better:ident, $class:ident, $help:literal;)+) => {
        &[$(MetricInfo { name: $name, unit: $unit, better: Better::$better, class: Class::$class, help: $help },)+]
    };
}

/// Metrics over several phases that include deferred work.
///
/// - `…_with_settle`, for the load: resources spent in load and settle, divided by the rows (or logical bytes) loaded.
/// - `…_with_drain`, for the loops: resources spent in warmup, loops and drain, divided by the operations of warmup and
///   loops, because the warmup also defers work.
/// - `wkb_per_op_deferred` is not measured: it is the engine's estimate ([`rumba_engine_api::engine::DEFERRED_BYTES`]).
pub const CHARGED: &[MetricInfo] = charged! {
    "wkb_per_row_with_settle", "KB/row", Less, Io,
        "KB written to the device in load and settle per row loaded.";
    "cpu_us_per_row_with_settle", "µs/row", Less, Cpu,
        "CPU microseconds of clients and engine in load and settle per row loaded.";
    "write_amp_with_settle", "ratio", Less, Io,
        "Bytes written to the device in load and settle per logical byte loaded.";
    "wkb_per_op_with_drain", "KB/op", Less, Io,
        "KB written to the device in warmup, loops and drain per operation of warmup and loops.";
    "wkb_per_op_deferred", "KB/op", Neither, Io,
        "KB that the engine estimates for work below its own triggers, which the drain leaves, per operation of \
         warmup and loops. It is in no other figure.";
    "cpu_us_per_op_with_drain", "µs/op", Less, Cpu,
        "CPU microseconds of clients and engine in warmup, loops and drain per operation of warmup and loops.";
    "wkb_drain_percent", "%", Neither, Io,
        "The drain's share of wkb_per_op_with_drain. Above 25% a verdict needs wkb_per_op to agree.";
    "cpu_drain_percent", "%", Neither, Cpu,
        "The drain's share of cpu_us_per_op_with_drain. Above 25% a verdict needs cpu_us_per_op to agree.";
    "host_cpu_us_per_op_with_drain", "µs/op", Less, Cpu,
        "CPU microseconds of the host in warmup, loops and drain per operation of warmup and loops; absent where the \
         host was disturbed.";
    "host_cpu_drain_percent", "%", Neither, Cpu,
        "The drain's share of the host's CPU. Above 25% a verdict needs host_cpu_us_per_op to agree.";
    PRICED[0], "price", Less, Cpu,
        "Cost of a million operations at the measured rate, in the currency of `[prices]`: CPU, device requests and \
         wear as used including deferred work; memory (the limit, else resident memory) and storage for the time \
         that they take.";
    PRICED[1], "price", Less, Cpu,
        "The same at the rate that `[prices]` states, at which memory and storage are shared by fewer or more \
         operations.";
    PRICED[2], "years", More, Rate,
        "Years until the drive of `[prices]` has taken the terabytes that may be written to it, at the measured \
         rate.";
    PRICED[3], "years", More, Io,
        "The same at the rate that `[prices]` states.";
};
