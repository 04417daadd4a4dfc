//! The engine that measures a [`Profile`]: which direction at which scale comes next, when the trace,
//! when a scale has had enough.

use std::sync::Arc;

use super::directions::{DirectionFamily, DirectionSet, RECENT_MAX};
use super::estimator::{self, Ratio, Reference};
use super::field::{Field, Perturbation, require_finite};
use super::profile::{
    Basis, Cost, FLOOR_FRACTION, MEASURE_PAIRS, MEASURE_SET_PAIRS, Profile, ROUNDING_PROBES,
    SINGLES, ScaleEstimate,
};
use super::summary::Summary;
use super::trace::{HUTCH_MAX, TraceEstimator, mean_and_se, norm_sq, require_room};
use crate::recipe::{Estimator, ProfileRecipe, TraceMethod, grey_rms};
use crate::{Error, ErrorKind, Result};

/// Steps of the linear probes as pixel RMS: some tens of the spacing of f32 below 1, so that all
/// roundings are drawn anew, and far below any curvature.
const PROBE_STEPS: [f64; ROUNDING_PROBES] = [2e-6, -2e-6, 4e-6, -4e-6];
/// Pairs after which an unreliable scale is given up.
const FLOOR_PAIRS: usize = 4;
/// Pairs after which the trace is begun: the first curves come first.
const TRACE_AFTER: usize = 2;

/// Computes a response profile in steps of about one batch, sharpest estimate first for all scales.
///
/// Which directions, scales and products are used depends on the recipe alone. So does the result, up
/// to what the field itself makes of its batch size: an encoder in f32 may sum in another order in
/// other batches, which moves features within the rounding energy; with one batch size the result is
/// the same to the last bit. To cancel, stop stepping. Directions are made anew when they are needed, so that memory does not grow with
/// their number.
pub struct Profiler {
    recipe: ProfileRecipe,
    directions: DirectionSet,
    /// Φ(x).
    base: Option<Vec<f64>>,
    /// ‖Φ(x′) − Φ(x)‖² of the rounding probes.
    rounding: Vec<f64>,
    /// ‖Φ(x+εu) − Φ(x) − εJu‖² of the linear probes.
    residuals: Vec<f64>,
    /// Ju of the first direction.
    first_jvp: Vec<f64>,
    /// ‖Ju‖² of the first directions.
    jvp_sq: Vec<f64>,
    /// For each scale the displacement of the first pairs, averaged over u and −u.
    displacements: Vec<Vec<f64>>,
    trace: Option<TraceEstimator>,
    trace_is_next: bool,
    round: Round,
    finished: bool,
    cost: Cost,
}

/// The pairs from `first` to `goal`, at the scales that still need them; pair after pair.
struct Round {
    first: usize,
    goal: usize,
    scales: Vec<usize>,
    done: usize,
}

impl Round {
    /// The next measurements, each a pair and a scale.
    fn items(&self, count: usize) -> Vec<(usize, usize)> {
        let width = self.scales.len();
        let end = (self.done + count).min((self.goal - self.first) * width);
        (self.done..end)
            .map(|i| (self.first + i / width, self.scales[i % width]))
            .collect()
    }

    /// Pairs that are complete at all scales of the round.
    fn pairs(&self) -> usize {
        self.first + self.done / self.scales.len()
    }
}

impl Profiler {
    /// A profiler for inputs of `shape` = (channels, rows, columns).
    ///
    /// # Errors
    /// [`ErrorKind::Request`] for a recipe that cannot be met: no scales, or scales that are not
    /// positive and ascending, no directions, a family with impossible parameters.
    pub fn new(recipe: ProfileRecipe, shape: (usize, usize, usize)) -> Result<Self> {
        check(&recipe)?;
        let directions = DirectionSet::new(recipe.family.clone(), recipe.seed, shape)?;
        let scales = recipe.etas_l2.len();
        Ok(Self {
            directions,
            base: None,
            rounding: Vec::new(),
            residuals: Vec::new(),
            first_jvp: Vec::new(),
            jvp_sq: Vec::new(),
            displacements: vec![Vec::new(); scales],
            trace: None,
            trace_is_next: true,
            round: Round {
                first: 0,
                goal: 1,
                scales: (0..scales).collect(),
                done: 0,
            },
            finished: false,
            cost: Cost::default(),
            recipe,
        })
    }

