//! The edit: what is wanted of it, what is known.

use std::sync::Arc;

use super::{State, default_stage};
use crate::geometry::maps::{Cut, Part};
use crate::images::{Manipulation, Photo};
use crate::recipe::{EditRecipe, LearningSet, MapFamily};
use crate::worker::edit::{CutRun, EditRun, InvertedRun, PictureScores};
use crate::worker::{Command, Lane};

/// Random crops of each photograph at the start: with three photographs enough vectors for every stage of the bundled
/// encoder, encoded in about half a second (ours).
const CROPS: usize = 8;

/// The edit of the first visit: every pixel changes and nothing moves (Krey, Neukirch, Strodthoff 2026, hue +60°).
const FIRST_EDIT: Manipulation = Manipulation::Hue { degrees: 60.0 };

/// How feature maps are seen as pictures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SeenBy {
    /// Through the decoder that was trained for the stage.
    #[default]
    Decoder,
    /// By gradient through the encoder.
    Inversion,
}

/// A question to the worker about one photograph.
#[derive(Clone, Debug)]
struct Asked<T> {
    photo: Arc<Photo>,
    what: T,
}

/// What is wanted of an edit, and what is known of it.
#[derive(Clone, Debug)]
pub struct EditState {
    /// The map that is wanted; its encoder is the one that leads.
    pub recipe: EditRecipe,
    /// What is cut.
    pub cut: Cut,
    /// The rank that is wanted; `None` before the first map, which then says what suits it.
    pub rank: Option<usize>,
    /// How feature maps are seen.
    pub seen_by: SeenBy,
    /// The newest fitted map.
    pub fitted: Option<Arc<EditRun>>,
    /// The newest answer for a rank.
    pub shown: Option<Arc<CutRun>>,
    /// Scores of decoded pictures at some ranks, by cut, ranks ascending.
    pub seen_scores: Vec<(Cut, usize, PictureScores)>,
    /// The newest pictures by gradient.
    pub inverted: Option<Arc<InvertedRun>>,
    fit_asked: Option<Asked<EditRecipe>>,
    rank_asked: Option<(EditRecipe, Cut, usize)>,
    inversion_asked: Option<(EditRecipe, Cut, usize)>,
}

impl EditState {
    pub(super) fn new(encoder: &'static crate::encoders::EncoderSpec) -> Self {
        Self {
            recipe: EditRecipe {
                encoder: encoder.name.to_string(),
                stage: default_stage(encoder),
                manipulations: vec![FIRST_EDIT],
                learnt_on: LearningSet::default(),
                crops: CROPS,
                seed: 0,
                family: MapFamily::default(),
                gamma: None,
                normalised: true,
            },
            cut: Cut::Edit,
            rank: None,
            seen_by: SeenBy::default(),
            fitted: None,
            shown: None,
            seen_scores: Vec::new(),
            inverted: None,
            fit_asked: None,
            rank_asked: None,
            inversion_asked: None,
        }
    }

    /// The fitted map, where it answers what is wanted of the photograph.
    fn current(&self, photo: &Photo) -> Option<&Arc<EditRun>> {
        (self.fitted.as_ref())
            .filter(|run| run.recipe == self.recipe && run.image_sha256 == photo.sha256)
    }

    /// The largest rank of the fitted map; `None` where it has no matrix, or there is none.
    pub fn full_rank(&self) -> Option<usize> {
        let sweep = self.fitted.as_ref()?.sweep(self.cut)?;
        Some(sweep.values.len())
    }

    /// The rank that is wanted, within what there is.
    pub fn rank_within(&self) -> Option<usize> {
        let full = self.full_rank()?;
        Some(self.rank.unwrap_or_else(|| default_rank(full)).min(full))
    }

    /// The rank after a double click.
    pub fn rank_default(&self) -> Option<usize> {
        self.full_rank().map(default_rank)
    }

    /// What scores at the photograph on screen are: of training or held out.
    pub fn part_name(&self) -> &'static str {
        match self.fitted.as_ref().map(|run| run.part) {
            Some(Part::Train) => "train",
            _ => "held out",
        }
    }

    pub(super) fn take_seen(&mut self, cut: Cut, rank: usize, scores: PictureScores) {
        let is_before = |(its, at, _): &(Cut, usize, PictureScores)| *its != cut || *at < rank;
        let place = self.seen_scores.iter().position(|entry| !is_before(entry));
        let place = place.unwrap_or(self.seen_scores.len());
        self.seen_scores.insert(place, (cut, rank, scores));
    }

    /// Whether the fitted map has a decoder.
    pub fn has_decoder(&self) -> bool {
        self.fitted.as_ref().is_some_and(|run| run.seen.is_some())
    }

    /// How feature maps are seen: by gradient where there is no decoder and that was asked for.
    pub fn is_inverting(&self) -> bool {
        self.seen_by == SeenBy::Inversion
    }
}

