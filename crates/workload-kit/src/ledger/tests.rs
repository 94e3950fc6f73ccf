use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use super::*;

crate::counters! {
    /// Two numbers.
    Sums at Of {
        /// The first.
        rows: Rows,
        /// The second.
        rows_in_doubt: RowsInDoubt,
    }
}

fn ledger() -> Ledger<{ Sums::NAMES.len() }> {
    Ledger::new(Sums::NAMES)
}

fn file(path: &Path) -> Arc<File> {
    Arc::new(OpenOptions::new().append(true).create(true).open(path).unwrap())
}

#[test]
fn sums_outlive_their_writers_and_restore_completely() {
    let here = ledger();
    let (mut one, mut two) = (here.open(), here.open());
    one.add(Of::Rows as usize, 3);
    two.add(Of::Rows as usize, 4);
    two.begin(1, Some(Of::RowsInDoubt as usize), Entry::default).unwrap();
    drop((one, two));
    assert_eq!(here.sums::<Sums>(), Sums { rows: 7, rows_in_doubt: 1 });
    let (there, state) = (ledger(), here.state());
    there.restore(&state).unwrap();
    assert_eq!(there.sums::<Sums>(), here.sums());
    for missing in Sums::NAMES {
        let (mut partial, untouched) = (state.clone(), ledger());
        partial.remove(missing);
        assert!(untouched.restore(&partial).unwrap_err().to_string().contains(missing));
        assert_eq!(untouched.sums::<Sums>(), Sums::default());
    }
}

#[test]
fn a_write_is_in_doubt_until_it_is_acknowledged_or_undone() {
    let (ledger, cut_off) = (ledger(), || Err::<(), _>(EngineError::CutOff("killed")));
    let mut account = ledger.open();
    let mut after = |end: &dyn Fn(&mut Account<2>)| {
        account.begin(0, Some(Of::RowsInDoubt as usize), Entry::default).unwrap();
        end(&mut account);
        ledger.sums::<Sums>().rows_in_doubt
    };
    assert_eq!(after(&|account| account.acknowledge(|_| ()).unwrap()), 0);
    assert_eq!(after(&|account| assert!(account.settle(Err::<(), _>(EngineError::conflict("busy"))).is_err())), 0);
    assert_eq!(after(&|account| assert!(account.settle(cut_off()).is_err())), 1);
    assert_eq!(after(&|account| account.settle(Ok(())).and_then(|()| account.undo()).unwrap()), 1);
    assert_eq!(after(&|_| ()), 2, "its client was stopped, and begins another write");
    assert_eq!(after(&|account| account.acknowledge(|_| ()).unwrap()), 2);
}

/// The kinds and entries of writes.
fn content<'a>(writes: impl IntoIterator<Item = &'a Write>) -> Vec<(u32, Entry)> {
    writes.into_iter().map(|write| (write.kind, write.entry)).collect()
}

#[test]
fn a_file_keeps_every_write_except_a_truncated_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger");
    let (ledger, kept) = (ledger(), file(&path));
    let [mut one, mut two] = [0, 7].map(|client| ledger.open_with(Some(&kept), client));
    let entry: Entry = std::array::from_fn(|at| (at as u32 + 1) * 0x0101_0101);
    one.begin(3, None, Entry::default).unwrap();
    one.acknowledge(|end| *end = entry).unwrap();
    two.begin(5, None, || entry).unwrap();
    two.undo().unwrap();
    one.begin(0xffff, None, || entry).unwrap();
    two.begin(6, None, Entry::default).unwrap();
    one.leave();
    one.undo().unwrap();
    one.begin(4, None, || entry).unwrap();
    let read = || Entries::read(&File::open(&path).unwrap());
    let whole = read().unwrap();
    assert_eq!(content(&whole.acknowledged), [(3, entry)]);
    let Write { began_ns, ended_ns, .. } = whole.acknowledged[0];
    assert!(began_ns > 0 && ended_ns >= Some(began_ns), "{whole:?}");
    assert_eq!(content(&whole.in_doubt), [(0xffff, entry), (4, entry), (6, Entry::default())]);
    assert!(whole.in_doubt.iter().all(|write| write.ended_ns.is_none()));
    assert_eq!((whole.in_doubt_of(6), whole.in_doubt_of(5), whole.all().count()), (1, 0, 4));
    (&*kept).write_all(&[1; 79]).unwrap();
    assert_eq!(read().unwrap(), whole);
    (&*kept).write_all(&[1]).unwrap();
    assert!(read().is_err(), "a line that no client wrote");
}

#[test]
fn numbers_come_back_from_an_entry() {
    assert_eq!(numbers_of(&entry_of([1, 1 << 32, u64::MAX])), [1, 1 << 32, u64::MAX, 0, 0, 0, 0]);
}
