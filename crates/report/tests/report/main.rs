//! The report over synthetic results: tables, JSON and page.
#![allow(clippy::unwrap_used)]

mod cpu;
mod flat;
mod growth;
mod hostile;
mod html;
mod json;
mod opening;
mod support;
mod tables;
