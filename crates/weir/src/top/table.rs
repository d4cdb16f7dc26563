//! Rows and columns of a view before they are drawn: all cells of all rows, in the order in which they are
//! shown.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::RangeInclusive;

use diagnose::finding::Finding;

use super::tone::width;

/// What a row is about; it stays selected while rows come, go and move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Id {
    Service(String),
    Server {
        service: String,
        address: String,
    },
    Client(String),
    Cause(String),
    /// Responses of servers with a 5xx status.
    ServerErrors,
    Request {
        id: String,
        service: String,
        server: Option<String>,
    },
    /// What the state of a service says.
    Trouble {
        service: String,
        kind: TroubleKind,
    },
    Finding {
        rule: String,
        subject: String,
        namespace: Option<String>,
    },
    /// Something that is not known.
    Gap(String),
    Probes(String),
}

/// What is wrong with a service according to its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TroubleKind {
    NoServer,
    Down,
    Ejected,
    Unresolved,
    Queue,
}

impl Id {
    /// Returns what tells a finding from others.
    pub(crate) fn of(finding: &Finding) -> Id {
        Id::Finding {
            rule: finding.rule.clone().into_owned(),
            subject: finding.subject.clone(),
            namespace: finding.namespace.clone(),
        }
    }
}

/// How wide a column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    Fixed(u16),
    /// As wide as its widest cell, within these bounds, while there is room.
    Grow(u16, u16),
    /// The same for sentences, which lose their end instead of their middle.
    Prose(u16, u16),
    /// A sparkline or a bar: takes what the others leave.
    Rest(u16, u16),
}

/// A column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) head: Cow<'static, str>,
    pub(crate) width: Width,
    pub(crate) is_number: bool,
    /// The order that it shows.
    pub(crate) sort: Option<Sort>,
    /// The widths of screens on which it is shown.
    pub(crate) on: RangeInclusive<u16>,
}

impl Column {
    pub(crate) fn text(head: impl Into<Cow<'static, str>>, width: Width) -> Column {
        Column { head: head.into(), width, is_number: false, sort: None, on: 0..=u16::MAX }
    }

    pub(crate) fn number(head: &'static str, width: u16) -> Column {
        Column { is_number: true, ..Column::text(head, Width::Fixed(width)) }
    }

    /// It shows what the rows are ordered by in this order.
    pub(crate) fn sorts(self, sort: Sort) -> Column {
        Column { sort: Some(sort), ..self }
    }

    /// Shows it only on screens of this width or more.
    pub(crate) fn from(self, from: u16) -> Column {
        Column { on: from..=u16::MAX, ..self }
    }

    /// Shows it only on screens that are narrower than this.
    pub(crate) fn below(self, width: u16) -> Column {
        Column { on: *self.on.start()..=width - 1, ..self }
    }
}

/// What a cell shows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Text(String),
    /// Text about trouble.
    Trouble(String),
    /// The last minute of a service's requests.
    Spark(String),
    /// How full something is.
    Bar {
        part: u32,
        of: Option<u32>,
    },
}

impl Cell {
    /// The cells of a terminal that its text takes; a picture takes what it gets.
    fn width(&self) -> u16 {
        match self {
            Cell::Text(text) | Cell::Trouble(text) => width(text),
            Cell::Spark(_) | Cell::Bar { .. } => 0,
        }
    }
}

/// Figures to sort by.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rank {
    pub(crate) trouble: u64,
    pub(crate) rate: f64,
    pub(crate) p99: f64,
    /// Failures per request.
    pub(crate) failed: f64,
    pub(crate) in_flight: u64,
}

/// A row.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) id: Id,
    pub(crate) is_trouble: bool,
    pub(crate) cells: Vec<Cell>,
    pub(crate) rank: Rank,
}

/// What rows are ordered by. Those that are equal keep the order of the balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Trouble,
    Name,
    Rate,
    Latency,
    Failed,
    InFlight,
}

impl Sort {
    /// The orders that `s` goes through.
    pub(crate) const ALL: [Sort; 6] =
        [Sort::Trouble, Sort::Name, Sort::Rate, Sort::Latency, Sort::Failed, Sort::InFlight];

    /// Returns the order at a position, counted round and round.
    pub(crate) fn at(position: usize) -> Sort {
        Sort::ALL[position % Sort::ALL.len()]
    }

    /// Returns what the line of keys says about it.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Sort::Trouble => "sort: trouble",
            Sort::Name => "sort: name",
            Sort::Rate => "sort: req/s",
            Sort::Latency => "sort: p99",
            Sort::Failed => "sort: failed",
            Sort::InFlight => "sort: in flight",
        }
    }

    fn compare(self, a: &Row, b: &Row) -> Ordering {
        match self {
            Sort::Trouble => b.rank.trouble.cmp(&a.rank.trouble),
            Sort::Name => a.name().cmp(b.name()),
            Sort::Rate => b.rank.rate.total_cmp(&a.rank.rate),
            Sort::Latency => b.rank.p99.total_cmp(&a.rank.p99),
            Sort::Failed => b.rank.failed.total_cmp(&a.rank.failed),
            Sort::InFlight => b.rank.in_flight.cmp(&a.rank.in_flight),
        }
    }
}

impl Row {
    fn name(&self) -> &str {
        match self.cells.first() {
            Some(Cell::Text(text) | Cell::Trouble(text)) => text,
            _ => "",
        }
    }

    /// Whether one of its texts contains `text`, which is in lower case.
    fn contains(&self, text: &str) -> bool {
        self.cells.iter().any(|cell| match cell {
            Cell::Text(cell) | Cell::Trouble(cell) => cell.to_lowercase().contains(text),
            Cell::Spark(_) | Cell::Bar { .. } => false,
        })
    }
}

/// The table of a view.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listing {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    /// How many rows there are without the filter.
    pub(crate) all: usize,
    /// The cells that each column's widest text takes, with or without the filter, so that a search moves
    /// no column.
    pub(crate) widest: Vec<u16>,
    /// What they are ordered by, if there is a choice.
    pub(crate) sort: Option<Sort>,
    /// Shown in place of rows if there are none.
    pub(crate) empty: Cow<'static, str>,
}

impl Listing {
    pub(crate) fn new(
        columns: Vec<Column>,
        rows: Vec<Row>,
        empty: impl Into<Cow<'static, str>>,
    ) -> Listing {
        let of = |at: usize| rows.iter().map(|row| row.cells.get(at).map_or(0, Cell::width)).max();
        let widest = (0..columns.len()).map(|at| of(at).unwrap_or(0)).collect();
        Listing { columns, all: rows.len(), rows, widest, sort: None, empty: empty.into() }
    }

    /// Keeps the rows that contain `filter`, in the order of `sort` or the reverse.
    pub(crate) fn arranged(
        mut self,
        filter: &str,
        sort: Option<Sort>,
        is_reversed: bool,
    ) -> Listing {
        let filter = filter.to_lowercase();
        if !filter.is_empty() {
            self.rows.retain(|row| row.contains(&filter));
            self.empty = "No row contains this text. Esc ends the search.".into();
        }
        self.sort = sort;
        if let Some(sort) = sort {
            let compare = |a: &Row, b: &Row| sort.compare(a, b);
            if is_reversed {
                self.rows.sort_by(|a, b| compare(b, a));
            } else {
                self.rows.sort_by(compare);
            }
        }
        self
    }
}
