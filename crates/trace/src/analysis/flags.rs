//! The flags that tshark sets on a segment, by tshark's names (`tcp.analysis.NAME`).

use std::fmt;

macro_rules! flags {
    ($($constant:ident = $bit:literal, $name:literal;)*) => {
        impl Flags {
            $(#[doc = concat!("`tcp.analysis.", $name, "`.")]
            pub const $constant: Flags = Flags(1 << $bit);)*
            /// Each flag with its name, in order of their bits.
            pub const NAMED: &'static [(Flags, &'static str)] =
                &[$((Flags::$constant, $name),)*];
        }
    };
}

/// A set of analysis flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(u32);

flags! {
    // Every kind of retransmission, as in tshark; out of order is not one.
    RETRANSMISSION = 0, "retransmission";
    FAST_RETRANSMISSION = 1, "fast_retransmission";
    SPURIOUS_RETRANSMISSION = 2, "spurious_retransmission";
    OUT_OF_ORDER = 3, "out_of_order";
    LOST_SEGMENT = 4, "lost_segment";
    ACK_LOST_SEGMENT = 5, "ack_lost_segment";
    DUPLICATE_ACK = 6, "duplicate_ack";
    ZERO_WINDOW = 7, "zero_window";
    ZERO_WINDOW_PROBE = 8, "zero_window_probe";
    ZERO_WINDOW_PROBE_ACK = 9, "zero_window_probe_ack";
    WINDOW_UPDATE = 10, "window_update";
    WINDOW_FULL = 11, "window_full";
    KEEP_ALIVE = 12, "keep_alive";
    KEEP_ALIVE_ACK = 13, "keep_alive_ack";
    REUSED_PORTS = 14, "reused_ports";
    TFO_SYN = 15, "tfo_syn";
    TFO_ACK = 16, "tfo_ack";
    TFO_IGNORED = 17, "tfo_ignored";
}

impl Flags {
    /// How many there are.
    pub const COUNT: usize = Self::NAMED.len();
    /// None.
    pub const NONE: Flags = Flags(0);

    /// What tshark shows of a segment whose header the capture cut off.
    pub const SEEN_OF_CUT: Flags = Flags(Self::TFO_SYN.0 | Self::TFO_ACK.0 | Self::TFO_IGNORED.0);

    /// Those that are in `other` too.
    #[must_use]
    pub fn and(self, other: Flags) -> Flags {
        Flags(self.0 & other.0)
    }

    /// Whether all of `other` are in it.
    pub fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Adds `other`.
    pub fn add(&mut self, other: Flags) {
        self.0 |= other.0;
    }

    /// The numbers of its flags in [`Flags::NAMED`].
    pub fn numbers(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let number = (left != 0).then(|| left.trailing_zeros())?;
            left &= left - 1;
            Some(number as usize)
        })
    }

    /// The names of its flags.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.numbers().filter_map(|number| Some(Self::NAMED.get(number)?.1))
    }
}

impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.names().enumerate() {
            f.write_str(if index > 0 { " " } else { "" })?;
            f.write_str(name)?;
        }
        Ok(())
    }
}
