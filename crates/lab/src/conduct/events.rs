//! The events of a trial's process, a line each.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, channel};

use rumba_results::event::Event;

/// Characters quoted from a line that is not an event.
const QUOTED: usize = 120;

/// The error that ends the reading: why a line is not an event.
pub(super) type Unreadable = String;

/// Reads the events as they arrive, on a separate thread. Reading stops at the first invalid line, because later lines
/// may belong to another event than they seem to.
pub(super) fn events_of(from: impl Read + Send + 'static) -> Receiver<Result<Event, Unreadable>> {
    let (sender, events) = channel();
    std::thread::spawn(move || {
        let mut from = BufReader::new(from);
        for number in 1.. {
            let Some(event) = next(&mut from, number).transpose() else { return };
            let is_last = event.is_err();
            if sender.send(event).is_err() || is_last {
                return;
            }
        }
    });
    events
}

/// The event of the next line; `None` at the end. A partial last line means that the process was ended while it wrote;
/// its exit status gives the reason.
fn next(from: &mut impl BufRead, number: u64) -> Result<Option<Event>, Unreadable> {
    let mut line = Vec::new();
    match from.read_until(b'\n', &mut line) {
        Ok(_) if line.ends_with(b"\n") => {}
        Ok(_) => return Ok(None),
        Err(error) => return Err(format!("line {number}: {}", io::Error::other(error))),
    }
    serde_json::from_slice(&line).map(Some).map_err(|error| {
        let text = String::from_utf8_lossy(&line);
        let quoted: String = text.trim_end().chars().take(QUOTED).collect();
        format!("line {number} is not an event ({error}): `{quoted}`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(lines: &[u8]) -> (usize, Option<Unreadable>) {
        let all: Vec<_> = events_of(io::Cursor::new(lines.to_vec())).into_iter().collect();
        let read = all.iter().filter(|event| event.is_ok()).count();
        (read, all.into_iter().find_map(Result::err))
    }

    #[test]
    fn every_line_is_an_event_or_the_end_of_the_trust() {
        let finished = r#"{"event":"finished"}"#;
        assert_eq!(reported(format!("{finished}\n{finished}\n").as_bytes()), (2, None));
        for (line, words) in [
            (&br#"{"event":"finishes"}"#[..], "line 2 is not an event (unknown variant `finishes`"),
            (b"Segmentation fault", "`Segmentation fault`"),
            (b"", "line 2 is not an event"),
            (b"\xff\xfe", "line 2 is not an event"),
        ] {
            let lines = [finished.as_bytes(), line, finished.as_bytes(), b""].join(&b'\n');
            let (read, why) = reported(&lines);
            let why = why.unwrap();
            assert!(read == 1 && why.contains(words), "{why}");
        }
    }

    #[test]
    fn half_a_line_at_the_end_is_of_a_process_that_was_killed() {
        assert_eq!(reported(b"{\"event\":\"finished\"}\n{\"event\":\"fin"), (1, None));
    }
}
