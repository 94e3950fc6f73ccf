//! Parses a packet's fields, never beyond its end.

/// A packet that violates the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed packet: {0}")]
pub struct Malformed(pub &'static str);

/// The unread rest of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    left: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Parses `packet` from its start.
    pub fn new(packet: &'a [u8]) -> Self {
        Self { left: packet }
    }

    /// The number of remaining bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.left.len()
    }

    /// Whether no bytes remain.
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// `what` is truncated.
    #[inline]
    pub fn take(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], Malformed> {
        let (taken, left) = self.left.split_at_checked(count).ok_or(Malformed(what))?;
        self.left = left;
        Ok(taken)
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// `what` is truncated.
    #[inline]
    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Malformed> {
        let (taken, left) = self.left.split_first_chunk::<N>().ok_or(Malformed(what))?;
        self.left = left;
        Ok(*taken)
    }

    /// One byte.
    ///
    /// # Errors
    /// `what` is truncated.
    #[inline]
    pub fn u8(&mut self, what: &'static str) -> Result<u8, Malformed> {
        Ok(self.array::<1>(what)?[0])
    }

    /// Two bytes, little-endian.
    ///
    /// # Errors
    /// `what` is truncated.
    pub fn u16(&mut self, what: &'static str) -> Result<u16, Malformed> {
        Ok(u16::from_le_bytes(self.array(what)?))
    }

    /// Four bytes, little-endian.
    ///
    /// # Errors
    /// `what` is truncated.
    pub fn u32(&mut self, what: &'static str) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    /// A length-encoded number.
    ///
    /// # Errors
    /// `what` is truncated, or is not a number.
    #[inline]
    pub fn length(&mut self, what: &'static str) -> Result<u64, Malformed> {
        match self.u8(what)? {
            small @ 0..=0xfa => Ok(u64::from(small)),
            0xfc => Ok(u64::from(self.u16(what)?)),
            0xfd => {
                let [a, b, c] = self.array(what)?;
                Ok(u64::from(u32::from_le_bytes([a, b, c, 0])))
            }
            0xfe => Ok(u64::from_le_bytes(self.array(what)?)),
            _ => Err(Malformed(what)),
        }
    }

    /// Bytes with a length prefix.
    ///
    /// # Errors
    /// `what` is truncated.
    #[inline]
    pub fn bytes(&mut self, what: &'static str) -> Result<&'a [u8], Malformed> {
        let length = self.length(what)?;
        self.take(usize::try_from(length).map_err(|_| Malformed(what))?, what)
    }

    /// Bytes up to a zero, which is consumed too; without one, all remaining bytes.
    pub fn until_zero(&mut self) -> &'a [u8] {
        let end = self.left.iter().position(|&byte| byte == 0).unwrap_or(self.left.len());
        let (taken, rest) = self.left.split_at(end);
        self.left = rest.get(1..).unwrap_or_default();
        taken
    }

    /// All remaining bytes.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.left)
    }
}
