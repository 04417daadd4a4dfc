//! A fitted map at one rank, in one step.

use std::sync::Arc;

use super::study::solved;
use crate::Result;
use crate::geometry::maps::Cut;
use crate::recipe::EditRecipe;
use crate::worker::bench::Bench;
use crate::worker::command::Generation;
use crate::worker::event::Event;
use crate::worker::jobs::{Job, Step};
use crate::worker::outbox::Outbox;

/// Answers one rank.
pub(in crate::worker) struct RankJob {
    generation: Generation,
    recipe: EditRecipe,
    cut: Cut,
    rank: usize,
}

impl RankJob {
    pub(in crate::worker) fn new(
        generation: Generation,
        recipe: EditRecipe,
        cut: Cut,
        rank: usize,
    ) -> Self {
        Self {
            generation,
            recipe,
            cut,
            rank,
        }
    }
}

impl Job for RankJob {
    fn asked(&self) -> String {
        format!("cut the map to rank {}", self.rank)
    }

    fn step(&mut self, bench: &mut Bench, outbox: &mut Outbox) -> Result<Step> {
        let study = solved(bench, &self.recipe, "cannot cut the map")?;
        let run = study.cut(self.cut, self.rank)?;
        outbox.send(Event::EditCut {
            generation: self.generation,
            run: Arc::new(run),
        });
        Ok(Step::Done)
    }
}
