//! The history as bytes, for the process that takes over in an upgrade. It may be of another version,
//! with other columns and causes, so these are named.

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

/// A series: what it is about, its kind's place in [`Saved::columns`], its blocks with their tiers.
type SavedSeries = (Key, u8, Vec<(u8, Block)>);

#[derive(Serialize, Deserialize)]
struct Saved {
    form: u32,
    /// Names of causes, by the numbers used in blocks.
    causes: Vec<String>,
    /// Names of columns, of each kind.
    columns: Vec<Vec<String>>,
    ended: Vec<Vec<(u64, u32)>>,
    series: Vec<SavedSeries>,
}

const KINDS: [Kind; 4] = [Kind::Process, Kind::Listener, Kind::Service, Kind::Server];

impl History {
    /// Returns the rows of all series as bytes.
    pub fn save(&self) -> Vec<u8> {
        let names =
            |kind: Kind| kind.columns().iter().map(|column| column.name.to_owned()).collect();
        let series = self.series.iter().map(|(key, series)| {
            let blocks = series.blocks().map(|(tier, block)| (tier as u8, block.clone()));
            (key.clone(), place(key.kind()), blocks.collect())
        });
        let saved = Saved {
            form: FORM,
            causes: model::Cause::ALL.iter().map(|cause| cause.name().to_owned()).collect(),
            columns: KINDS.map(names).to_vec(),
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
        let saved: Saved = postcard::from_bytes(bytes).map_err(|error| error.to_string())?;
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
        for (key, kind, blocks) in saved.series {
            let own = key.kind();
            let Some(names) = saved.columns.get(usize::from(kind)) else { continue };
            let mut series = Series::new(own, second);
            for (tier, block) in blocks {
                let Some(span) = TIERS.get(usize::from(tier)) else { continue };
                let is_past = block.number <= span.last_row(second) / crate::tier::BLOCK_ROWS;
                if is_past && let Some(block) = translate(block, names, own, &causes) {
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
    KINDS.iter().position(|&one| one == kind).unwrap_or(0) as u8
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
