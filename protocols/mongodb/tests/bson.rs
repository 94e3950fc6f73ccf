//! Compares core's reading and writing of documents with the crate `bson`, on which MongoDB's own driver is based.
#![allow(clippy::unwrap_used)]

use bson::{Bson, RawBsonRef, RawDocument};
use proptest::prelude::*;
use rumba_engine_api::bson::{Document, DocumentBuf, Value, Writer};

/// Values that both implementations can write.
fn values() -> impl Strategy<Value = Bson> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(Bson::Int64),
        any::<i32>().prop_map(Bson::Int32),
        any::<f64>().prop_filter("equal to itself", |value| !value.is_nan()).prop_map(Bson::Double),
        any::<bool>().prop_map(Bson::Boolean),
        Just(Bson::Null),
        "[^\0]{0,20}".prop_map(Bson::String),
        prop::collection::vec(any::<u8>(), 0..20)
            .prop_map(|bytes| Bson::Binary(bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes })),
        any::<[u8; 12]>().prop_map(|id| Bson::ObjectId(bson::oid::ObjectId::from_bytes(id))),
        any::<i64>().prop_map(|time| Bson::DateTime(bson::DateTime::from_millis(time))),
        any::<(u32, u32)>().prop_map(|(time, increment)| Bson::Timestamp(bson::Timestamp { time, increment })),
        any::<[u8; 16]>().prop_map(|bytes| Bson::Decimal128(bson::Decimal128::from_bytes(bytes))),
        Just(Bson::MinKey),
        Just(Bson::MaxKey),
    ];
    leaf.prop_recursive(3, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..15).prop_map(Bson::Array),
            documents_of(inner).prop_map(Bson::Document),
        ]
    })
}

fn documents_of(values: impl Strategy<Value = Bson>) -> impl Strategy<Value = bson::Document> {
    prop::collection::vec(("[a-z$_.]{0,8}", values), 0..8).prop_map(|pairs| pairs.into_iter().collect())
}

fn write(of: &mut Writer<'_>, name: &str, value: &Bson) {
    match value {
        Bson::Int64(value) => of.int(name, *value),
        Bson::Int32(value) => of.small(name, *value),
        Bson::Double(value) => of.double(name, *value),
        Bson::Boolean(value) => of.bool(name, *value),
        Bson::Null => of.null(name),
        Bson::String(value) => of.text(name, value),
        Bson::Binary(value) => of.binary(name, &value.bytes),
        Bson::Array(list) => {
            let list = DocumentBuf::of(|of| {
                list.iter().enumerate().for_each(|(number, value)| write(of, &number.to_string(), value));
            });
            of.value(name, Value::Array(list.get()));
        }
        Bson::Document(inner) => of.document(name, |of| inner.iter().for_each(|(name, value)| write(of, name, value))),
        Bson::ObjectId(id) => of.value(name, Value::ObjectId(&id.bytes())),
        Bson::DateTime(time) => of.value(name, Value::Time(time.timestamp_millis())),
        Bson::Timestamp(time) => {
            of.value(name, Value::Timestamp(u64::from(time.time) << 32 | u64::from(time.increment)));
        }
        Bson::Decimal128(value) => of.value(name, Value::Other(0x13, &value.bytes())),
        Bson::MinKey => of.value(name, Value::Other(0xff, &[])),
        Bson::MaxKey => of.value(name, Value::Other(0x7f, &[])),
        other => panic!("{other:?} is not made here"),
    }
}

/// Whether both read the same values.
fn agree(ours: Document<'_>, theirs: &RawDocument) -> bool {
    let mut theirs = theirs.iter();
    for ours in ours.iter() {
        match (ours, theirs.next()) {
            (Ok((name, value)), Some(Ok((their_name, theirs)))) => {
                if name != their_name.as_str().as_bytes() || !agree_on(value, theirs) {
                    return false;
                }
            }
            // The crate refuses text that is not UTF-8, and a boolean of 2; this client does not check them.
            (_, Some(Err(_))) => return true,
            (ours, theirs) => panic!("{ours:?} and {theirs:?}"),
        }
    }
    theirs.next().is_none()
}

fn agree_on(ours: Value<'_>, theirs: RawBsonRef<'_>) -> bool {
    match (ours, theirs) {
        (Value::Int(ours), RawBsonRef::Int64(theirs)) => ours == theirs,
        (Value::Int32(ours), RawBsonRef::Int32(theirs)) => ours == theirs,
        (Value::Double(ours), RawBsonRef::Double(theirs)) => ours.to_bits() == theirs.to_bits(),
        (Value::Bool(ours), RawBsonRef::Boolean(theirs)) => ours == theirs,
        (Value::Null, RawBsonRef::Null | RawBsonRef::Undefined) => true,
        (Value::Text(ours), RawBsonRef::String(theirs)) => ours == theirs.as_bytes(),
        (Value::Binary(ours), RawBsonRef::Binary(theirs)) => ours == theirs.bytes,
        (Value::Document(ours), RawBsonRef::Document(theirs)) => agree(ours, theirs),
        (Value::Array(ours), RawBsonRef::Array(theirs)) => {
            agree(ours, RawDocument::from_bytes(theirs.as_bytes()).unwrap())
        }
        (Value::ObjectId(ours), RawBsonRef::ObjectId(theirs)) => *ours == theirs.bytes(),
        (Value::Time(ours), RawBsonRef::DateTime(theirs)) => ours == theirs.timestamp_millis(),
        (Value::Timestamp(ours), RawBsonRef::Timestamp(theirs)) => {
            ours == u64::from(theirs.time) << 32 | u64::from(theirs.increment)
        }
        (Value::Other(..), _) => true,
        _ => false,
    }
}

proptest! {
    #[test]
    fn what_is_written_here_is_what_the_crate_writes(document in documents_of(values())) {
        let ours = DocumentBuf::of(|of| document.iter().for_each(|(name, value)| write(of, name, value)));
        let theirs = bson::RawDocumentBuf::try_from(&document).unwrap();
        prop_assert_eq!(ours.get().bytes(), theirs.as_bytes());
        prop_assert!(agree(ours.get(), &theirs));
    }

    #[test]
    fn what_the_crate_refuses_is_refused_or_not_looked_at_here(
        document in documents_of(values()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = bson::RawDocumentBuf::try_from(&document).unwrap().into_bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        match (Document::new(&bytes), RawDocument::from_bytes(&bytes)) {
            (Ok(ours), Ok(theirs)) => {
                let reported = format!("{ours:?}");
                prop_assert!(reported.contains("malformed") || agree(ours, theirs), "{}", reported);
            }
            (ours, theirs) => prop_assert_eq!(ours.is_ok(), theirs.is_ok()),
        }
    }
}