    /// Uses these unit vectors, each as long as the input, as the directions; they count as draws
    /// from the recipe's family.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] for none, or for one that is no unit vector of that length.
    pub fn with_directions(mut self, directions: Vec<Arc<[f32]>>) -> Result<Self> {
        self.directions.set_list(directions)?;
        Ok(self)
    }

    /// Upper bound of the work that a recipe takes for a feature of `output_len` values.
    pub fn planned_cost(recipe: &ProfileRecipe, output_len: usize) -> Cost {
        let pairs = match recipe.family {
            DirectionFamily::TopLogitGradient
            | DirectionFamily::Toward { .. }
            | DirectionFamily::Along { .. } => 1,
            DirectionFamily::TopSingular { count } => count.min(output_len),
            _ => recipe.pairs_max,
        };
        planned_cost(recipe, pairs.min(recipe.pairs_max), output_len)
    }

    /// What is computed.
    pub fn recipe(&self) -> &ProfileRecipe {
        &self.recipe
    }

    /// Does the next piece of work, at most about one batch of the field; true once the profile is
    /// finished.
    ///
    /// # Errors
    /// Those of the field, and [`ErrorKind::Numeric`] for features or products that are not finite.
    pub fn step(&mut self, field: &mut dyn Field) -> Result<bool> {
        if !self.finished {
            self.advance(field)?;
            if self.round_is_complete() {
                self.end_round();
            }
        }
        Ok(self.finished)
    }

    fn advance(&mut self, field: &mut dyn Field) -> Result<()> {
        self.check_input(field)?;
        if !self.directions.is_ready() {
            self.directions.step(field, &mut self.cost)?;
            // A Jacobian or gradient of zero has no directions.
            self.finished = self.directions.len() == Some(0);
            return Ok(());
        }
        if self.base.is_none() {
            return self.measure_base(field);
        }
        let pairs = self.round.pairs();
        if pairs >= 1 && self.rounding_sq().is_none() {
            return self.probe_rounding(field);
        }
        if self.wants_trace() && pairs >= TRACE_AFTER && self.reference().is_none() {
            // In turns with the pairs, so that the curve goes on sharpening; from MIN_PAIRS on
            // nothing goes on without the trace.
            let is_next = std::mem::replace(&mut self.trace_is_next, true);
            if is_next || pairs >= estimator::MIN_PAIRS {
                self.trace_is_next = false;
                return self.step_trace(field);
            }
        }
        let items = self.round.items((field.batch() / 2).max(1));
        match items.last() {
            None => {}
            Some(&(pair, _))
                if self.jvp_sq.len() <= pair && self.jvp_sq.len() < self.jvps_max() =>
            {
                let end = self.jvp_sq.len() + field.batch().clamp(1, RECENT_MAX);
                self.measure_jvps(field, end.min(self.round.goal).min(self.jvps_max()))?;
            }
            Some(_) => self.measure_round(field, &items)?,
        }
        Ok(())
    }

    /// Most pairs that there are to measure at a scale.
    pub fn pairs_max(&self) -> usize {
        self.recipe
            .pairs_max
            .min(self.directions.len().unwrap_or(usize::MAX))
    }

    /// JVPs that there are to measure.
    fn jvps_max(&self) -> usize {
        jvps_max(&self.recipe, self.pairs_max())
    }

    fn wants_trace(&self) -> bool {
        wants_trace(&self.recipe, self.pairs_max())
    }

