//! The report over synthetic results: tables, JSON and page.
#![allow(clippy::unwrap_used)]

mod flat;
mod hostile;
mod html;
mod json;
mod opening;
mod support;
mod tables;
