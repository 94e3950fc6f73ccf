//! Metrics over several phases: the cost of rows and operations, including deferred work.

use crate::metric::{Better, Class, MetricInfo};
use crate::prices::PRICED;

/// Metrics over several phases that include deferred work.
///
/// - `…_with_settle`, for the load: resources spent in load and settle, divided by the rows (or logical bytes) loaded.
/// - `…_with_drain`, for the loops: resources spent in warmup, loops and drain, divided by the operations of warmup and
///   loops, because the warmup also defers work.
/// - `wkb_per_op_deferred` is not measured: it is the engine's estimate ([`rumba_engine_api::engine::DEFERRED_BYTES`]).
pub const CHARGED: &[MetricInfo] = &[
    MetricInfo {
        name: "wkb_per_row_with_settle",
        unit: "KB/row",
        better: Better::Less,
        class: Class::Io,
        help: "KB written to the device in load and settle per row loaded.",
    },
    MetricInfo {
        name: "cpu_us_per_row_with_settle",
        unit: "µs/row",
        better: Better::Less,
        class: Class::Cpu,
        help: "CPU microseconds of clients and engine in load and settle per row loaded.",
    },
    MetricInfo {
        name: "write_amp_with_settle",
        unit: "ratio",
        better: Better::Less,
        class: Class::Io,
        help: "Bytes written to the device in load and settle per logical byte loaded.",
    },
    MetricInfo {
        name: "wkb_per_op_with_drain",
        unit: "KB/op",
        better: Better::Less,
        class: Class::Io,
        help: "KB written to the device in warmup, loops and drain per operation of warmup and loops.",
    },
    MetricInfo {
        name: "wkb_per_op_deferred",
        unit: "KB/op",
        better: Better::Neither,
        class: Class::Io,
        help: "KB that the engine estimates for work below its own triggers, which the drain leaves, per operation of warmup \
               and loops. It is in no other figure.",
    },
    MetricInfo {
        name: "cpu_us_per_op_with_drain",
        unit: "µs/op",
        better: Better::Less,
        class: Class::Cpu,
        help: "CPU microseconds of clients and engine in warmup, loops and drain per operation of warmup and loops.",
    },
    MetricInfo {
        name: "wkb_drain_percent",
        unit: "%",
        better: Better::Neither,
        class: Class::Io,
        help: "The drain's share of wkb_per_op_with_drain. Above 25% a verdict needs wkb_per_op to agree.",
    },
    MetricInfo {
        name: "cpu_drain_percent",
        unit: "%",
        better: Better::Neither,
        class: Class::Cpu,
        help: "The drain's share of cpu_us_per_op_with_drain. Above 25% a verdict needs cpu_us_per_op to agree.",
    },
    MetricInfo {
        name: "host_cpu_us_per_op_with_drain",
        unit: "µs/op",
        better: Better::Less,
        class: Class::Cpu,
        help: "CPU microseconds of the host in warmup, loops and drain per operation of warmup and loops; absent where the \
               host was disturbed.",
    },
    MetricInfo {
        name: "host_cpu_drain_percent",
        unit: "%",
        better: Better::Neither,
        class: Class::Cpu,
        help: "The drain's share of the host's CPU. Above 25% a verdict needs host_cpu_us_per_op to agree.",
    },
    MetricInfo {
        name: PRICED[0],
        unit: "price",
        better: Better::Less,
        class: Class::Cpu,
        help: "Cost of a million operations at the measured rate, in the currency of `[prices]`: CPU, device requests and \
               wear as used including deferred work; memory (the limit, else resident memory) and storage for the time \
               that they take.",
    },
    MetricInfo {
        name: PRICED[1],
        unit: "price",
        better: Better::Less,
        class: Class::Cpu,
        help: "The same at the rate that `[prices]` states, at which memory and storage are shared by fewer or more \
               operations.",
    },
    MetricInfo {
        name: PRICED[2],
        unit: "years",
        better: Better::More,
        class: Class::Rate,
        help: "Years until the drive of `[prices]` has taken the terabytes that may be written to it, at the measured rate.",
    },
    MetricInfo {
        name: PRICED[3],
        unit: "years",
        better: Better::More,
        class: Class::Io,
        help: "The same at the rate that `[prices]` states.",
    },
];
