//! Reading a packet's fields, never beyond its end.

/// A packet that does not hold what the protocol says it must.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed packet: {0}")]
pub struct Malformed(pub &'static str);

/// What is left of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    left: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads `packet` from its start.
    pub fn new(packet: &'a [u8]) -> Self {
        Self { left: packet }
    }

    /// How many bytes are left.
    #[inline]
    pub fn len(&self) -> usize {
        self.left.len()
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// `what` is cut off.
    #[inline]
    pub fn take(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], Malformed> {
        let (taken, left) = self.left.split_at_checked(count).ok_or(Malformed(what))?;
        self.left = left;
        Ok(taken)
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// `what` is cut off.
    #[inline]
    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Malformed> {
        let (taken, left) = self.left.split_first_chunk::<N>().ok_or(Malformed(what))?;
        self.left = left;
        Ok(*taken)
    }

    /// A byte.
    ///
    /// # Errors
    /// `what` is cut off.
    #[inline]
    pub fn u8(&mut self, what: &'static str) -> Result<u8, Malformed> {
        Ok(self.array::<1>(what)?[0])
    }

    /// Two bytes, the lowest first.
    ///
    /// # Errors
    /// `what` is cut off.
    pub fn u16(&mut self, what: &'static str) -> Result<u16, Malformed> {
        Ok(u16::from_le_bytes(self.array(what)?))
    }

    /// Four bytes, the lowest first.
    ///
    /// # Errors
    /// `what` is cut off.
    pub fn u32(&mut self, what: &'static str) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    /// A number in as many bytes as it needs.
    ///
    /// # Errors
    /// `what` is cut off, or is no number.
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

    /// Bytes with their length before them.
    ///
    /// # Errors
    /// `what` is cut off.
    #[inline]
    pub fn bytes(&mut self, what: &'static str) -> Result<&'a [u8], Malformed> {
        let length = self.length(what)?;
        self.take(usize::try_from(length).map_err(|_| Malformed(what))?, what)
    }

    /// Bytes up to a zero, which is taken too; without one, all that is left.
    pub fn until_zero(&mut self) -> &'a [u8] {
        let end = self.left.iter().position(|&byte| byte == 0).unwrap_or(self.left.len());
        let (taken, rest) = self.left.split_at(end);
        self.left = rest.get(1..).unwrap_or_default();
        taken
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.left)
    }
}
