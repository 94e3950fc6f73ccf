use super::*;

/// A document with a value of every type that the writer supports.
fn one_of_each() -> DocumentBuf {
    DocumentBuf::of(|of| {
        of.int("int", -7);
        of.small("small", 7);
        of.double("double", 1.5);
        of.bool("bool", true);
        of.null("null");
        of.text("text", "täxt");
        of.binary("binary", &[0, 1, 2]);
        of.document("document", |of| of.int("x", 1));
        of.array("array", |of| (0..12).for_each(|number| of.int(number)));
        of.embed("embedded", Document::EMPTY);
    })
}

#[test]
fn a_document_is_the_bytes_that_the_specification_shows() {
    // Both examples of bsonspec.org's list of questions.
    let hello = DocumentBuf::of(|of| of.text("hello", "world"));
    assert_eq!(hello.get().bytes(), b"\x16\0\0\0\x02hello\0\x06\0\0\0world\0\0");
    let values = DocumentBuf::of(|of| {
        of.text("0", "awesome");
        of.double("1", 5.05);
        of.small("2", 1986);
    });
    let list = DocumentBuf::of(|of| of.value("BSON", Value::Array(values.get())));
    let bytes = b"1\0\0\0\x04BSON\0&\0\0\0\x020\0\x08\0\0\0awesome\0\x011\x00333333\x14@\x102\0\xc2\x07\0\0\0\0";
    assert_eq!(list.get().bytes(), bytes);
    assert_eq!(DocumentBuf::default().get(), Document::EMPTY);
}

#[test]
fn what_was_written_is_read() {
    let written = one_of_each();
    let document = Document::new(written.get().bytes()).unwrap();
    let get = |name: &str| document.get(name).unwrap().unwrap();
    assert_eq!((get("int"), get("small"), get("double")), (Value::Int(-7), Value::Int32(7), Value::Double(1.5)));
    assert_eq!((get("bool"), get("null")), (Value::Bool(true), Value::Null));
    assert_eq!((get("text"), get("binary")), (Value::Text("täxt".as_bytes()), Value::Binary(&[0, 1, 2])));
    let Value::Document(inner) = get("document") else { panic!("a document") };
    assert_eq!(inner.int("x"), Ok(1));
    let Value::Array(list) = get("array") else { panic!("a list") };
    let names: Vec<_> = list.iter().map(|element| String::from_utf8(element.unwrap().0.to_vec()).unwrap()).collect();
    assert_eq!(names, (0..12).map(|number| number.to_string()).collect::<Vec<_>>());
    assert_eq!(document.get("nothing"), Ok(None));
    assert!(document.int("text").is_err() && document.blob("int").is_err());
    assert_eq!((document.int("bool"), document.blob("binary")), (Ok(1), Ok(&[0, 1, 2][..])));
    let copy = DocumentBuf::of(|of| {
        for element in document.iter() {
            let (name, value) = element.unwrap();
            of.value(std::str::from_utf8(name).unwrap(), value);
        }
    });
    assert_eq!(copy.get(), written.get());
    assert!(format!("{copy:?}").starts_with("{ \"int\": -7, \"small\": 7, \"double\": 1.5, \"bool\": true"));
}

#[test]
fn what_is_cut_off_or_changed_is_an_error_and_never_read_beyond() {
    let written = one_of_each();
    let whole = written.get().bytes();
    for cut in 0..whole.len() {
        assert!(Document::new(&whole[..cut]).is_err(), "{cut}");
        if cut == whole.len() - 1 {
            break;
        }
        // A length that matches the remaining bytes.
        let mut bytes = whole[..cut].to_vec();
        bytes.push(0);
        if let Some(length) = bytes.first_chunk_mut::<4>() {
            *length = (cut as u32 + 1).to_le_bytes();
        }
        let Ok(document) = Document::new(&bytes) else { continue };
        let read = document.iter().map(|element| usize::from(element.is_ok())).sum::<usize>();
        assert!(read < 10, "{cut}: {document:?}");
    }
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut bytes = whole.to_vec();
            bytes[at] ^= 1 << bit;
            let Ok(document) = Document::new(&bytes) else { continue };
            // Any document must be printable after the change.
            assert!(format!("{document:?}").ends_with('}'));
        }
    }
    assert!(Document::new(&[5, 0, 0, 0, 1]).is_err() && Document::new(&[4, 0, 0, 0]).is_err());
    assert!(Document::new(&[5, 0, 0, 0, 0, 0]).is_err(), "more than a document");
}

#[test]
fn documents_behind_each_other_are_taken_one_by_one() {
    let mut documents = Documents::default();
    (0..3).for_each(|number| documents.push(|of| of.int("_id", number)));
    documents.embed(Document::EMPTY);
    assert_eq!((documents.len(), documents.is_empty()), (4, false));
    let ids: Vec<_> = documents.iter().map(|document| document.int("_id").ok()).collect();
    assert_eq!(ids, [Some(0), Some(1), Some(2), None]);
    documents.clear();
    assert!(documents.is_empty() && documents.bytes().is_empty());
    let mut kept = DocumentBuf::default();
    assert_eq!(kept.write(|of| of.bool("a", false)).int("a"), Ok(0));
    assert_eq!(kept.write(|of| of.values_of(DocumentBuf::of(|of| of.int("b", 2)).get())).int("b"), Ok(2));
    assert_eq!(kept.get().int("a"), Err(Malformed("a number is missing")));
}

#[test]
fn nested_bson_documents_print_to_a_limited_depth() {
    let mut nested = vec![5, 0, 0, 0, 0];
    for _ in 0..3000 {
        let length = (nested.len() + 8) as u32;
        nested = [&length.to_le_bytes()[..], &[3, b'a', 0], &nested, &[0]].concat();
    }
    let reported = format!("{:?}", Document::new(&nested).unwrap());
    assert!(reported.len() < 200 && reported.contains('…'), "{reported}");
    let wide = DocumentBuf::of(|of| (0..1000).for_each(|_| of.int("a", 1)));
    assert!(format!("{:?}", wide.get()).len() < 1000);
}
