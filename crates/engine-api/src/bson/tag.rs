//! Type bytes of values, which precede a name.

pub(super) const DOUBLE: u8 = 0x01;
pub(super) const TEXT: u8 = 0x02;
pub(super) const DOCUMENT: u8 = 0x03;
pub(super) const ARRAY: u8 = 0x04;
pub(super) const BINARY: u8 = 0x05;
pub(super) const UNDEFINED: u8 = 0x06;
pub(super) const OBJECT_ID: u8 = 0x07;
pub(super) const BOOL: u8 = 0x08;
pub(super) const TIME: u8 = 0x09;
pub(super) const NULL: u8 = 0x0a;
pub(super) const REGEX: u8 = 0x0b;
pub(super) const POINTER: u8 = 0x0c;
pub(super) const CODE: u8 = 0x0d;
pub(super) const SYMBOL: u8 = 0x0e;
pub(super) const SCOPED_CODE: u8 = 0x0f;
pub(super) const INT32: u8 = 0x10;
pub(super) const TIMESTAMP: u8 = 0x11;
pub(super) const INT64: u8 = 0x12;
pub(super) const DECIMAL: u8 = 0x13;
pub(super) const LEAST: u8 = 0xff;
pub(super) const GREATEST: u8 = 0x7f;
