//! Last names: three syllables, one for each digit of a number (clause 4.3.2.3).

/// How many there are.
pub const NAMES: u32 = 1_000;
/// The longest in bytes: `CALLYCALLYCALLY` and `ATIONATIONATION`.
pub const LONGEST: usize = 15;

const SYLLABLES: [&str; 10] = ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// The name of a number below [`NAMES`], and its length.
pub fn last_name(number: u32) -> ([u8; LONGEST], usize) {
    let (mut name, mut length) = ([0; LONGEST], 0);
    for digit in [number / 100 % 10, number / 10 % 10, number % 10] {
        let syllable = SYLLABLES[digit as usize].as_bytes();
        name[length..length + syllable.len()].copy_from_slice(syllable);
        length += syllable.len();
    }
    (name, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_specification() {
        let name = |number| {
            let (name, length) = last_name(number);
            String::from_utf8_lossy(&name[..length]).into_owned()
        };
        assert_eq!(
            (name(0), name(371), name(999)),
            ("BARBARBAR".into(), "PRICALLYOUGHT".into(), "EINGEINGEING".into())
        );
        assert_eq!((0..NAMES).map(|number| name(number).len()).max(), Some(LONGEST));
    }
}
