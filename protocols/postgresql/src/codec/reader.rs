//! Reading a message's fields, never beyond its end. Numbers have their highest byte first.

/// A message that does not hold what the protocol says it must.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed message: {0}")]
pub struct Malformed(pub &'static str);

/// What is left of a message.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    left: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads a message's body from its start.
    pub fn new(body: &'a [u8]) -> Self {
        Self { left: body }
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
    pub fn u8(&mut self, what: &'static str) -> Result<u8, Malformed> {
        Ok(self.array::<1>(what)?[0])
    }

    /// Two bytes.
    ///
    /// # Errors
    /// `what` is cut off.
    pub fn u16(&mut self, what: &'static str) -> Result<u16, Malformed> {
        Ok(u16::from_be_bytes(self.array(what)?))
    }

    /// Four bytes.
    ///
    /// # Errors
    /// `what` is cut off.
    pub fn u32(&mut self, what: &'static str) -> Result<u32, Malformed> {
        Ok(u32::from_be_bytes(self.array(what)?))
    }

    /// Bytes up to a zero, which is taken too.
    ///
    /// # Errors
    /// There is no zero.
    pub fn text(&mut self, what: &'static str) -> Result<&'a [u8], Malformed> {
        let end = self.left.iter().position(|&byte| byte == 0).ok_or(Malformed(what))?;
        let taken = &self.left[..end];
        self.left = &self.left[end + 1..];
        Ok(taken)
    }

    /// A value with its length before it; `None` is NULL.
    ///
    /// # Errors
    /// `what` is cut off.
    pub fn value(&mut self, what: &'static str) -> Result<Option<&'a [u8]>, Malformed> {
        let length = self.u32(what)?;
        if length == u32::MAX {
            return Ok(None);
        }
        let (taken, left) = self.left.split_at_checked(length as usize).ok_or(Malformed(what))?;
        self.left = left;
        Ok(Some(taken))
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.left)
    }
}
