//! The null server: it speaks the MySQL protocol and gives fixed answers.
#![deny(missing_docs)]
