//! The history as bytes, for the process that takes over in an upgrade. It may be of another version,
//! with other columns and causes, so these are named.

use std::borrow::Cow;
use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::block::{Block, OTHER_CAUSES};
use crate::columns::Kind;
use crate::history::{History, Key};
use crate::quantised::Quantised;
use crate::series::Series;
use crate::tier::TIERS;

/// The form of the bytes. Another form is not read.
const FORM: u32 = 1;

/// A series.
#[derive(Serialize, Deserialize)]
struct SavedSeries<'a> {
    key: Key,
    /// Its kind's place in [`Saved::columns`].
    kind: u8,
    begun: u64,
    /// Blocks with their tiers.
    blocks: Vec<(u8, Cow<'a, Block>)>,
}

#[derive(Serialize, Deserialize)]
struct Saved<'a> {
    form: u32,
    /// Names of causes, by the numbers used in blocks.
    causes: Vec<String>,
    /// Names of columns, of each kind.
    columns: Vec<Vec<String>>,
    ended: Vec<Vec<(u64, u32)>>,
    series: Vec<SavedSeries<'a>>,
}

impl History {
    /// Returns the rows of all series as bytes.
    pub fn save(&self) -> Vec<u8> {
        let names =
            |kind: Kind| kind.columns().iter().map(|column| column.name.to_owned()).collect();
        let with_rows = self.series.iter().filter(|(_, one)| one.blocks().next().is_some());
        let series = with_rows.map(|(key, series)| {
            let blocks = series.blocks().map(|(tier, block)| (tier as u8, Cow::Borrowed(block)));
            let (kind, blocks) = (place(key.kind()), blocks.collect());
            SavedSeries { key: key.clone(), kind, begun: series.begun, blocks }
        });
        let saved = Saved {
            form: FORM,
            causes: model::Cause::ALL.iter().map(|cause| cause.name().to_owned()).collect(),
            columns: Kind::ALL.map(names).to_vec(),
            ended: self.ended.iter().map(|ended| ended.iter().copied().collect()).collect(),
            series: series.collect(),
        };
        // Only numbers, texts and lists, which always can be written.
        postcard::to_allocvec(&saved).unwrap_or_default()
    }

    /// Adds the rows in `bytes` to an empty history whose clock shows `second`. Rows of the future and
    /// what does not fit together are left out.
    ///
    /// # Errors
    /// What is wrong with the bytes; then nothing is added.
    pub fn restore(&mut self, bytes: &[u8], second: u64) -> Result<(), String> {
        let saved: Saved<'_> = postcard::from_bytes(bytes).map_err(|error| error.to_string())?;
        if saved.form != FORM || saved.ended.len() != TIERS.len() {
            return Err(format!("form {} is not known", saved.form));
        }
        for ((tier, held), ended) in TIERS.iter().zip(&mut self.ended).zip(saved.ended) {
            let newest = tier.last_row(second);
            let oldest = newest.saturating_sub(tier.rows);
            let known = ended.into_iter().filter(|(row, _)| (oldest + 1..=newest).contains(row));
            let mut known: VecDeque<_> = known.collect();
            known.make_contiguous().sort_unstable();
            *held = known;
        }
        let causes: Vec<Option<u8>> = saved.causes.iter().map(|name| cause(name)).collect();
        for SavedSeries { key, kind, begun, blocks } in saved.series {
            let own = key.kind();
            let Some(names) = saved.columns.get(usize::from(kind)) else { continue };
            let mut series = Series::new(own, second);
            series.begun = begun.min(second);
            for (tier, block) in blocks {
                let Some(span) = TIERS.get(usize::from(tier)) else { continue };
                let is_past = block.number <= span.last_row(second) / crate::tier::BLOCK_ROWS;
                if is_past && let Some(block) = translate(block.into_owned(), names, own, &causes) {
                    series.rings[usize::from(tier)].insert(*span, block);
                }
            }
            self.series.insert(key, series);
        }
        self.begin_at(second);
        Ok(())
    }
}

fn place(kind: Kind) -> u8 {
    Kind::ALL.iter().position(|&one| one == kind).unwrap_or(0) as u8
}

fn cause(name: &str) -> Option<u8> {
    model::Cause::ALL.iter().position(|cause| cause.name() == name).map(|index| index as u8)
}

/// Returns a block with this version's columns and causes; `None` if its parts do not fit together.
fn translate(block: Block, names: &[String], kind: Kind, causes: &[Option<u8>]) -> Option<Block> {
    if !block.is_sound(names.len()) {
        return None;
    }
    let columns = kind.columns();
    let mut new = Block::new(block.number, columns.len());
    let sources: Vec<Option<usize>> =
        columns.iter().map(|column| names.iter().position(|name| name == column.name)).collect();
    for (row, into) in
        block.cells.chunks_exact(names.len().max(1)).zip(new.cells.chunks_exact_mut(columns.len()))
    {
        for (cell, source) in into.iter_mut().zip(&sources) {
            *cell = source.map_or(Quantised::NONE, |source| row[source]);
        }
    }
    new.causes = block.causes;
    for count in &mut new.causes {
        let known = causes.get(usize::from(count.cause)).copied().flatten();
        count.cause = known.unwrap_or(OTHER_CAUSES);
    }
    Some(new)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::Cause;

    use super::*;

    #[test]
    fn rows_of_another_version_keep_what_both_know() {
        let key = Key::Listener(Arc::from("public"));
        // Another order, a column that this version does not have, and not all that it has.
        let names = ["connections_open", "mood", "requests"];
        let mut block = Block::new(1_000, names.len());
        let row = [7, 3, 42].map(Quantised::new);
        block.write(5, &row, &mut vec![(0, 30), (1, 12)]);
        let saved = Saved {
            form: FORM,
            causes: vec!["queue_full".to_owned(), "stage_fright".to_owned()],
            columns: vec![Vec::new(), names.map(str::to_owned).to_vec(), Vec::new(), Vec::new()],
            ended: vec![vec![(60_005, 1_000), (99_999, 1_000)], Vec::new(), Vec::new()],
            series: vec![SavedSeries {
                key: key.clone(),
                kind: 1,
                begun: 50_000,
                blocks: vec![(0, Cow::Owned(block))],
            }],
        };
        let bytes = postcard::to_allocvec(&saved).unwrap();
        let mut history = History::new(1 << 30);
        history.restore(&bytes, 60_010).unwrap();
        // A row of the future is not known.
        assert_eq!(history.ended(0, 10).collect::<Vec<_>>(), [(60_005, 1_000)]);
        let columns = Kind::Listener.columns();
        let rows = history.rows(&key, (0, &[60_005]), columns, true).unwrap();
        let value = |name: &str| {
            let at = columns.iter().position(|column| column.name == name).unwrap();
            rows.columns[at][0]
        };
        assert_eq!([value("requests"), value("connections_open")], [Some(42), Some(7)]);
        assert_eq!(value("failed"), None);
        let causes: Vec<_> =
            rows.causes.iter().map(|(_, one)| (one.cause(), one.count())).collect();
        assert_eq!(causes, [(Some(Cause::QueueFull), 30), (None, 12)]);
    }

    #[test]
    fn another_form_is_refused() {
        let empty = History::new(0).save();
        let mut other: Saved<'_> = postcard::from_bytes(&empty).unwrap();
        other.form = FORM + 1;
        let bytes = postcard::to_allocvec(&other).unwrap();
        assert!(History::new(0).restore(&bytes, 10).unwrap_err().contains("form 2"));
    }
}