    fn check_input(&self, field: &dyn Field) -> Result<()> {
        let (wanted, found) = (field.input_len(), self.directions.input_len());
        if wanted == found {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Internal,
            "cannot compute the response profile",
            format!("the encoder takes {wanted} values and the directions have {found}"),
            "",
        ))
    }

    fn measure_base(&mut self, field: &mut dyn Field) -> Result<()> {
        let at_x = Perturbation {
            direction: self.directions.get(0),
            eta_l2: 0.0,
        };
        let features = field.features(&[at_x])?;
        require_finite(&features, "the feature of the photograph")?;
        self.cost.forwards += 1;
        self.base = Some(features);
        Ok(())
    }

    /// One of the probes of rounding; Ju of the first direction is known.
    fn probe_rounding(&mut self, field: &mut dyn Field) -> Result<()> {
        if self.rounding.len() < ROUNDING_PROBES {
            let seed = self.recipe.seed.wrapping_add(self.rounding.len() as u64);
            let features = field.rounding_probe(seed)?;
            self.cost.forwards += 1;
            self.rounding.push(self.displacement_sq(&features)?);
            return Ok(());
        }
        let pixels = (self.directions.input_len() as f64).sqrt();
        let steps = PROBE_STEPS.map(|rms| Perturbation {
            direction: self.directions.get(0),
            eta_l2: rms * pixels,
        });
        let features = field.features(&steps)?;
        self.cost.forwards += steps.len();
        for (row, step) in features.chunks_exact(field.output_len()).zip(&steps) {
            let linear = self.first_jvp.iter().map(|j| step.eta_l2 * j);
            let residual: Vec<f64> = row.iter().zip(linear).map(|(f, l)| f - l).collect();
            self.residuals.push(self.displacement_sq(&residual)?);
        }
        Ok(())
    }

    /// ν², once all probes are there.
    fn rounding_sq(&self) -> Option<f64> {
        let is_complete = self.rounding.len() + self.residuals.len() == 2 * ROUNDING_PROBES;
        is_complete.then(|| {
            mean_and_se(&self.rounding)
                .0
                .max(mean_and_se(&self.residuals).0)
        })
    }

    fn step_trace(&mut self, field: &mut dyn Field) -> Result<()> {
        let recipe = &self.recipe;
        if let (None, TraceMethod::HutchPlusPlus { sketch, .. }) = (&self.trace, recipe.trace) {
            require_room(sketch, field.output_len())?;
        }
        self.trace
            .get_or_insert_with(|| {
                TraceEstimator::new(recipe.trace, recipe.seed, field.output_len())
            })
            .step(field, &mut self.cost)?;
        Ok(())
    }

    fn measure_jvps(&mut self, field: &mut dyn Field, end: usize) -> Result<()> {
        let tangents: Vec<_> = (self.jvp_sq.len()..end)
            .map(|i| self.directions.get(i))
            .collect();
        if tangents.is_empty() {
            return Ok(());
        }
        let products = field.jvp(&tangents)?;
        require_finite(&products, "a Jacobian–vector product")?;
        self.cost.jvps += tangents.len();
        if self.first_jvp.is_empty() {
            self.first_jvp = products[..field.output_len()].to_vec();
        }
        self.jvp_sq
            .extend(products.chunks_exact(field.output_len()).map(norm_sq));
        Ok(())
    }

    fn measure_round(&mut self, field: &mut dyn Field, items: &[(usize, usize)]) -> Result<()> {
        let pairs: Vec<_> = items
            .iter()
            .map(|&(pair, scale)| (pair, self.recipe.etas_l2[scale]))
            .collect();
        for (displacement, &(_, scale)) in self.measure_pairs(field, &pairs)?.iter().zip(items) {
            self.displacements[scale].push(*displacement);
        }
        self.round.done += items.len();
        Ok(())
    }

    /// Mean of ‖Φ(x ± ηu) − Φ(x)‖² over both signs for each (index of u, η).
    fn measure_pairs(&mut self, field: &mut dyn Field, pairs: &[(usize, f64)]) -> Result<Vec<f64>> {
        let mut steps = Vec::with_capacity(2 * pairs.len());
        for &(index, eta_l2) in pairs {
            let direction = self.directions.get(index);
            steps.push(Perturbation {
                direction: Arc::clone(&direction),
                eta_l2,
            });
            steps.push(Perturbation {
                direction,
                eta_l2: -eta_l2,
            });
        }
        let features = field.features(&steps)?;
        self.cost.forwards += steps.len();
        let energies: Vec<f64> = features
            .chunks_exact(field.output_len())
            .map(|feature| self.displacement_sq(feature))
            .collect::<Result<_>>()?;
        Ok(energies
            .chunks_exact(2)
            .map(|both| (both[0] + both[1]) / 2.0)
            .collect())
    }

    /// ‖Φ − Φ(x)‖².
    fn displacement_sq(&self, features: &[f64]) -> Result<f64> {
        require_finite(features, "the feature of a perturbed photograph")?;
        let base = self.base.as_deref().unwrap_or_default();
        Ok(features
            .iter()
            .zip(base)
            .map(|(a, b)| (a - b).powi(2))
            .sum())
    }

    /// Whether all is known from which [`Self::end_round`] decides.
    fn round_is_complete(&self) -> bool {
        let round = &self.round;
        let needs_trace = self.wants_trace() && round.goal >= estimator::MIN_PAIRS;
        round.done == (round.goal - round.first) * round.scales.len()
            && self.rounding_sq().is_some()
            && (!needs_trace || self.reference().is_some())
    }

    /// Decides which scales go on.
    fn end_round(&mut self) {
        let pairs = self.round.goal;
        let mut scales = std::mem::take(&mut self.round.scales);
        scales.retain(|&scale| !self.is_settled(scale));
        // Random directions of which two have Ju = 0 exactly leave no doubt that J = 0, at least
        // where there is noise.
        let has_jacobian = pairs < 2 || self.jvp_sq.iter().any(|&q| q > 0.0);
        self.finished = scales.is_empty() || pairs >= self.pairs_max() || !has_jacobian;
        let goal = next_goal(pairs).min(self.pairs_max());
        self.round = Round {
            first: pairs,
            goal,
            scales,
            done: 0,
        };
    }

    fn is_settled(&self, scale: usize) -> bool {
        let pairs = self.displacements[scale].len();
        if pairs >= FLOOR_PAIRS && !self.is_reliable(&self.displacements[scale]) {
            return true;
        }
        let target = self.recipe.target_error;
        if pairs < estimator::MIN_PAIRS || target <= 0.0 || !self.recipe.family.is_random() {
            return false;
        }
        let (ratio, _) = self.ratio(scale);
        // More pairs cannot reduce the part of the error that g has: once theirs is small beside
        // the target, they have done what they can.
        ratio.se <= target * ratio.r || ratio.sampling_se <= 0.5 * target * ratio.r
    }

    fn is_reliable(&self, displacements: &[f64]) -> bool {
        let (mean, _) = mean_and_se(displacements);
        self.rounding_sq()
            .is_none_or(|rounding| mean > 0.0 && 2.0 * rounding <= FLOOR_FRACTION * mean)
    }

    /// E‖Ju‖² by the trace, once that is known.
    fn reference(&self) -> Option<Reference> {
        let trace = self.trace.as_ref()?.estimate()?;
        let len = self.directions.input_len() as f64;
        Some(Reference {
            mean: trace.trace / len,
            se: trace.se / len,
        })
    }

    /// The estimate at a scale that has at least one pair.
    fn ratio(&self, scale: usize) -> (Ratio, Basis) {
        let y = self.scaled(scale);
        let q = &self.jvp_sq;
        if self.recipe.estimator == Estimator::Paper {
            return (estimator::first_directions(&y, q), Basis::FirstDirections);
        }
        let q = &q[..y.len()];
        self.reference()
            .and_then(|g| estimator::control_variate(&y, q, g))
            .map_or_else(
                || (estimator::paired(&y, q), Basis::SameDirections),
                |ratio| (ratio, Basis::Trace),
            )
    }

    /// D/η² of the pairs of a scale.
    fn scaled(&self, scale: usize) -> Vec<f64> {
        let eta_sq = self.recipe.etas_l2[scale].powi(2);
        self.displacements[scale]
            .iter()
            .map(|d| d / eta_sq)
            .collect()
    }

    fn estimate(
        &self,
        eta_l2: f64,
        displacements: &[f64],
        ratio: Ratio,
        basis: Basis,
    ) -> ScaleEstimate {
        let prediction_sq = eta_l2 * eta_l2 * ratio.denominator;
        let is_defined = ratio.denominator > 0.0;
        ScaleEstimate {
            eta_l2,
            eta_grey_rms: grey_rms(eta_l2, self.directions.input_len()),
            r: if is_defined { ratio.r } else { f64::NAN },
            r_se: if is_defined && self.recipe.family.is_random() {
                ratio.se
            } else {
                f64::NAN
            },
            displacement_sq: if is_defined {
                ratio.r * prediction_sq
            } else {
                mean_and_se(displacements).0
            },
            prediction_sq,
            directions: 2 * displacements.len(),
            reliable: self.is_reliable(displacements),
            basis,
        }
    }

    fn unmeasured(&self, eta_l2: f64) -> ScaleEstimate {
        ScaleEstimate {
            eta_l2,
            eta_grey_rms: grey_rms(eta_l2, self.directions.input_len()),
            r: f64::NAN,
            r_se: f64::NAN,
            displacement_sq: f64::NAN,
            prediction_sq: f64::NAN,
            directions: 0,
            reliable: true,
            basis: Basis::default(),
        }
    }

    /// The profile as far as it is known.
    pub fn snapshot(&self) -> Profile {
        let scales: Vec<ScaleEstimate> = (0..self.recipe.etas_l2.len())
            .map(|scale| {
                let eta_l2 = self.recipe.etas_l2[scale];
                let displacements = &self.displacements[scale];
                if displacements.is_empty() {
                    return self.unmeasured(eta_l2);
                }
                let (ratio, basis) = self.ratio(scale);
                self.estimate(eta_l2, displacements, ratio, basis)
            })
            .collect();
        let pairs = self.displacements.iter().map(Vec::len).max().unwrap_or(0);
        let singles = (0..pairs.min(SINGLES))
            .map(|pair| self.single(pair))
            .collect();
        let reference = self.reference().unwrap_or_else(|| {
            let (mean, se) = mean_and_se(&self.jvp_sq);
            Reference {
                mean,
                se: if self.recipe.family.is_random() {
                    se
                } else {
                    0.0
                },
            }
        });
        let undefined = self.undefined();
        let summary = undefined
            .as_deref()
            .map_or_else(|| Summary::of(&scales), Summary::empty);
        Profile {
            scales,
            singles,
            mean_jvp_sq: reference.mean,
            mean_jvp_sq_se: reference.se,
            rounding_sq: self.rounding_sq().unwrap_or(f64::NAN),
            feature_norm: self
                .base
                .as_deref()
                .map_or(f64::NAN, |base| norm_sq(base).sqrt()),
            pairs,
            cost: self.cost,
            fraction: self.fraction(),
            finished: self.finished,
            summary,
            undefined,
            shown_direction: self.directions.first(),
        }
    }

    fn single(&self, pair: usize) -> Vec<f64> {
        self.recipe
            .etas_l2
            .iter()
            .zip(&self.displacements)
            .map(
                |(eta, displacements)| match (displacements.get(pair), self.jvp_sq.get(pair)) {
                    (Some(d), Some(&q)) if q > 0.0 => d / (eta * eta * q),
                    _ => f64::NAN,
                },
            )
            .collect()
    }

    fn undefined(&self) -> Option<String> {
        if self.directions.len() == Some(0) {
            let what = match self.recipe.family {
                DirectionFamily::TopLogitGradient => "the gradient of the largest logit",
                _ => "the Jacobian of the feature",
            };
            return Some(format!(
                "{what} is zero at this photograph: there is no direction"
            ));
        }
        if self.jvp_sq.is_empty() || self.jvp_sq.iter().any(|&q| q > 0.0) {
            return None;
        }
        let moves = self.displacements.iter().flatten().any(|&d| d > 0.0);
        if !self.recipe.family.has_identity_covariance() {
            return Some(if moves {
                "the derivative of the feature is zero along all of these directions, so that the \
                 linear prediction is zero"
                    .to_owned()
            } else {
                "the feature does not change along any of these directions: r would be 0/0"
                    .to_owned()
            });
        }
        Some(if moves {
            "the Jacobian of the feature is zero at this photograph, so that the linear prediction \
             is zero"
                .to_owned()
        } else {
            "the feature does not change when the photograph does: r would be 0/0".to_owned()
        })
    }

    /// Work that is still planned: an upper bound, because scales stop when their error is met.
    /// `None` before the first steps, until the length of the feature is known.
    pub fn remaining(&self) -> Option<Cost> {
        let base = self.base.as_ref()?;
        if self.finished {
            return Some(Cost::default());
        }
        let pairs_max = self.pairs_max();
        let mut left = match &self.trace {
            Some(trace) => trace.remaining(),
            None if self.wants_trace() => {
                TraceEstimator::planned_cost(self.recipe.trace, base.len())
            }
            None => Cost::default(),
        };
        let pairs_left = self
            .round
            .scales
            .iter()
            .map(|&s| pairs_max - self.displacements[s].len())
            .fold(0, usize::saturating_add);
        let probes = self.rounding.len() + self.residuals.len();
        left.forwards += 2 * ROUNDING_PROBES - probes;
        left.forwards = left.forwards.saturating_add(pairs_left.saturating_mul(2));
        left.jvps = left
            .jvps
            .saturating_add(self.jvps_max() - self.jvp_sq.len());
        Some(left)
    }

    /// Fraction of the planned work that is done or no longer needed.
    fn fraction(&self) -> f64 {
        if self.finished {
            return 1.0;
        }
        let (Some(left), Some(base)) = (self.remaining(), &self.base) else {
            return 0.0;
        };
        let planned = planned_cost(&self.recipe, self.pairs_max(), base.len());
        (1.0 - left.passes() as f64 / planned.passes() as f64).clamp(0.0, 1.0)
    }

    /// r at one exact η by the first `pairs` pairs (at most [`MEASURE_PAIRS`]), in one call of a
    /// few batches at most. Of a family that is a fixed set all directions are taken, whatever `pairs`
    /// says (at most [`MEASURE_SET_PAIRS`]).
    ///
    /// What the profile has learnt so far is used: E‖Ju‖² from the trace or from all JVPs, and the
    /// coefficient of the control variate, interpolated in log η between the scales. So the value
    /// lies on the curve although it rests on few pairs. [`Estimator::Paper`] has its own ratio of
    /// these pairs.
    ///
    /// # Errors
    /// Those of [`Profiler::step`], and [`ErrorKind::Request`] for an η that is not positive.
    pub fn measure(
        &mut self,
        field: &mut dyn Field,
        eta_l2: f64,
        pairs: usize,
    ) -> Result<ScaleEstimate> {
        check_etas(&[eta_l2])?;
        self.check_input(field)?;
        while !self.directions.is_ready() {
            self.directions.step(field, &mut self.cost)?;
        }
        let pairs = if self.recipe.family.is_random() {
            pairs.clamp(1, MEASURE_PAIRS)
        } else {
            MEASURE_SET_PAIRS
        }
        .min(self.pairs_max());
        let jvps = pairs.min(self.jvps_max());
        if pairs == 0 {
            return Ok(self.unmeasured(eta_l2));
        }
        if self.base.is_none() {
            self.measure_base(field)?;
        }
        self.measure_jvps(field, jvps)?;
        while self.rounding_sq().is_none() {
            self.probe_rounding(field)?;
        }
        let steps: Vec<_> = (0..pairs).map(|pair| (pair, eta_l2)).collect();
        let displacements = self.measure_pairs(field, &steps)?;
        let y: Vec<f64> = displacements
            .iter()
            .map(|d| d / (eta_l2 * eta_l2))
            .collect();
        let q = &self.jvp_sq[..jvps];
        if self.recipe.estimator == Estimator::Paper {
            let ratio = estimator::first_directions(&y, q);
            return Ok(self.estimate(eta_l2, &displacements, ratio, Basis::FirstDirections));
        }
        let known = self.reference().map(|g| (g, Basis::Trace)).or_else(|| {
            let (mean, se) = mean_and_se(&self.jvp_sq);
            (self.jvp_sq.len() > pairs).then_some((Reference { mean, se }, Basis::FirstDirections))
        });
        let (ratio, basis) = known
            .zip(self.coefficient_at(eta_l2))
            .and_then(|((g, basis), c)| Some((estimator::corrected(&y, q, g, c)?, basis)))
            .unwrap_or_else(|| (estimator::paired(&y, q), Basis::SameDirections));
        Ok(self.estimate(eta_l2, &displacements, ratio, basis))
    }

    /// The coefficient of the control variate at any η, from those fitted at the scales: linear in
    /// log η, constant beyond the ladder.
    fn coefficient_at(&self, eta_l2: f64) -> Option<f64> {
        let fitted: Vec<(f64, f64)> = (0..self.displacements.len())
            .filter_map(|scale| {
                let y = self.scaled(scale);
                let q = self.jvp_sq.get(..y.len())?;
                Some((
                    self.recipe.etas_l2[scale].ln(),
                    estimator::coefficient(&y, q)?,
                ))
            })
            .collect();
        let at = eta_l2.ln();
        let right = fitted.partition_point(|&(log_eta, _)| log_eta < at);
        match (
            right.checked_sub(1).map(|left| fitted[left]),
            fitted.get(right),
        ) {
            (Some((from, a)), Some(&(to, b))) => Some(a + (b - a) * (at - from) / (to - from)),
            (Some((_, c)), None) | (None, Some(&(_, c))) => Some(c),
            (None, None) => None,
        }
    }
}

