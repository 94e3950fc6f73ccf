//! The entry points of the fuzz targets and of the test without a fuzzer. The input is a sequence of a server's
//! messages.

use rumba_engine_api::bson::{Document, DocumentBuf, Malformed, Value};
use rumba_protocol_mongodb::MongoError;
use rumba_protocol_mongodb::codec::frame::{self, Framed};
use rumba_protocol_mongodb::codec::hello::Hello;
use rumba_protocol_mongodb::codec::reply::{Cursor, Reply};
use rumba_protocol_mongodb::login::{Login, Mechanism, Step};

pub fn answers(input: &[u8]) {
    for message in Messages(input) {
        // A malformed message must be refused with an error.
        let _ = read(message);
    }
}

/// The messages from the first command until the login is complete.
pub fn login(input: &[u8]) {
    for mechanism in [Mechanism::Sha256, Mechanism::Sha1] {
        let _ = enter(input, mechanism);
    }
}

fn enter(input: &[u8], mechanism: Mechanism) -> Result<(), MongoError> {
    let mut login = Login::new("user", "sesame", mechanism)?;
    login.first()?;
    for message in Messages(input) {
        if login.step(frame::answer(message)?.1)? == Step::In {
            break;
        }
    }
    Ok(())
}

fn read(message: &[u8]) -> Result<(), Malformed> {
    let (_, document) = frame::answer(message)?;
    std::hint::black_box(Hello::of(document).is_ok());
    let usual = Cursor::of_usual(document);
    let whole = Reply::of(document)?.cursor;
    for cursor in usual.into_iter().chain(whole) {
        for document in cursor.documents() {
            show(document?)?;
        }
    }
    show(document)
}

/// Reads every value, formats it, and encodes it again.
fn show(document: Document<'_>) -> Result<(), Malformed> {
    let reported = format!("{document:?}");
    assert!(reported.starts_with('{') && reported.ends_with('}'));
    let mut read = Vec::new();
    for element in document.iter() {
        let (name, value) = element?;
        if let Value::Document(inner) | Value::Array(inner) = value {
            show(inner)?;
        }
        read.push((name, value));
    }
    let copy = DocumentBuf::of(|of| {
        read.iter().for_each(|(name, value)| of.value(&String::from_utf8_lossy(name), *value));
    });
    assert_eq!(copy.get().iter().count(), read.len());
    Ok(())
}

/// The complete messages of an input.
struct Messages<'a>(&'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<Self::Item> {
        match frame::framed(self.0) {
            Ok(Framed::Whole(length)) => {
                let (message, rest) = self.0.split_at(length);
                self.0 = rest;
                Some(message)
            }
            Ok(Framed::Short(needed)) => {
                assert!(needed > self.0.len(), "what is there is not short");
                None
            }
            Err(_) => None,
        }
    }
}
