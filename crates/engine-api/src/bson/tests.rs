use super::*;

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
    let list = DocumentBuf::of(|of| of.array("a", |of| (0..12).for_each(|number| of.int(number))));
    let named =
        DocumentBuf::of(|of| of.document("a", |of| (0..12).for_each(|number| of.int(&number.to_string(), number))));
    assert_eq!(list.get().bytes()[5..], named.get().bytes()[5..]);
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
