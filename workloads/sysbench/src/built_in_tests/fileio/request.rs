//! The next request, for all threads.

use crate::cli::settings::{FileSettings, FileTest};
use crate::random::Random;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Read,
    Write,
    Sync,
}

/// The operation of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) operation: Operation,
    pub(crate) file: u32,
    /// In the file.
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// The progress of all threads' requests.
pub(super) struct Requests {
    requested: FileSettings,
    /// The next position, for sequential tests.
    file: u32,
    offset: u64,
    /// The file of the next sync between requests.
    to_sync: u32,
    /// Whether there was a write since all files were synced.
    is_dirty: bool,
    /// Reads and writes.
    performed: u64,
    /// The current block of each thread (file and offset), if no two may use the same.
    taken: Vec<Option<(u32, u64)>>,
}

impl Requests {
    /// From the start; `apart` keeps each of this many threads from a block that another one uses.
    pub(super) fn new(requested: &FileSettings, apart: Option<u32>) -> Self {
        let taken = vec![None; apart.unwrap_or(0) as usize];
        Self { requested: *requested, file: 0, offset: 0, to_sync: 0, is_dirty: false, performed: 0, taken }
    }

    /// The next read or write in sequence; the first file follows the last.
    pub(super) fn in_order(&mut self, operation: Operation) -> Request {
        if operation == Operation::Write
            && let Some(sync) = self.sync_between()
        {
            return sync;
        }
        self.count(operation);
        let FileSettings { files, file_bytes, .. } = self.requested;
        let bytes = self.requested.request_bytes().min(file_bytes - self.offset);
        let request = Request { operation, file: self.file, offset: self.offset, bytes };
        self.offset += bytes;
        if self.offset == file_bytes {
            (self.file, self.offset) = ((self.file + 1) % files, 0);
        }
        request
    }

    /// A read or write of a block anywhere.
    pub(super) fn at_random(&mut self, operation: Operation, thread: u32, random: &mut Random) -> Request {
        if let Some(sync) = self.sync_between() {
            return sync;
        }
        let (file, offset) = loop {
            let drawn = self.draw(random);
            if !self.is_taken(drawn, thread) {
                break drawn;
            }
        };
        if let Some(taken) = self.taken.get_mut(thread as usize) {
            *taken = Some((file, offset));
        }
        self.count(operation);
        Request { operation, file, offset, bytes: self.requested.block_bytes.min(self.requested.file_bytes - offset) }
    }

    /// Blocks are counted over all files together, so that in files of incomplete blocks one can begin anywhere.
    fn draw(&self, random: &mut Random) -> (u32, u64) {
        let FileSettings { files, file_bytes, block_bytes, .. } = self.requested;
        let position = (random.share() * (file_bytes * u64::from(files)) as f64) as u64;
        let position = position - position % block_bytes;
        ((position / file_bytes) as u32, position % file_bytes)
    }

    fn is_taken(&self, block: (u32, u64), thread: u32) -> bool {
        self.taken.iter().enumerate().any(|(other, taken)| other != thread as usize && *taken == Some(block))
    }

    /// After this many requests every file is synced, one by one. No other request comes between, because syncs are not
    /// counted.
    fn sync_between(&mut self) -> Option<Request> {
        let frequency = self.requested.sync.frequency?;
        if !self.is_dirty || !self.performed.is_multiple_of(u64::from(frequency)) {
            return None;
        }
        let file = self.to_sync;
        self.to_sync = (file + 1) % self.requested.files;
        self.is_dirty = self.to_sync != 0;
        Some(Request { operation: Operation::Sync, file, offset: 0, bytes: 0 })
    }

    fn count(&mut self, operation: Operation) {
        self.performed += 1;
        self.is_dirty |= operation == Operation::Write;
    }
}

/// The next operation of a test, for a thread with this many reads and writes.
pub(super) fn operation(test: FileTest, requested_ratio: f64, reads: u64, writes: u64) -> Operation {
    match test {
        FileTest::SequentialRead | FileTest::RandomRead => Operation::Read,
        FileTest::SequentialWrite | FileTest::SequentialRewrite | FileTest::RandomWrite => Operation::Write,
        FileTest::RandomReadWrite => {
            let ratio = (reads as f64 + 1.0) / (writes as f64 + 1.0);
            if ratio < requested_ratio { Operation::Read } else { Operation::Write }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    use crate::built_in_tests::testing::{files, random};

    fn requests(given: &[(&str, &str)], apart: Option<u32>) -> Requests {
        Requests::new(&files(given), apart)
    }

    #[test]
    fn requests_in_order_cover_every_byte_once_and_begin_again() {
        let given = [("file-num", "2"), ("file-total-size", "20K"), ("file-block-size", "4K")];
        let mut requests = requests(&given, None);
        let seen: Vec<_> =
            (0..6).map(|_| requests.in_order(Operation::Read)).map(|r| (r.file, r.offset, r.bytes)).collect();
        let expected = [(0, 0, 4096), (0, 4096, 4096), (0, 8192, 2048), (1, 0, 4096), (1, 4096, 4096), (1, 8192, 2048)];
        assert_eq!(seen, expected);
        assert_eq!(requests.in_order(Operation::Read).file, 0);
    }

    #[test]
    fn all_files_are_synced_after_the_requested_requests() {
        let given = [("file-num", "3"), ("file-total-size", "48K"), ("file-fsync-freq", "4")];
        let mut requests = requests(&given, None);
        let seen: String = (0..14).map(|_| letter(requests.in_order(Operation::Write))).collect();
        assert_eq!(seen, "wwww012wwww012");
        let mut random = random();
        let mut requests = self::requests(&given, None);
        let seen: String = (0..14).map(|_| letter(requests.at_random(Operation::Write, 0, &mut random))).collect();
        assert_eq!(seen, "wwww012wwww012");
        let mut requests = self::requests(&given, None);
        let seen: String = (0..9).map(|_| letter(requests.at_random(Operation::Read, 0, &mut random))).collect();
        assert_eq!(seen, "rrrrrrrrr");
    }

    fn letter(request: Request) -> String {
        match request.operation {
            Operation::Read => "r".to_owned(),
            Operation::Write => "w".to_owned(),
            Operation::Sync => request.file.to_string(),
        }
    }

    #[test]
    fn random_requests_stay_within_files_and_come_to_all_of_them() {
        let given = [("file-num", "3"), ("file-total-size", "100000"), ("file-block-size", "4097")];
        let (mut requests, mut random) = (requests(&given, None), random());
        let mut seen = [0; 3];
        for _ in 0..3000 {
            let request = requests.at_random(Operation::Read, 0, &mut random);
            assert!(request.bytes > 0 && request.offset + request.bytes <= 33_333, "{request:?}");
            seen[request.file as usize] += 1;
        }
        assert!(seen.iter().all(|&count| count > 800), "{seen:?}");
    }

    #[test]
    fn threads_that_validate_keep_out_of_one_anothers_blocks() {
        let given = [("file-num", "1"), ("file-total-size", "64K"), ("file-fsync-freq", "0")];
        let (mut requests, mut random) = (requests(&given, Some(4)), random());
        for turn in 0..800 {
            requests.at_random(Operation::Write, turn % 4, &mut random);
            let taken: HashSet<_> = requests.taken.iter().flatten().collect();
            assert_eq!(taken.len(), (turn as usize + 1).min(4), "{:?}", requests.taken);
        }
    }
}