/// Pairs at which scales are asked next whether they go on: doubling at first, half steps later.
fn next_goal(pairs: usize) -> usize {
    if pairs < estimator::MIN_PAIRS {
        2 * pairs
    } else if pairs.is_power_of_two() {
        pairs / 2 * 3
    } else {
        pairs / 3 * 4
    }
}

fn jvps_max(recipe: &ProfileRecipe, pairs: usize) -> usize {
    match recipe.estimator {
        Estimator::Paper => recipe.jvps.min(pairs),
        Estimator::ControlVariate => pairs,
    }
}

fn wants_trace(recipe: &ProfileRecipe, pairs: usize) -> bool {
    recipe.estimator == Estimator::ControlVariate
        && recipe.family.has_identity_covariance()
        && pairs >= estimator::MIN_PAIRS
}

fn planned_cost(recipe: &ProfileRecipe, pairs: usize, output_len: usize) -> Cost {
    let mut cost = DirectionSet::planned_cost(&recipe.family, output_len);
    let steps = pairs.saturating_mul(2 * recipe.etas_l2.len());
    cost.forwards = (1 + 2 * ROUNDING_PROBES).saturating_add(steps);
    cost.jvps = cost.jvps.saturating_add(jvps_max(recipe, pairs));
    if wants_trace(recipe, pairs) {
        let trace = TraceEstimator::planned_cost(recipe.trace, output_len);
        cost.jvps = cost.jvps.saturating_add(trace.jvps);
        cost.vjps = cost.vjps.saturating_add(trace.vjps);
    }
    cost
}