/// Whether one recipe's map follows from the other's sums, without encoding again.
fn is_same_but_for_fit(a: &EditRecipe, b: &EditRecipe) -> bool {
    *a == EditRecipe {
        family: a.family,
        gamma: a.gamma,
        normalised: a.normalised,
        ..b.clone()
    }
}

/// Half of the ranks in logarithmic terms: high enough to show the edit, low enough that something is cut.
fn default_rank(full: usize) -> usize {
    (full as f64).sqrt().round().max(1.0) as usize
}

impl State {
    /// Whether what is shown of the edit answers an older question.
    pub fn is_edit_stale(&self) -> bool {
        let photo = self.photo.as_ref();
        photo.is_none_or(|photo| self.edit.current(photo).is_none())
    }

    /// Changes what is wanted of the edit.
    pub fn change_edit(&mut self, change: impl FnOnce(&mut EditRecipe)) {
        change(&mut self.edit.recipe);
    }

    /// Moves the rank.
    pub fn set_rank(&mut self, rank: usize) {
        if let Some(full) = self.edit.full_rank() {
            self.edit.rank = Some(rank.min(full));
        }
    }

    /// Chooses what is cut.
    pub fn set_cut(&mut self, cut: Cut) {
        self.edit.cut = cut;
    }

    /// Chooses how feature maps are seen.
    pub fn see_by(&mut self, seen_by: SeenBy) {
        self.edit.seen_by = seen_by;
        if seen_by == SeenBy::Decoder {
            self.edit.inversion_asked = None;
            if self.lane(Lane::Invert).busy {
                self.commands.push(Command::Cancel(Lane::Invert));
            }
        }
    }

    /// Asks again for what failed or was stopped.
    pub fn edit_again(&mut self) {
        self.edit.fit_asked = None;
        self.edit.inversion_asked = None;
    }

    /// With the workspace of edits in front: asks for what is wanted and was not asked for yet. What must be encoded anew waits until
    /// the pointer lets go, while `is_held`.
    pub(super) fn want_edit(&mut self, is_held: bool) {
        let Some(photo) = self.photo.clone() else {
            return;
        };
        let spec = self.spec();
        if *spec.name != self.edit.recipe.encoder {
            self.edit.recipe.encoder = spec.name.to_string();
            self.edit.recipe.stage = default_stage(spec);
        }
        if self.edit.current(&photo).is_none() {
            let recipe = self.edit.recipe.clone();
            let is_asked = (self.edit.fit_asked.as_ref())
                .is_some_and(|asked| Arc::ptr_eq(&asked.photo, &photo) && asked.what == recipe);
            let is_cheap = (self.edit.fitted.as_ref()).is_some_and(|run| {
                run.image_sha256 == photo.sha256 && is_same_but_for_fit(&run.recipe, &recipe)
            });
            if !is_asked && (is_cheap || !is_held) {
                self.commands.push(Command::Edit(recipe.clone()));
                self.edit.fit_asked = Some(Asked {
                    photo,
                    what: recipe,
                });
                self.edit.rank_asked = None;
                self.edit.inversion_asked = None;
            }
            return;
        }
        // A map without a matrix is seen whole.
        let rank = self.edit.rank_within().unwrap_or_default();
        let wanted = (self.edit.recipe.clone(), self.edit.cut, rank);
        if self.edit.rank_asked.as_ref() != Some(&wanted) {
            let (recipe, cut, rank) = wanted.clone();
            self.commands.push(Command::Rank { recipe, cut, rank });
            self.edit.rank_asked = Some(wanted.clone());
        }
        if self.edit.is_inverting() && self.edit.inversion_asked.as_ref() != Some(&wanted) {
            let (recipe, cut, rank) = wanted.clone();
            self.commands.push(Command::Invert { recipe, cut, rank });
            self.edit.inversion_asked = Some(wanted);
        }
    }

    pub(super) fn edit_fitted(&mut self, run: Arc<EditRun>) {
        self.edit.inverted = None;
        self.edit.shown = None;
        self.edit.seen_scores.clear();
        self.edit.rank_asked = None;
        self.edit.inversion_asked = None;
        self.edit.fitted = Some(run);
    }

    /// Device or photograph changed: what was computed says nothing of the new ones, and all is asked anew.
    pub(super) fn outdate_edit(&mut self) {
        self.edit.fit_asked = None;
        self.edit.rank_asked = None;
        self.edit.inversion_asked = None;
        self.edit.fitted = None;
        self.edit.shown = None;
        self.edit.seen_scores.clear();
        self.edit.inverted = None;
    }
}
