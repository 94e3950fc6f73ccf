//! Writes documents into reusable buffers.

use std::fmt;

use super::read::{Document, Value};
use super::tag;

/// Appends a document to a buffer.
#[inline]
pub fn write(out: &mut Vec<u8>, values: impl FnOnce(&mut Writer<'_>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    values(&mut Writer { out });
    out.push(0);
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Writes a document's values in sequence.
///
/// Names are constants of the program, so they contain no zero byte.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
}

impl Writer<'_> {
    #[inline]
    fn name(&mut self, kind: u8, name: &str) {
        debug_assert!(!name.contains('\0'), "a zero in the name {name:?}");
        self.out.push(kind);
        self.out.extend_from_slice(name.as_bytes());
        self.out.push(0);
    }

    /// Writes type, name and value at once, because every growth of the buffer costs more than the bytes.
    #[inline]
    fn fixed<const N: usize>(&mut self, kind: u8, name: &str, value: [u8; N]) {
        const SHORT: usize = 40;
        let (end, mut bytes) = (1 + name.len(), [0; SHORT]);
        if end + 1 + N > SHORT {
            self.name(kind, name);
            return self.out.extend_from_slice(&value);
        }
        bytes[0] = kind;
        bytes[1..end].copy_from_slice(name.as_bytes());
        bytes[end + 1..end + 1 + N].copy_from_slice(&value);
        self.out.extend_from_slice(&bytes[..end + 1 + N]);
    }

    /// A whole number, of 64 bits.
    #[inline]
    pub fn int(&mut self, name: &str, value: i64) {
        self.fixed(tag::INT64, name, value.to_le_bytes());
    }

    /// A whole number, of 32 bits.
    #[inline]
    pub fn small(&mut self, name: &str, value: i32) {
        self.fixed(tag::INT32, name, value.to_le_bytes());
    }

    /// A floating-point number.
    pub fn double(&mut self, name: &str, value: f64) {
        self.name(tag::DOUBLE, name);
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    /// A boolean.
    #[inline]
    pub fn bool(&mut self, name: &str, value: bool) {
        self.fixed(tag::BOOL, name, [u8::from(value)]);
    }

    /// Writes a null.
    pub fn null(&mut self, name: &str) {
        self.name(tag::NULL, name);
    }

    /// Text.
    #[inline]
    pub fn text(&mut self, name: &str, value: &str) {
        self.fixed(tag::TEXT, name, (value.len() as u32 + 1).to_le_bytes());
        self.out.extend_from_slice(value.as_bytes());
        self.out.push(0);
    }

    /// Bytes.
    #[inline]
    pub fn binary(&mut self, name: &str, value: &[u8]) {
        self.binary_of(name, 0, value);
    }

    /// Bytes of a kind: 4 is a UUID.
    #[inline]
    pub fn binary_of(&mut self, name: &str, kind: u8, value: &[u8]) {
        self.name(tag::BINARY, name);
        self.out.extend_from_slice(&(value.len() as u32).to_le_bytes());
        self.out.push(kind);
        self.out.extend_from_slice(value);
    }

    /// A document, copied unchanged.
    #[inline]
    pub fn embed(&mut self, name: &str, value: Document<'_>) {
        self.name(tag::DOCUMENT, name);
        self.out.extend_from_slice(value.bytes);
    }

    /// A document that is written here.
    #[inline]
    pub fn document(&mut self, name: &str, values: impl FnOnce(&mut Writer<'_>)) {
        self.name(tag::DOCUMENT, name);
        write(self.out, values);
    }

    /// A list that is written here.
    #[inline]
    pub fn array(&mut self, name: &str, values: impl FnOnce(&mut Items<'_, '_>)) {
        self.name(tag::ARRAY, name);
        write(self.out, |writer| values(&mut Items { writer, next: 0 }));
    }

    /// Appends the values of another document.
    #[inline]
    pub fn values_of(&mut self, other: Document<'_>) {
        self.out.extend_from_slice(&other.bytes[4..other.bytes.len() - 1]);
    }

    /// Writes any value of a document under another name.
    pub fn value(&mut self, name: &str, value: Value<'_>) {
        match value {
            Value::Double(value) => self.double(name, value),
            Value::Text(bytes) => {
                self.name(tag::TEXT, name);
                self.out.extend_from_slice(&(bytes.len() as u32 + 1).to_le_bytes());
                self.out.extend_from_slice(bytes);
                self.out.push(0);
            }
            Value::Document(document) => self.embed(name, document),
            Value::Array(list) => {
                self.name(tag::ARRAY, name);
                self.out.extend_from_slice(list.bytes);
            }
            Value::Binary(bytes) => self.binary(name, bytes),
            Value::ObjectId(id) => {
                self.name(tag::OBJECT_ID, name);
                self.out.extend_from_slice(id);
            }
            Value::Bool(value) => self.bool(name, value),
            Value::Time(value) => {
                self.name(tag::TIME, name);
                self.out.extend_from_slice(&value.to_le_bytes());
            }
            Value::Null => self.null(name),
            Value::Int32(value) => self.small(name, value),
            Value::Int(value) => self.int(name, value),
            Value::Timestamp(value) => {
                self.name(tag::TIMESTAMP, name);
                self.out.extend_from_slice(&value.to_le_bytes());
            }
            Value::Other(kind, bytes) => {
                self.name(kind, name);
                self.out.extend_from_slice(bytes);
            }
        }
    }
}

/// Writes a list's values, whose names are their numbers.
#[derive(Debug)]
pub struct Items<'a, 'b> {
    writer: &'a mut Writer<'b>,
    next: u32,
}

impl Items<'_, '_> {
    #[inline]
    fn numbered(&mut self, write: impl FnOnce(&mut Writer<'_>, &str)) {
        // The longest number of 32 bits has ten digits.
        let (mut digits, mut at, mut left) = ([b'0'; 10], 10, self.next);
        loop {
            at -= 1;
            digits[at] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        self.next += 1;
        write(self.writer, std::str::from_utf8(&digits[at..]).unwrap_or_default());
    }

    /// A whole number, of 64 bits.
    #[inline]
    pub fn int(&mut self, value: i64) {
        self.numbered(|writer, name| writer.int(name, value));
    }

    /// Bytes.
    #[inline]
    pub fn binary(&mut self, value: &[u8]) {
        self.numbered(|writer, name| writer.binary(name, value));
    }

    /// Text.
    pub fn text(&mut self, value: &str) {
        self.numbered(|writer, name| writer.text(name, value));
    }

    /// A document, copied unchanged.
    pub fn embed(&mut self, value: Document<'_>) {
        self.numbered(|writer, name| writer.embed(name, value));
    }

    /// A document that is written here.
    #[inline]
    pub fn document(&mut self, values: impl FnOnce(&mut Writer<'_>)) {
        self.numbered(|writer, name| writer.document(name, values));
    }
}

/// A reusable buffer that holds one document.
#[derive(Clone, PartialEq, Eq)]
pub struct DocumentBuf(Vec<u8>);

impl Default for DocumentBuf {
    fn default() -> Self {
        Self(Document::EMPTY.bytes.to_vec())
    }
}

impl From<Document<'_>> for DocumentBuf {
    fn from(document: Document<'_>) -> Self {
        Self(document.bytes.to_vec())
    }
}

/// As [`Document`].
impl fmt::Debug for DocumentBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl DocumentBuf {
    /// A buffer with these values.
    pub fn of(values: impl FnOnce(&mut Writer<'_>)) -> Self {
        let mut document = Self(Vec::new());
        document.write(values);
        document
    }

    /// Replaces the document in the buffer.
    #[inline]
    pub fn write(&mut self, values: impl FnOnce(&mut Writer<'_>)) -> Document<'_> {
        self.0.clear();
        write(&mut self.0, values);
        self.get()
    }

    /// The document.
    #[inline]
    pub fn get(&self) -> Document<'_> {
        Document { bytes: &self.0 }
    }
}

/// Documents in sequence, in one reusable buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Documents {
    bytes: Vec<u8>,
    count: u32,
}

impl Documents {
    /// Adds a document.
    #[inline]
    pub fn push(&mut self, values: impl FnOnce(&mut Writer<'_>)) {
        write(&mut self.bytes, values);
        self.count += 1;
    }

    /// Adds a document, copied unchanged.
    pub fn embed(&mut self, document: Document<'_>) {
        self.bytes.extend_from_slice(document.bytes);
        self.count += 1;
    }

    /// The number of documents.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there is no document.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Their bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The documents in order.
    pub fn iter(&self) -> impl Iterator<Item = Document<'_>> {
        let mut left = &self.bytes[..];
        std::iter::from_fn(move || {
            let (document, rest) = Document::first(left).ok()?;
            left = rest;
            Some(document)
        })
    }

    /// Removes all documents and keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
    }
}
