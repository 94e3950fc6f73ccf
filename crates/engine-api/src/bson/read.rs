//! Reads documents in place.

use std::fmt;

use super::tag;

/// The shortest document: its length, and the zero that ends it.
const EMPTY: usize = 5;

/// Malformed BSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed document: {0}")]
pub struct Malformed(pub &'static str);

/// A value of a document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A floating-point number.
    Double(f64),
    /// Text; UTF-8 if the writer followed the specification.
    Text(&'a [u8]),
    /// A document.
    Document(Document<'a>),
    /// A list, whose names are the numbers of its values.
    Array(Document<'a>),
    /// Bytes.
    Binary(&'a [u8]),
    /// The id that is generated for a document without one.
    ObjectId(&'a [u8; 12]),
    /// A boolean.
    Bool(bool),
    /// A time, in milliseconds since 1970.
    Time(i64),
    /// Null, or BSON's deprecated "undefined".
    Null,
    /// A whole number of 32 bits.
    Int32(i32),
    /// A whole number of 64 bits.
    Int(i64),
    /// A server's own timestamp type.
    Timestamp(u64),
    /// Any other value, with its type and its raw bytes.
    Other(u8, &'a [u8]),
}

impl<'a> Value<'a> {
    /// A number truncated to a whole one, or a truth value as 0 or 1; `None` for other types.
    #[inline]
    pub fn int(&self) -> Option<i64> {
        match *self {
            Value::Int32(value) => Some(i64::from(value)),
            Value::Int(value) | Value::Time(value) => Some(value),
            Value::Double(value) => Some(value as i64),
            Value::Bool(value) => Some(i64::from(value)),
            _ => None,
        }
    }

    /// Text or bytes; `None` for other types.
    #[inline]
    pub fn bytes(&self) -> Option<&'a [u8]> {
        match *self {
            Value::Text(bytes) | Value::Binary(bytes) => Some(bytes),
            _ => None,
        }
    }
}

/// A document with checked length and end; its values are checked when they are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Document<'a> {
    pub(super) bytes: &'a [u8],
}

impl Document<'static> {
    /// A document without values.
    pub const EMPTY: Self = Self { bytes: &[EMPTY as u8, 0, 0, 0, 0] };
}

impl<'a> Document<'a> {
    /// Parses bytes that contain exactly one document.
    ///
    /// # Errors
    /// The bytes are not a document, an incomplete one, or more than one.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self, Malformed> {
        match Self::first(bytes)? {
            (document, []) => Ok(document),
            _ => Err(Malformed("bytes behind its end")),
        }
    }

    /// Parses the first document; returns it and the bytes after it.
    ///
    /// # Errors
    /// The bytes do not begin with a document.
    #[inline]
    pub fn first(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Malformed> {
        let &length = bytes.first_chunk::<4>().ok_or(Malformed("its length is cut off"))?;
        let length = u32::from_le_bytes(length) as usize;
        let (bytes, rest) = bytes.split_at_checked(length).ok_or(Malformed("it is cut off"))?;
        match bytes {
            [_, _, _, _, .., 0] if length >= EMPTY => Ok((Self { bytes }, rest)),
            _ => Err(Malformed("nothing ends it")),
        }
    }

    /// Its bytes.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Whether it has no values.
    pub fn is_empty(self) -> bool {
        self.bytes.len() == EMPTY
    }

    /// Its names and values in order; an error ends the sequence.
    #[inline]
    pub fn iter(self) -> Elements<'a> {
        Elements { left: &self.bytes[4..] }
    }

    /// The first value with this name.
    ///
    /// # Errors
    /// Malformed content up to and including this value.
    #[inline]
    pub fn get(self, name: &str) -> Result<Option<Value<'a>>, Malformed> {
        for element in self.iter() {
            let (found, value) = element?;
            if found == name.as_bytes() {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// The number with this name.
    ///
    /// # Errors
    /// There is no such number.
    pub fn int(self, name: &str) -> Result<i64, Malformed> {
        self.get(name)?.and_then(|value| value.int()).ok_or(Malformed("a number is missing"))
    }

    /// The text or bytes with this name.
    ///
    /// # Errors
    /// There are none.
    pub fn blob(self, name: &str) -> Result<&'a [u8], Malformed> {
        self.get(name)?.and_then(|value| value.bytes()).ok_or(Malformed("text or bytes are missing"))
    }
}

/// The nesting depth of documents in a message, because a server may send thousands of levels.
const SHOWN_DEPTH: usize = 8;
/// The number of elements of a document in a message.
const SHOWN_ELEMENTS: usize = 64;

/// For messages: `{ "_id": 7, "data": 119 bytes }`.
impl fmt::Debug for Document<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.show(f, SHOWN_DEPTH)
    }
}

impl Document<'_> {
    fn show(self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        if depth == 0 {
            return f.write_str("{ … }");
        }
        f.write_str("{")?;
        for (number, element) in self.iter().enumerate() {
            f.write_str(if number == 0 { " " } else { ", " })?;
            if number == SHOWN_ELEMENTS {
                f.write_str("…")?;
                break;
            }
            let Ok((name, value)) = element else {
                f.write_str("malformed")?;
                break;
            };
            write!(f, "\"{}\": ", name.escape_ascii())?;
            match value {
                Value::Double(value) => write!(f, "{value:?}")?,
                Value::Text(text) => write!(f, "\"{}\"", String::from_utf8_lossy(text).escape_debug())?,
                Value::Document(inner) | Value::Array(inner) => inner.show(f, depth - 1)?,
                Value::Binary(bytes) | Value::Other(_, bytes) => write!(f, "{} bytes", bytes.len())?,
                Value::ObjectId(id) => id.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?,
                Value::Bool(value) => write!(f, "{value}")?,
                Value::Time(value) | Value::Int(value) => write!(f, "{value}")?,
                Value::Int32(value) => write!(f, "{value}")?,
                Value::Null => f.write_str("nothing")?,
                Value::Timestamp(value) => write!(f, "{value}")?,
            }
        }
        f.write_str(" }")
    }
}

