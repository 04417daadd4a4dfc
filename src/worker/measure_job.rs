//! r at one exact η, while it is dragged.

use std::sync::Arc;

use super::bench::Bench;
use super::command::{Generation, Lane};
use super::event::Event;
use super::jobs::{Job, Step, Teller};
use super::outbox::Outbox;
use super::profile_job::{list, photo_and_device};
use super::study::Approach;
use crate::Result;
use crate::geometry::profile::MEASURE_PAIRS;
use crate::recipe::ProfileRecipe;

/// Pairs of directions behind the first answer, which must follow the hand, and behind the second,
/// which comes when the hand rests.
const PAIRS: [usize; 2] = [2, MEASURE_PAIRS];

/// Measures the recipes of one request one after the other, twice where directions are drawn.
pub(super) struct MeasureJob {
    generation: Generation,
    recipes: Vec<ProfileRecipe>,
    eta_l2: f64,
    /// Measurements made, each one recipe.
    measured: usize,
    approach: Option<Approach>,
    teller: Teller,
}

impl MeasureJob {
    pub(super) fn new(
        generation: Generation,
        mut recipes: Vec<ProfileRecipe>,
        eta_l2: f64,
    ) -> Self {
        // The scales are ignored, but a profile that this request may begin needs some.
        for recipe in recipes
            .iter_mut()
            .filter(|recipe| recipe.etas_l2.is_empty())
        {
            recipe.etas_l2.push(eta_l2);
        }
        let teller = Teller::new(generation, Lane::Measure);
        Self {
            generation,
            recipes,
            eta_l2,
            measured: 0,
            approach: None,
            teller,
        }
    }
}

impl Job for MeasureJob {
    fn asked(&self) -> String {
        format!("r at η = {} of {}", self.eta_l2, list(&self.recipes))
    }

    fn step(&mut self, bench: &mut Bench, outbox: &mut Outbox) -> Result<Step> {
        let (photo, _) = photo_and_device(bench, &self.asked())?;
        let count = self.recipes.len();
        let Some(&pairs) = PAIRS.get(self.measured / count.max(1)) else {
            return Ok(Step::Done);
        };
        let index = self.measured % count.max(1);
        let Some(recipe) = self.recipes.get(index) else {
            return Ok(Step::Done);
        };
        if self.measured >= count && !recipe.family.is_random() {
            // A fixed set of directions is measured whole at once; more pairs there are none.
            self.measured += 1;
            return Ok(Step::More);
        }
        let Some(study) = bench.known_study(&photo, recipe) else {
            let approach = self
                .approach
                .get_or_insert_with(|| Approach::new(Arc::clone(&photo), recipe.clone()));
            self.teller.announce(outbox, approach.stage(), 0.0);
            approach.step(bench)?;
            return Ok(Step::More);
        };
        self.approach = None;
        let mut study = study.borrow_mut();
        if !study.has_first_pair() && !study.grow()? {
            return Ok(Step::More);
        }
        let estimate = study.measure(self.eta_l2, pairs)?;
        self.measured += 1;
        outbox.send(Event::Measured {
            generation: self.generation,
            index,
            estimate,
        });
        Ok(Step::More)
    }
}
