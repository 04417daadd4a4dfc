//! Pictures by gradient: for the unedited features once, then for those of the asked rank, from where the last search stood.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::run::InvertedRun;
use super::study::solved;
use crate::Result;
use crate::geometry::decode::inversion::target_of;
use crate::geometry::maps::Cut;
use crate::images::Picture;
use crate::recipe::EditRecipe;
use crate::worker::bench::Bench;
use crate::worker::command::{Generation, Lane};
use crate::worker::event::Event;
use crate::worker::jobs::{Job, Step, Teller};
use crate::worker::outbox::Outbox;

/// Shortest time between two pictures of a search.
const UPDATE_INTERVAL: Duration = Duration::from_millis(250);

/// Searches for one rank.
pub(in crate::worker) struct InvertJob {
    generation: Generation,
    recipe: EditRecipe,
    cut: Cut,
    rank: usize,
    /// Whether the search for the mapped features was given its target.
    is_aimed: bool,
    shown: Option<Instant>,
    run: InvertedRun,
    teller: Teller,
}

impl InvertJob {
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
            is_aimed: false,
            shown: None,
            run: InvertedRun {
                cut,
                rank,
                original: None,
                mapped: None,
                iterates: [None; 2],
            },
            teller: Teller::new(generation, Lane::Invert),
        }
    }
}

impl Job for InvertJob {
    fn asked(&self) -> String {
        format!("seek the picture of rank {}", self.rank)
    }

    fn step(&mut self, bench: &mut Bench, outbox: &mut Outbox) -> Result<Step> {
        let study = solved(bench, &self.recipe, "cannot seek the picture")?;
        if !self.is_aimed {
            self.teller.announce(outbox, "beginning the search", 0.0);
            if study.inversions[0].is_none() {
                let features = study.features.clone();
                study.inversions[0] = Some(study.search(&features)?);
            }
            let mapped = study.mapped(self.cut, self.rank)?;
            if let Some(search) = &mut study.inversions[1] {
                search.aim(&target_of(&mapped))?;
            } else {
                study.inversions[1] = Some(study.search(&mapped)?);
            }
            self.is_aimed = true;
            return Ok(Step::More);
        }
        // The unedited picture first: all else is judged against it.
        let side = study.stage.spec().side_px;
        let at = (0..2).find(|&place| {
            (study.inversions[place].as_ref()).is_some_and(|search| !search.is_finished())
        });
        if let Some(place) = at
            && let Some(search) = &mut study.inversions[place]
        {
            let made = search.step()?;
            self.run.iterates[place] = Some(made);
            let share = made.step as f64 / made.of.max(1) as f64;
            let (name, fraction) = match place {
                0 => ("unedited features", 0.5 * share),
                _ => ("mapped features", 0.5 + 0.5 * share),
            };
            let stage = format!(
                "seeking the picture of the {name}: step {} of {}",
                made.step, made.of
            );
            self.teller.tell(outbox, stage, fraction, None);
        }
        let is_done = at.is_none();
        let is_due = (self.shown).is_none_or(|shown| shown.elapsed() >= UPDATE_INTERVAL);
        if is_due || is_done {
            for place in 0..2 {
                // The search for the mapped features stands still until the other is done.
                let is_of_use = place == 0 || at != Some(0);
                let Some(search) = study.inversions[place].as_ref().filter(|_| is_of_use) else {
                    continue;
                };
                let picture = Picture::from_planes(&search.pixels()?, side, side);
                let seen = study.compared(picture)?;
                match place {
                    0 => self.run.original = Some(seen),
                    _ => self.run.mapped = Some(seen),
                }
            }
            self.shown = Some(Instant::now());
            outbox.send(Event::Inverted {
                generation: self.generation,
                run: Arc::new(self.run.clone()),
            });
        }
        Ok(if is_done { Step::Done } else { Step::More })
    }
}