/// See [`Document::iter`].
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    /// The unread rest, including the zero that ends the document; empty after an error.
    left: &'a [u8],
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<(&'a [u8], Value<'a>), Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if let [] | [0] = self.left {
            return None;
        }
        let taken = self.take();
        if taken.is_err() {
            self.left = &[];
        }
        Some(taken)
    }
}

impl<'a> Elements<'a> {
    #[inline]
    fn take(&mut self) -> Result<(&'a [u8], Value<'a>), Malformed> {
        let kind = self.array::<1>()?[0];
        let name = self.text()?;
        let value = match kind {
            tag::DOUBLE => Value::Double(f64::from_le_bytes(*self.array()?)),
            tag::TEXT => Value::Text(self.counted_text()?),
            tag::DOCUMENT => Value::Document(self.document()?),
            tag::ARRAY => Value::Array(self.document()?),
            tag::BINARY => Value::Binary(self.binary()?),
            tag::OBJECT_ID => Value::ObjectId(self.array()?),
            tag::BOOL => Value::Bool(self.array::<1>()?[0] != 0),
            tag::TIME => Value::Time(i64::from_le_bytes(*self.array()?)),
            tag::NULL | tag::UNDEFINED => Value::Null,
            tag::INT32 => Value::Int32(i32::from_le_bytes(*self.array()?)),
            tag::TIMESTAMP => Value::Timestamp(u64::from_le_bytes(*self.array()?)),
            tag::INT64 => Value::Int(i64::from_le_bytes(*self.array()?)),
            other => Value::Other(other, self.other(other)?),
        };
        Ok((name, value))
    }

    /// The next bytes, without the zero that ends the document.
    #[inline]
    fn bytes(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, left) = self.left.split_at_checked(length).ok_or(Malformed("a value is cut off"))?;
        if left.is_empty() {
            return Err(Malformed("a value is cut off"));
        }
        self.left = left;
        Ok(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], Malformed> {
        self.bytes(N)?.first_chunk().ok_or(Malformed("a value is cut off"))
    }

    fn length(&mut self) -> Result<usize, Malformed> {
        Ok(u32::from_le_bytes(*self.array()?) as usize)
    }

    /// Bytes up to a zero, which is consumed too.
    #[inline]
    fn text(&mut self) -> Result<&'a [u8], Malformed> {
        let end = self.left.iter().position(|&byte| byte == 0).ok_or(Malformed("nothing ends a name"))?;
        let taken = self.bytes(end + 1)?;
        Ok(&taken[..end])
    }

    /// Text with its length before it, which includes the zero at its end.
    #[inline]
    fn counted_text(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.length()?;
        match self.bytes(length)? {
            [text @ .., 0] => Ok(text),
            _ => Err(Malformed("nothing ends a text")),
        }
    }

    #[inline]
    fn document(&mut self) -> Result<Document<'a>, Malformed> {
        let &length = self.left.first_chunk::<4>().ok_or(Malformed("a value is cut off"))?;
        Document::new(self.bytes(u32::from_le_bytes(length) as usize)?)
    }

    #[inline]
    fn binary(&mut self) -> Result<&'a [u8], Malformed> {
        const OLD: u8 = 2;
        let length = self.length()?;
        let kind = self.array::<1>()?[0];
        let bytes = self.bytes(length)?;
        // The old binary subtype repeats its length.
        if kind == OLD { bytes.get(4..).ok_or(Malformed("a value is cut off")) } else { Ok(bytes) }
    }

    /// Skips a value of a type that the reader does not decode.
    #[cold]
    fn other(&mut self, kind: u8) -> Result<&'a [u8], Malformed> {
        let from = self.left;
        match kind {
            tag::REGEX => {
                self.text()?;
                self.text()?;
            }
            tag::POINTER => {
                self.counted_text()?;
                self.bytes(12)?;
            }
            tag::CODE | tag::SYMBOL => {
                self.counted_text()?;
            }
            tag::SCOPED_CODE => {
                let length = self.length()?;
                self.bytes(length.checked_sub(4).ok_or(Malformed("a value is cut off"))?)?;
            }
            tag::DECIMAL => {
                self.bytes(16)?;
            }
            tag::LEAST | tag::GREATEST => {}
            _ => return Err(Malformed("a value of no known type")),
        }
        Ok(&from[..from.len() - self.left.len()])
    }
}
