//! Processes a record: decodes it, assigns it to its connection, flags it, counts it.

use crate::analysis::{Connection, Flags, Opening};
use crate::decode::{Decoded, Decoder, Segment, Tally};
use crate::flow::{Ends, Table};
use crate::reader::Record;
use crate::summary::{Counts, Intervals, Story};

/// What a trace may grow to, and how finely it counts.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections that are followed; segments of others are counted and not analysed.
    pub connections_max: usize,
    /// Length of an interval, in nanoseconds.
    pub interval_ns: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { connections_max: 1_000_000, interval_ns: 1_000_000_000 }
    }
}

/// What became of a record.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Its number, from 1, as tshark counts.
    pub number: u64,
    /// The connection's number, from 0, as `tcp.stream`.
    pub stream: Option<u32>,
    /// Which end of the connection sent it: 0 for the lower one of [`Ends`].
    pub from: usize,
    /// What tshark says of it.
    pub flags: Flags,
    /// It shows a segment that an earlier frame has shown: the capture has it twice.
    pub was_captured: bool,
    /// The segment, if it is one whose length is known.
    pub segment: Option<Segment>,
}

#[derive(Debug)]
struct Followed {
    connection: Connection,
    story: Story,
}

/// A capture as it is read.
#[derive(Debug)]
pub struct Trace {
    decoder: Decoder,
    table: Table,
    followed: Vec<Followed>,
    intervals: Intervals,
    frames: u64,
    refused: u64,
    undecoded: Tally,
}

impl Trace {
    /// One that has seen nothing.
    pub fn new(limits: Limits) -> Trace {
        Trace {
            decoder: Decoder::new(),
            table: Table::new(limits.connections_max),
            followed: Vec::new(),
            intervals: Intervals::new(limits.interval_ns),
            frames: 0,
            refused: 0,
            undecoded: Tally::default(),
        }
    }

    /// How many frames there were.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Segments of connections beyond the limit: counted, not analysed.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// What finds the segments, for what it could not.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// Packets without a readable TCP segment, by what they hold instead.
    pub fn undecoded(&self) -> &Tally {
        &self.undecoded
    }

    /// The counts over time.
    pub fn intervals(&self) -> &Intervals {
        &self.intervals
    }

    /// The counts of everything.
    pub fn totals(&self) -> Counts {
        let mut totals = Counts::default();
        for row in self.intervals.rows() {
            totals.add(&row.counts);
        }
        totals
    }

    /// The connections, in the order of their numbers.
    pub fn stories(&self) -> impl ExactSizeIterator<Item = &Story> {
        self.followed.iter().map(|followed| &followed.story)
    }

    /// One connection, by its number.
    pub fn story(&self, stream: u32) -> Option<&Story> {
        Some(&self.followed.get(stream as usize)?.story)
    }

    /// A frame number that no packet has.
    pub fn no_packet(&mut self) {
        self.frames += 1;
    }

    /// The next record.
    pub fn record(&mut self, record: &Record<'_>) -> Frame {
        self.frames += 1;
        let mut frame = Frame {
            number: self.frames,
            stream: None,
            from: 0,
            flags: Flags::NONE,
            was_captured: false,
            segment: None,
        };
        let decoded = self.decoder.decode(record);
        if let Decoded::Segment(segment) | Decoded::Mention(segment) = &decoded {
            match self.connection(segment, record.time_ns) {
                Some((stream, from, flags)) => {
                    (frame.stream, frame.from, frame.flags) = (Some(stream), from, flags);
                }
                None => self.refused += 1,
            }
        }
        let counts = self.intervals.at(record.time_ns);
        counts.frame(record.wire_bytes);
        match (decoded, frame.stream) {
            (Decoded::Segment(segment), Some(stream)) => {
                let followed = &mut self.followed[stream as usize];
                let mut flags = frame.flags;
                flags.add(followed.connection.judge(frame.from, &segment, record.time_ns));
                if segment.is_cut {
                    flags = flags.and(Flags::SEEN_OF_CUT);
                }
                frame.flags = flags;
                frame.was_captured =
                    followed.story.take(frame.number, frame.from, &segment, flags, record.time_ns);
                counts.segment(&segment, flags);
                frame.segment = Some(segment);
            }
            (Decoded::Segment(segment), None) => {
                counts.segment(&segment, Flags::NONE);
            }
            (Decoded::Mention(segment), stream) => {
                if let Some(stream) = stream {
                    frame.flags.add(self.followed[stream as usize].connection.mention(&segment));
                }
                counts.flags(&segment, frame.flags);
            }
            (Decoded::Other(kind), _) => self.undecoded.take(kind, record.wire_bytes),
        }
        frame
    }

    /// The connection of `segment`, which direction it comes from, and what that alone says.
    fn connection(&mut self, segment: &Segment, now_ns: i64) -> Option<(u32, usize, Flags)> {
        let (ends, from) = Ends::of(segment);
        if let Some(number) = self.table.find(&ends) {
            match self.followed[number as usize].connection.open(from, segment) {
                Opening::Here(flags) => return Some((number, from, flags)),
                Opening::Again => {
                    let number = self.add(ends, now_ns)?;
                    return Some((number, from, Flags::REUSED_PORTS));
                }
            }
        }
        Some((self.add(ends, now_ns)?, from, Flags::NONE))
    }

    fn add(&mut self, ends: Ends, now_ns: i64) -> Option<u32> {
        if !self.table.has_room(self.followed.len()) {
            return None;
        }
        let number = u32::try_from(self.followed.len()).ok()?;
        let story = Story::new(ends, self.frames, now_ns);
        self.followed.push(Followed { connection: Connection::default(), story });
        self.table.put(ends, number);
        Some(number)
    }
}
