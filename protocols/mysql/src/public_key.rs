//! Checks the RSA key under which a server wants the password, before `mysql_common` uses it. That crate panics on a
//! malformed or tiny key, and a server can send any.

use std::ops::RangeInclusive;

use mysql_common::crypto::der::{PubKeyFileType, pem_to_der};

use crate::WireError;

/// The accepted sizes in bits. With a smaller key the password would be easy to decrypt, and a larger key would take
/// the client minutes.
const SIZES: RangeInclusive<usize> = 1024..=16_384;
/// The longest exponent in bytes; 65537 takes three.
const LONGEST_EXPONENT: usize = 8;
/// The bytes of a block that the padding takes: two hashes of SHA-1, and two bytes.
const PADDING: usize = 42;

/// The tags of DER.
const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;

/// Checks a key in PEM for encrypting this password.
///
/// # Errors
/// The key is malformed, too small or too large.
pub(crate) fn check(pem: &[u8], password: &str) -> Result<(), WireError> {
    let unusable = |why: &str| {
        WireError::Protocol(format!("the server's RSA key for the password {why}; connect with TLS or over its socket"))
    };
    let (der, kind) = pem_to_der(pem).map_err(|error| unusable(&format!("is not one: {error}")))?;
    let (modulus, exponent) = numbers(&der, kind).ok_or_else(|| unusable("is malformed"))?;
    let bits = modulus.first().map_or(0, |first| 8 * modulus.len() - first.leading_zeros() as usize);
    if !SIZES.contains(&bits) {
        return Err(unusable(&format!("has {bits} bits, and {} to {} are accepted", SIZES.start(), SIZES.end())));
    }
    if !(1..=LONGEST_EXPONENT).contains(&exponent.len()) {
        return Err(unusable(&format!("has an exponent of {} bytes", exponent.len())));
    }
    // The password is followed by a zero.
    if password.len() + 1 + PADDING > bits / 8 {
        return Err(unusable(&format!("has {bits} bits, which are too few for so long a password")));
    }
    Ok(())
}

/// The modulus and the exponent without leading zeros; `None` if the key is malformed.
fn numbers(mut der: &[u8], kind: PubKeyFileType) -> Option<(&[u8], &[u8])> {
    if kind == PubKeyFileType::Pkcs8 {
        let mut outer = element(&mut der, SEQUENCE)?;
        let _algorithm = element(&mut outer, SEQUENCE)?;
        // The first byte is the number of unused bits.
        der = element(&mut outer, BIT_STRING)?.strip_prefix(&[0])?;
    }
    let mut fields = element(&mut der, SEQUENCE)?;
    let modulus = element(&mut fields, INTEGER)?;
    let exponent = element(&mut fields, INTEGER)?;
    Some((without_zeros(modulus), without_zeros(exponent)))
}

/// Removes the first element, which must have this tag, and returns its content.
fn element<'a>(der: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    let (&[found, short], rest) = der.split_first_chunk::<2>()?;
    let (length, rest) = match short {
        0..=0x7f => (usize::from(short), rest),
        0x81 => {
            let (&length, rest) = rest.split_first()?;
            (usize::from(length), rest)
        }
        0x82 => {
            let (&length, rest) = rest.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(length)), rest)
        }
        // No key takes 64 KiB.
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    *der = rest;
    (found == tag).then_some(content)
}

fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|&&byte| byte == 0).count();
    &number[zeros..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = u16::try_from(content.len()).unwrap().to_be_bytes();
        [&[tag, 0x82][..], &length, content].concat()
    }

    /// The numbers of a key with a modulus of so many bytes, as DER.
    fn key(modulus: usize) -> Vec<u8> {
        let numbers = [framed(INTEGER, &vec![0xc5; modulus]), framed(INTEGER, &[1, 0, 1])].concat();
        framed(SEQUENCE, &numbers)
    }

    #[test]
    fn numbers_of_a_key_are_found_and_malformed_ones_refused() {
        for bytes in [1, 128, 256] {
            let der = key(bytes);
            let (modulus, exponent) = numbers(&der, PubKeyFileType::Pkcs1).unwrap();
            assert_eq!((modulus.len(), exponent), (bytes, &[1, 0, 1][..]));
            let bits = framed(BIT_STRING, &[&[0_u8][..], &der].concat());
            let whole = framed(SEQUENCE, &[framed(SEQUENCE, &[5, 0]), bits].concat());
            assert_eq!(numbers(&whole, PubKeyFileType::Pkcs8).unwrap().0.len(), bytes);
            for cut in 0..der.len() {
                assert_eq!(numbers(&der[..cut], PubKeyFileType::Pkcs1), None, "{cut} bytes");
            }
            for cut in 0..whole.len() {
                assert_eq!(numbers(&whole[..cut], PubKeyFileType::Pkcs8), None, "{cut} bytes");
            }
        }
        assert_eq!(numbers(&key(9), PubKeyFileType::Pkcs8), None);
        assert_eq!(without_zeros(&[0, 0, 7, 0]), [7_u8, 0]);
    }
}
