//! The dynamic table (RFC 7541 section 2.3.2) of either direction: lines of text, evicted oldest
//! first.

use std::collections::VecDeque;

use super::TABLE_MAX_BYTES;
use super::field::FIELD_EXTRA_BYTES;

/// Entries that consist of a line and a `T`. Allocates nothing while empty, and at most
/// [`memory_max_bytes`].
#[derive(Debug)]
pub(crate) struct Table<T> {
    /// The entries' lines, the oldest first, perhaps after lines of evicted entries.
    bytes: Vec<u8>,
    /// The position of the first of `bytes` among all bytes ever added.
    base: u32,
    entries: VecDeque<Entry<T>>,
    /// As RFC 7541 section 4.1 counts.
    size: usize,
    size_max: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    /// Position among all bytes ever added, which may wrap.
    at: u32,
    line_len: u16,
    size: u16,
    extra: T,
}

/// Returns the most memory that a table keeps: lines of twice its size, and its entries.
pub(crate) const fn memory_max_bytes<T>() -> usize {
    2 * TABLE_MAX_BYTES + TABLE_MAX_BYTES / FIELD_EXTRA_BYTES * size_of::<Entry<T>>()
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table {
            bytes: Vec::new(),
            base: 0,
            entries: VecDeque::new(),
            size: 0,
            size_max: TABLE_MAX_BYTES,
        }
    }
}

impl<T: Copy> Table<T> {
    /// Returns an entry by its age; the newest has age 0.
    #[inline]
    pub(crate) fn get(&self, age: usize) -> Option<(&[u8], T)> {
        let entry = self.entries.get(self.entries.len().checked_sub(age + 1)?)?;
        let at = entry.at.wrapping_sub(self.base) as usize;
        Some((&self.bytes[at..at + usize::from(entry.line_len)], entry.extra))
    }

    /// Adds an entry of `size` bytes as RFC 7541 section 4.1 counts, and returns whether it has
    /// room: one that is larger than the table empties it (section 4.4). The line is at most `size`
    /// long.
    pub(crate) fn add(&mut self, line: &[u8], size: usize, extra: T) -> bool {
        self.evict_down_to(self.size_max.saturating_sub(size));
        if size > self.size_max {
            return false;
        }
        self.make_room(line.len());
        let at = self.base.wrapping_add(self.bytes.len() as u32);
        self.bytes.extend_from_slice(line);
        self.size += size;
        let (line_len, size) = (line.len() as u16, size as u16);
        self.entries.push_back(Entry { at, line_len, size, extra });
        true
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn size_max(&self) -> usize {
        self.size_max
    }

    /// Changes the table's size, at most [`TABLE_MAX_BYTES`].
    pub(crate) fn resize(&mut self, size_max: usize) {
        self.size_max = size_max;
        self.evict_down_to(size_max);
    }

    pub(crate) fn clear(&mut self) {
        self.evict_down_to(0);
    }

    /// Frees unused memory.
    pub(crate) fn shrink(&mut self) {
        self.compact();
        self.bytes.shrink_to_fit();
        self.entries.shrink_to_fit();
    }

    fn evict_down_to(&mut self, size: usize) {
        while self.size > size {
            let Some(entry) = self.entries.pop_front() else { return };
            self.size -= usize::from(entry.size);
        }
    }

    /// Makes room for a line. Lines of evicted entries are removed only when the buffer is full, so
    /// that few additions move memory.
    fn make_room(&mut self, line: usize) {
        if self.bytes.len() + line > 2 * TABLE_MAX_BYTES {
            self.compact();
        }
        let (needed, capacity) = (self.bytes.len() + line, self.bytes.capacity());
        if needed > capacity {
            let capacity = (2 * capacity).min(2 * TABLE_MAX_BYTES).max(needed);
            self.bytes.reserve_exact(capacity - self.bytes.len());
        }
    }

    /// Removes the lines of evicted entries.
    fn compact(&mut self) {
        let dead = match self.entries.front() {
            Some(oldest) => oldest.at.wrapping_sub(self.base) as usize,
            None => self.bytes.len(),
        };
        self.bytes.drain(..dead);
        self.base = self.base.wrapping_add(dead as u32);
    }

    /// Checks the bounds; returns the size.
    #[cfg(test)]
    pub(crate) fn check(&self) -> usize {
        assert_eq!(self.size, self.entries.iter().map(|entry| usize::from(entry.size)).sum());
        assert!(self.size <= self.size_max && self.bytes.len() <= 2 * TABLE_MAX_BYTES);
        let entries = self.entries.capacity() * size_of::<Entry<T>>();
        assert!(self.bytes.capacity() + entries <= memory_max_bytes::<T>());
        self.size
    }
}
