//! Reading numbers from the front of bytes, as messages between balancers hold them.

/// Bytes that have not been read yet. Numbers are little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteReader<'a>(&'a [u8]);

impl<'a> ByteReader<'a> {
    /// Returns a reader of these bytes.
    pub fn new(bytes: &'a [u8]) -> ByteReader<'a> {
        ByteReader(bytes)
    }

    /// Returns how many bytes are left.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether all bytes have been read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the next `count` bytes; `None`: fewer are left, and nothing is read. So do all others below.
    pub fn slice(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// Returns the next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    /// Returns the next byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    /// Returns the next number of 2 bytes.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// Returns the next number of 4 bytes.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Returns the next number of 8 bytes.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_the_front_and_nothing_beyond_the_end() {
        let bytes: Vec<u8> = (1..=18).collect();
        let mut reader = ByteReader::new(&bytes);
        assert_eq!(reader.u8(), Some(1));
        assert_eq!(reader.u16(), Some(0x0302));
        assert_eq!(reader.u32(), Some(0x0706_0504));
        assert_eq!(reader.u64(), Some(0x0f0e_0d0c_0b0a_0908));
        assert_eq!((reader.u32(), reader.slice(4), reader.len()), (None, None, 3));
        assert_eq!(reader.slice(2), Some(&[16, 17][..]));
        assert_eq!((reader.array(), reader.is_empty()), (Some([18]), true));
        assert_eq!((reader.u8(), reader.slice(0)), (None, Some(&[][..])));
    }
}