fn check(recipe: &ProfileRecipe) -> Result<()> {
    check_etas(&recipe.etas_l2)?;
    let (why, remedy) = if recipe.pairs_max == 0 {
        let why = "the number of pairs is 0".to_owned();
        (why, "Ask for one pair of directions at least".to_owned())
    } else if recipe.estimator == Estimator::Paper && recipe.jvps == 0 {
        let why = "the number of JVPs is 0".to_owned();
        (why, "Ask for one JVP at least".to_owned())
    } else if !(recipe.target_error >= 0.0 && recipe.target_error.is_finite()) {
        let why = format!("the target error is {}", recipe.target_error);
        let remedy = "Give a relative error such as 0.01, or 0 to measure all pairs";
        (why, remedy.to_owned())
    } else if let TraceMethod::HutchPlusPlus { sketch, probes } = recipe.trace
        && !((1..=HUTCH_MAX).contains(&sketch) && (2..=HUTCH_MAX).contains(&probes))
    {
        let why = format!("Hutch++ has a sketch of {sketch} and {probes} probes");
        let remedy = format!(
            "Give a sketch of 1 to {HUTCH_MAX} and 2 to {HUTCH_MAX} probes, or take the exact trace"
        );
        (why, remedy)
    } else {
        return Ok(());
    };
    Err(request_error(why, remedy))
}

fn check_etas(etas_l2: &[f64]) -> Result<()> {
    if etas_l2.is_empty() {
        return Err(request_error(
            "there is no magnitude η",
            "Give one magnitude at least",
        ));
    }
    if let Some(eta) = etas_l2.iter().find(|eta| !(**eta > 0.0 && eta.is_finite())) {
        return Err(request_error(
            format!("the magnitude η = {eta} is not a positive number"),
            "Give finite magnitudes above 0",
        ));
    }
    if !etas_l2.is_sorted_by(|a, b| a < b) {
        return Err(request_error(
            "the magnitudes η do not ascend",
            "Give each magnitude once, the smallest first",
        ));
    }
    Ok(())
}

fn request_error(why: impl std::fmt::Display, remedy: impl Into<String>) -> Error {
    let what = "cannot compute the response profile";
    Error::new(ErrorKind::Request, what, why, remedy)
}
