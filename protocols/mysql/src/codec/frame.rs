//! Packet frames: three bytes of length, one sequence number.

/// The bytes before a packet.
pub const HEADER: usize = 4;
/// The longest payload of one frame; a longer or equally long packet continues in another frame.
pub const FULL: usize = 0x00ff_ffff;

/// The position of a packet in a buffer, or its missing length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framed {
    /// A packet in a single frame.
    Whole {
        /// The length of its payload, which starts after the header.
        length: usize,
        /// The sequence number of the next frame.
        sequence: u8,
    },
    /// A packet of several frames, all of which have arrived.
    Split {
        /// The number of bytes of its frames, including headers.
        span: usize,
        /// The sequence number of the next frame.
        sequence: u8,
    },
    /// The buffer must hold at least this many bytes before parsing can continue.
    Short(usize),
}

/// Parses the frame at the start of `bytes`.
#[inline]
pub fn framed(bytes: &[u8]) -> Framed {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() else {
        return Framed::Short(HEADER);
    };
    let header = u32::from_le_bytes(*header);
    let length = header as usize & FULL;
    if length == FULL {
        return split(bytes);
    }
    if rest.len() < length {
        return Framed::Short(HEADER + length);
    }
    Framed::Whole { length, sequence: ((header >> 24) as u8).wrapping_add(1) }
}

/// Removes the first packet from `bytes`, if it is complete and in a single frame.
#[inline]
pub fn next<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (header, after) = bytes.split_first_chunk::<HEADER>()?;
    let length = u32::from_le_bytes(*header) as usize & FULL;
    if length == FULL {
        return None;
    }
    let (packet, after) = after.split_at_checked(length)?;
    *bytes = after;
    Some(packet)
}

#[cold]
fn split(bytes: &[u8]) -> Framed {
    let mut span = 0;
    loop {
        let Some(&[a, b, c, sequence]) = bytes.get(span..).and_then(|rest| rest.first_chunk::<HEADER>()) else {
            return Framed::Short(span + HEADER);
        };
        let length = u32::from_le_bytes([a, b, c, 0]) as usize;
        span += HEADER + length;
        if bytes.len() < span {
            return Framed::Short(span);
        }
        if length < FULL {
            return Framed::Split { span, sequence: sequence.wrapping_add(1) };
        }
    }
}

/// Joins the frames of a split packet in place, after the space of one header. Returns the payload's length.
pub fn join(frames: &mut [u8]) -> usize {
    let (mut from, mut to) = (0, HEADER);
    while let Some(&[a, b, c, _]) = frames.get(from..).and_then(|rest| rest.first_chunk::<HEADER>()) {
        let start = from + HEADER;
        let length = (u32::from_le_bytes([a, b, c, 0]) as usize).min(frames.len() - start);
        frames.copy_within(start..start + length, to);
        to += length;
        from = start + length;
        if length < FULL {
            break;
        }
    }
    to - HEADER
}

/// Starts a packet in `out`; pass the result to [`finish`].
#[inline]
pub fn start(out: &mut Vec<u8>) -> usize {
    let at = out.len();
    out.extend_from_slice(&[0; HEADER]);
    at
}

/// Ends the packet that started at `at` and is the last in `out`. Its first frame has the number `sequence`. A packet
/// too long for one frame is split. Returns the number of the next frame.
#[inline]
pub fn finish(out: &mut Vec<u8>, at: usize, sequence: u8) -> u8 {
    let length = out.len() - at - HEADER;
    if length >= FULL {
        return finish_split(out, at, sequence);
    }
    write_header(out, at, length, sequence);
    sequence.wrapping_add(1)
}

#[cold]
fn finish_split(out: &mut Vec<u8>, at: usize, sequence: u8) -> u8 {
    let length = out.len() - at - HEADER;
    part(out, at, sequence, FULL, length / FULL + 1)
}

/// Ends the data that started at `at` and is the last in `out` as packets of `size` bytes, the last one shorter; `size`
/// is less than [`FULL`].
pub fn finish_in_packets(out: &mut Vec<u8>, at: usize, sequence: u8, size: usize) -> u8 {
    let length = out.len() - at - HEADER;
    part(out, at, sequence, size, length.div_ceil(size).max(1))
}

/// Inserts space for `count` headers, and writes them.
fn part(out: &mut Vec<u8>, at: usize, mut sequence: u8, size: usize, count: usize) -> u8 {
    let length = out.len() - at - HEADER;
    out.resize(out.len() + (count - 1) * HEADER, 0);
    let size_of = |number: usize| size.min(length - number * size);
    // Backwards, so that no data is overwritten before it is moved.
    for number in (0..count).rev() {
        let from = at + HEADER + number * size;
        out.copy_within(from..from + size_of(number), from + number * HEADER);
    }
    for number in 0..count {
        write_header(out, at + number * (HEADER + size), size_of(number), sequence);
        sequence = sequence.wrapping_add(1);
    }
    sequence
}

#[inline]
fn write_header(out: &mut [u8], at: usize, length: usize, sequence: u8) {
    out[at..at + HEADER].copy_from_slice(&header(length, sequence));
}

/// The header of a frame; its length is [`FULL`] or less.
#[inline]
pub fn header(length: usize, sequence: u8) -> [u8; HEADER] {
    (length as u32 | u32::from(sequence) << 24).to_le_bytes()
}

/// Appends bytes with a length prefix.
#[inline]
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_length(out, bytes.len());
    out.extend_from_slice(bytes);
}

/// Appends a length in as few bytes as possible.
#[inline]
pub fn put_length(out: &mut Vec<u8>, length: usize) {
    let wide = (length as u64).to_le_bytes();
    match length {
        0..=0xfa => out.push(wide[0]),
        0xfb..=0xffff => out.extend_from_slice(&[0xfc, wide[0], wide[1]]),
        0x1_0000..=0xff_ffff => out.extend_from_slice(&[0xfd, wide[0], wide[1], wide[2]]),
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&wide);
        }
    }
}
