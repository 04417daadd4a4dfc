//! Fitting: encode what is not encoded yet, solve, and say what came out.

use std::sync::Arc;

use super::run::{EditRun, spread_ranks};
use super::study::EditStudy;
use crate::Result;
use crate::geometry::maps::Cut;
use crate::recipe::{EditRecipe, WeightsKind};
use crate::worker::bench::Bench;
use crate::worker::command::{Generation, Lane};
use crate::worker::event::Event;
use crate::worker::jobs::{Job, Step, Teller};
use crate::worker::outbox::Outbox;
use crate::worker::profile_job::photo_and_device;

/// Ratio of neighbouring ranks on the curves of picture scores.
const RANK_STEP: f64 = 1.25;

/// Fits the map of one request.
pub(in crate::worker) struct FitJob {
    generation: Generation,
    recipe: EditRecipe,
    is_loaded: bool,
    is_solved: bool,
    /// What was found, as far as it is.
    report: Option<EditRun>,
    /// Ranks whose pictures are still to be compared, the next last; `None` before the map was told of.
    left: Option<Vec<(Cut, usize)>>,
    teller: Teller,
}

impl FitJob {
    pub(in crate::worker) fn new(generation: Generation, recipe: EditRecipe) -> Self {
        Self {
            generation,
            recipe,
            is_loaded: false,
            is_solved: false,
            report: None,
            left: None,
            teller: Teller::new(generation, Lane::Edit),
        }
    }
}

/// Ranks whose pictures draw the curves; the default cut is popped first, from rank 0 up.
fn ranks(run: &EditRun) -> Vec<(Cut, usize)> {
    let cuts = run.sweeps.iter().rev();
    cuts.flat_map(|sweep| {
        let ranks = spread_ranks(sweep.values.len(), RANK_STEP).into_iter();
        ranks.rev().map(|rank| (sweep.cut, rank))
    })
    .collect()
}

impl Job for FitJob {
    fn asked(&self) -> String {
        format!("fit the edit’s map in {}", self.recipe.encoder)
    }

    fn step(&mut self, bench: &mut Bench, outbox: &mut Outbox) -> Result<Step> {
        let Self { recipe, teller, .. } = self;
        let (photo, device) = photo_and_device(bench, "cannot fit the edit’s map")?;
        if !self.is_loaded {
            teller.announce(outbox, "reading weights", 0.0);
            bench.load(&recipe.encoder, WeightsKind::Trained)?;
            self.is_loaded = true;
            return Ok(Step::More);
        }
        let background = bench.background;
        let is_known =
            (bench.edit.as_ref()).is_some_and(|study| study.fits(recipe, &photo, background));
        if !is_known {
            teller.announce(outbox, "encoding the photograph", 0.0);
            // The old one's pictures and features need not stay beside the new one's.
            bench.edit = None;
            let stage = bench.engine.stage(&recipe.encoder, recipe.stage)?;
            let study = EditStudy::new(recipe.clone(), photo, background, stage)?;
            bench.edit = Some(study);
            return Ok(Step::More);
        }
        let Some(study) = &mut bench.edit else {
            return Ok(Step::More);
        };
        let [encoded, all] = study.encoded();
        if encoded < all {
            let stage = format!("encoding photograph {} of {all}", encoded + 1);
            let share = (encoded as f64 + 0.5) / (all as f64 + 1.0);
            teller.tell(outbox, stage, share, None);
            study.encode_next()?;
            return Ok(Step::More);
        }
        if !self.is_solved {
            teller.tell(outbox, "fitting", all as f64 / (all as f64 + 1.0), None);
            study.solve(recipe)?;
            self.is_solved = true;
            return Ok(Step::More);
        }
        let generation = self.generation;
        let Some(left) = &mut self.left else {
            let Some(mut run) = self.report.take() else {
                self.report = Some(study.report(&device)?);
                return Ok(Step::More);
            };
            if study.add_sweep(&mut run)? {
                self.report = Some(run);
                return Ok(Step::More);
            }
            let is_seen = run.seen.is_some();
            self.left = Some(if is_seen { ranks(&run) } else { Vec::new() });
            outbox.send(Event::EditFitted {
                generation,
                run: Arc::new(run),
            });
            return Ok(Step::More);
        };
        let Some((cut, rank)) = left.pop() else {
            return Ok(Step::Done);
        };
        let count = left.len();
        let stage = format!("pictures of other ranks: {count} left");
        self.teller.tell(outbox, stage, 1.0, None);
        if let Some(seen) = study.cut(cut, rank)?.seen {
            outbox.send(Event::EditSeen {
                generation,
                cut,
                rank,
                scores: seen.scores,
            });
        }
        Ok(Step::More)
    }
}
