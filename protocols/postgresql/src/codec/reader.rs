//! Parses a message's fields, never beyond its end. Numbers are big-endian.

/// A message that violates the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed message: {0}")]
pub struct Malformed(pub &'static str);

/// The unread rest of a message.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    left: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Parses a message's body from its start.
    pub fn new(body: &'a [u8]) -> Self {
        Self { left: body }
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
    pub fn u8(&mut self, what: &'static str) -> Result<u8, Malformed> {
        Ok(self.array::<1>(what)?[0])
    }

    /// Two bytes.
    ///
    /// # Errors
    /// `what` is truncated.
    pub fn u16(&mut self, what: &'static str) -> Result<u16, Malformed> {
        Ok(u16::from_be_bytes(self.array(what)?))
    }

    /// Four bytes.
    ///
    /// # Errors
    /// `what` is truncated.
    pub fn u32(&mut self, what: &'static str) -> Result<u32, Malformed> {
        Ok(u32::from_be_bytes(self.array(what)?))
    }

    /// Bytes up to a zero, which is consumed too.
    ///
    /// # Errors
    /// There is no zero.
    pub fn text(&mut self, what: &'static str) -> Result<&'a [u8], Malformed> {
        let end = self.left.iter().position(|&byte| byte == 0).ok_or(Malformed(what))?;
        let taken = &self.left[..end];
        self.left = &self.left[end + 1..];
        Ok(taken)
    }

    /// A value with its length prefix; `None` is NULL.
    ///
    /// # Errors
    /// `what` is truncated.
    pub fn value(&mut self, what: &'static str) -> Result<Option<&'a [u8]>, Malformed> {
        let length = self.u32(what)?;
        if length == u32::MAX {
            return Ok(None);
        }
        let (taken, left) = self.left.split_at_checked(length as usize).ok_or(Malformed(what))?;
        self.left = left;
        Ok(Some(taken))
    }

    /// All remaining bytes.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.left)
    }
}
