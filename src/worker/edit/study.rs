//! What is known of an edit at a photograph: encoded pairs as sums, the fitted map, and what any rank of it is.

use std::sync::Arc;

use super::learning::Learning;
use super::run::{
    CutRun, EditRun, EncodedScores, FeatureScores, Member, PictureScores, Seen, SeenFeature, Sweep,
    cosine_grid, scale_low, spread_ranks,
};
use crate::features::FeatureMap;
use crate::geometry::decode::Inversion;
use crate::geometry::decode::inversion::target_of;
use crate::geometry::encoding::{Edit, EncodedPair};
use crate::geometry::maps::readout::{bias_readout, displacement_readout};
use crate::geometry::maps::reorder::{reordered, symmetries};
use crate::geometry::maps::trained::Pair;
use crate::geometry::maps::{
    Cut, Decomposition, EditMap, FeatureMapping, FitSums, GammaChoice, MapFile, Part, Truncation,
    data_sha256,
};
use crate::geometry::spectrum::SpectrumReadout;
use crate::images::crop::CropSet;
use crate::images::manipulations::edit_in_order;
use crate::images::{Background, Manipulation, Photo, Picture};
use crate::metrics::edit_mask::edit_mask;
use crate::recipe::{EditRecipe, LearningSet, MapFamily};
use crate::worker::bench::Bench;
use crate::worker::engine::{Look, StageView};
use crate::worker::profile_job::photo_and_device;
use crate::{Error, ErrorKind, Result};

/// Up to so many ranks every one is scored.
const RANKS_ALL: usize = 128;
/// Ratio of neighbouring ranks that are scored of more.
const RANK_RATIO: f64 = 1.05;

/// Both cuts, the default first.
pub(super) const CUTS: [Cut; 2] = [Cut::Edit, Cut::Map];

/// An edit at a photograph.
pub(in crate::worker) struct EditStudy {
    recipe: EditRecipe,
    photo: Arc<Photo>,
    background: Background,
    pub(super) stage: Box<dyn StageView>,
    image_steps: Vec<String>,
    original: Arc<Picture>,
    target: Arc<Picture>,
    /// The edited picture at the decoder's side.
    small_target: Option<Arc<Picture>>,
    /// What the encoder makes of the edited picture.
    target_look: Option<Look>,
    pub(super) features: FeatureMap,
    edited: FeatureMap,
    mask: Arc<[bool]>,
    learning: Learning,
    members: Vec<Member>,
    /// SHA-256 of the training photographs' files.
    train_hashes: Vec<String>,
    /// And of their edits by an outside editor.
    edit_hashes: Vec<String>,
    /// Photographs of the set that are encoded.
    encoded: usize,
    train: FitSums,
    validation: FitSums,
    /// Feature maps of held-out photographs and their edits.
    held_out: Vec<(FeatureMap, FeatureMap)>,
    fitted: Option<FittedEdit>,
    /// The search for the unedited features, then for mapped ones.
    pub(super) inversions: [Option<Inversion>; 2],
}

/// A solved map with both of its cuts at the photograph.
struct FittedEdit {
    map: EditMap,
    choice: Option<GammaChoice>,
    truncations: Vec<(Cut, Arc<Decomposition>, Truncation)>,
}

impl EditStudy {
    /// Encodes the photograph and its edit.
    pub(super) fn new(
        recipe: EditRecipe,
        photo: Arc<Photo>,
        background: Background,
        mut stage: Box<dyn StageView>,
    ) -> Result<Self> {
        let learning = Learning::of(&recipe, &photo)?;
        let outside = learning.own_edit(background)?;
        let edits = manipulations(&recipe);
        let edit = outside.as_ref().map_or(Edit::By(edits), Edit::To);
        let EncodedPair {
            features: pair,
            original_picture: original,
            edited_picture: target,
            steps: image_steps,
        } = stage.pair(&photo, edit)?;
        let (features, edited_features) = (pair.original, pair.edited);
        // Where the edit turns the picture, the mask shows what it does besides.
        let turns: Vec<Manipulation> = (edits.iter())
            .filter(|edit| edit.symmetry().is_some())
            .cloned()
            .collect();
        let turned = edit_in_order(&turns, &original, 0)?;
        let [channels, rows, columns] = edited_features.shape();
        let mask = edit_mask(&turned, &target, rows, columns)?;
        let reorder = symmetries(edits);
        Ok(Self {
            photo,
            background,
            stage,
            image_steps,
            original: Arc::new(original),
            target: Arc::new(target),
            small_target: None,
            target_look: None,
            features,
            edited: edited_features,
            mask: mask.into(),
            members: Vec::with_capacity(learning.len()),
            learning,
            train_hashes: Vec::new(),
            edit_hashes: Vec::new(),
            encoded: 0,
            train: FitSums::new(channels, reorder.clone()),
            validation: FitSums::new(channels, reorder),
            held_out: Vec::new(),
            fitted: None,
            inversions: [None, None],
            recipe,
        })
    }

    /// Whether what is encoded is what a recipe at a photograph needs: only the fit may differ.
    pub(in crate::worker) fn fits(
        &self,
        recipe: &EditRecipe,
        photo: &Arc<Photo>,
        background: Background,
    ) -> bool {
        let EditRecipe {
            encoder,
            stage,
            manipulations,
            learnt_on,
            crops,
            seed,
            family: _,
            gamma: _,
            normalised: _,
        } = recipe;
        let own = &self.recipe;
        (Arc::ptr_eq(&self.photo, photo) || self.photo == *photo)
            && self.background == background
            && own.encoder == *encoder
            && own.stage == *stage
            && own.manipulations == *manipulations
            && own.learnt_on == *learnt_on
            && own.crops == *crops
            && own.seed == *seed
    }

    /// Whether this study uses an encoder.
    pub(in crate::worker) fn uses(&self, encoder: &str) -> bool {
        self.recipe.encoder == encoder
    }

    /// Whether a map was solved for exactly this recipe.
    pub(super) fn is_solved_for(&self, recipe: &EditRecipe) -> bool {
        self.fitted.is_some() && self.recipe == *recipe
    }

    /// Photographs of the set that are encoded, and all of them.
    pub(super) fn encoded(&self) -> [usize; 2] {
        [self.encoded, self.learning.len()]
    }

    /// Encodes the next photograph of the set with its crops and their edits; nothing is left to do once
    /// [`EditStudy::encoded`] says so.
    pub(super) fn encode_next(&mut self) -> Result<()> {
        let index = self.encoded;
        let (name, part) = self.learning.member(index);
        let member = Member {
            name: name.to_owned(),
            part,
        };
        let (photo, outside) = self.learning.open(index, self.background)?;
        let edit = (outside.as_ref()).map_or(Edit::By(manipulations(&self.recipe)), Edit::To);
        let mut pairs = vec![self.stage.pair(&photo, edit)?.features];
        if part == Part::Train && self.recipe.crops > 0 {
            let crops = self.crops();
            pairs.extend(self.stage.crop_pairs(&photo, edit, &crops)?);
        }
        if part == Part::Train {
            self.train_hashes.push(photo.sha256.clone());
            self.edit_hashes.extend(outside.map(|edited| edited.sha256));
        }
        self.encoded += 1;
        for Pair { original, edited } in pairs {
            match part {
                Part::Train => self.train.add(&original, &edited)?,
                Part::Validation => self.validation.add(&original, &edited)?,
                Part::HeldOut => self.held_out.push((original, edited)),
            }
        }
        self.members.push(member);
        Ok(())
    }

    /// The random crops of each training photograph.
    fn crops(&self) -> CropSet {
        CropSet {
            count: self.recipe.crops,
            scale: CropSet::SCALE,
            seed: self.recipe.seed,
        }
    }

    /// Solves for the map of a recipe that [`EditStudy::fits`], from the sums alone, and prepares both cuts.
    pub(super) fn solve(&mut self, recipe: &EditRecipe) -> Result<()> {
        self.fitted = None;
        self.inversions[1] = None;
        self.recipe = recipe.clone();
        let (map, choice) = self.solved(recipe.family, recipe.gamma)?;
        let mut truncations = Vec::new();
        if let Some(affine) = map.affine() {
            for cut in CUTS {
                let decomposition = Arc::new(Decomposition::new(affine, cut)?);
                let truncation = map.truncation(Arc::clone(&decomposition), &self.features)?;
                truncations.push((cut, decomposition, truncation));
            }
        }
        self.fitted = Some(FittedEdit {
            map,
            choice,
            truncations,
        });
        Ok(())
    }

    /// A map of a kind, γ given or chosen on validation photographs.
    fn solved(
        &mut self,
        family: MapFamily,
        gamma: Option<f64>,
    ) -> Result<(EditMap, Option<GammaChoice>)> {
        let normalised = self.recipe.normalised;
        // Without validation photographs a middle γ, which the reader can move.
        let gamma = gamma.or_else(|| {
            let candidates = family.gammas();
            let is_blind = self.validation.pictures() == 0;
            candidates
                .get(candidates.len() / 2)
                .copied()
                .filter(|_| is_blind)
        });
        let (kind, choice) =
            family.choose(gamma, normalised, &mut self.train, &mut self.validation)?;
        let map = self.train.fit(kind, normalised)?;
        Ok((map, choice))
    }

    /// Everything that the window shows of the solved map but a cut.
    pub(super) fn report(&mut self, device: &str) -> Result<EditRun> {
        let fitted = self.fitted.take().ok_or_else(unsolved)?;
        let report = self.report_of(&fitted, device);
        self.fitted = Some(fitted);
        report
    }

    /// Adds the next cut's scores at all ranks to what [`EditStudy::report`] has said; false where there is none left.
    pub(super) fn add_sweep(&mut self, report: &mut EditRun) -> Result<bool> {
        let at = report.sweeps.len();
        if at >= self.truncations().len() {
            return Ok(false);
        }
        report.sweeps.push(self.sweep(at)?);
        Ok(true)
    }

    fn truncations(&self) -> &[(Cut, Arc<Decomposition>, Truncation)] {
        (self.fitted.as_ref()).map_or(&[], |fitted| &fitted.truncations)
    }

    fn report_of(&mut self, fitted: &FittedEdit, device: &str) -> Result<EditRun> {
        let mask = Arc::clone(&self.mask);
        let scores =
            |features: &FeatureMap, edited: &FeatureMap| FeatureScores::of(features, edited, &mask);
        let turned = reordered(&self.features, &fitted.map.reorder)?;
        let full = fitted.map.map(&self.features)?;
        // On the turned grid the identity has another shape where the grid is not square.
        let identity = if self.features.shape() == self.edited.shape() {
            scores(&self.features, &self.edited)?
        } else {
            scores(&turned, &self.edited)?
        };
        let (reorder, full_scores) = (scores(&turned, &self.edited)?, scores(&full, &self.edited)?);
        let (features, edited) = (self.features.clone(), self.edited.clone());
        let seen = match self.seen(&features)? {
            None => None,
            Some(original) => {
                let (target, full) = (self.seen(&edited)?, self.seen(&full)?);
                target.zip(full).map(|(target, full)| Seen {
                    original,
                    target,
                    full,
                })
            }
        };
        let identity_cosines = cosine_grid(&turned, &self.edited)?;
        let full_cosines = cosine_grid(&full, &self.edited)?;
        let displacement = displacement_readout(&turned, &self.edited, &full)?;
        let bias = match fitted.map.affine() {
            Some(affine) => {
                let prepared = fitted.map.prepared(&self.features)?;
                Some(bias_readout(affine, &prepared)?)
            }
            None => None,
        };
        let (table, table_photographs) = self.table()?;
        let vectors = self.train.moments()?.count as usize;
        let [passes, recalled] = self.stage.passes();
        let spec = self.stage.spec();
        let stage = spec.stages.get(self.recipe.stage);
        let stage = stage.map(|stage| stage.name.clone()).unwrap_or_default();
        let crops = (self.recipe.crops > 0).then(|| self.crops());
        let hashes = self.train_hashes.iter().chain(&self.edit_hashes);
        let hashes = hashes.map(String::as_str);
        let file = MapFile {
            encoder: self.recipe.encoder.clone(),
            weights_id: self.stage.weights_id().to_owned(),
            stage: stage.clone(),
            manipulations: manipulations(&self.recipe).to_vec(),
            data_sha256: data_sha256(hashes, crops.as_ref()),
            photographs: self.train_hashes.len(),
            vectors,
            map: fitted.map.clone(),
        };
        Ok(EditRun {
            recipe: self.recipe.clone(),
            image: self.photo.name.clone(),
            image_sha256: self.photo.sha256.clone(),
            image_steps: self.image_steps.clone(),
            encoder_title: spec.title.to_string(),
            weights_id: self.stage.weights_id().to_owned(),
            device: device.to_owned(),
            stage,
            shape: self.edited.shape(),
            original: Arc::clone(&self.original),
            target: Arc::clone(&self.target),
            mask,
            part: match self.recipe.learnt_on {
                LearningSet::Own => Part::Train,
                _ => Part::HeldOut,
            },
            members: self.members.clone(),
            pairs: self.train.pictures(),
            vectors,
            kind: fitted.map.kind,
            choice: fitted.choice.clone(),
            identity,
            reorder,
            full: full_scores,
            scale_low: scale_low(&identity_cosines),
            identity_cosines,
            full_cosines,
            bias,
            displacement,
            outside: self.learning.report().map(str::to_owned),
            sweeps: Vec::new(),
            seen,
            table,
            table_photographs,
            decoder: self.stage.decoder().cloned(),
            lpips: self.stage.lpips_note(),
            passes,
            recalled,
            file: Arc::new(file),
        })
    }

    fn sweep(&mut self, at: usize) -> Result<Sweep> {
        let Some(fitted) = &mut self.fitted else {
            return Err(unsolved());
        };
        let (cut, decomposition, truncation) = &mut fitted.truncations[at];
        let values = decomposition.values().to_vec();
        let ranks = if values.len() <= RANKS_ALL {
            (0..=values.len()).collect()
        } else {
            spread_ranks(values.len(), RANK_RATIO)
        };
        let mut scores = Vec::with_capacity(ranks.len());
        // The truncation walks up from rank 0.
        for rank in ranks {
            let mapped = fitted.map.undone(truncation.at(rank)?)?;
            let score = FeatureScores::of(&mapped, &self.edited, &self.mask)?;
            scores.push((rank, score));
        }
        Ok(Sweep {
            cut: *cut,
            readout: SpectrumReadout::of(&values),
            values,
            scores,
        })
    }

    /// Mean scores of every kind of map over the held-out photographs; the one on screen is one of them unless the
    /// map was learnt from it.
    fn table(&mut self) -> Result<(Vec<(String, FeatureScores)>, usize)> {
        let mut unseen = self.held_out.clone();
        if self.recipe.learnt_on != LearningSet::Own {
            unseen.push((self.features.clone(), self.edited.clone()));
        }
        if unseen.is_empty() {
            return Ok((Vec::new(), 0));
        }
        let reorder = symmetries(manipulations(&self.recipe));
        let mut table = Vec::new();
        let mut add = |name: String, map: &dyn Fn(&FeatureMap) -> Result<FeatureMap>| {
            let scores = unseen.iter().map(|(original, edited)| {
                // Masks differ from photograph to photograph and are left out of means.
                FeatureScores::of(&map(original)?, edited, &vec![false; edited.positions()])
            });
            table.push((name, mean(&scores.collect::<Result<Vec<_>>>()?)));
            Ok::<(), Error>(())
        };
        // The identity of turned pictures is compared in place, so that the grid must be square.
        let is_square = |map: &FeatureMap| map.shape()[1] == map.shape()[2];
        if unseen.iter().all(|(original, _)| is_square(original)) {
            add("identity".to_owned(), &|features| Ok(features.clone()))?;
        }
        if !reorder.is_empty() {
            add("reorder alone".to_owned(), &|features| {
                reordered(features, &reorder)
            })?;
        }
        for family in MapFamily::SHARED {
            if family == MapFamily::Identity {
                continue;
            }
            // A kind that has no solution for so few vectors has no row.
            let Ok((map, _)) = self.solved(family, None) else {
                continue;
            };
            add(map.kind.title(), &|features| map.map(features))?;
        }
        Ok((table, unseen.len()))
    }

    /// The features of the photograph under the solved map cut to a rank; the whole map's where it has no matrix.
    pub(super) fn mapped(&mut self, cut: Cut, rank: usize) -> Result<FeatureMap> {
        let fitted = self.fitted.as_mut().ok_or_else(unsolved)?;
        match fitted.truncations.iter_mut().find(|(its, ..)| *its == cut) {
            Some((_, _, truncation)) => fitted.map.undone(truncation.at(rank)?),
            None => fitted.map.map(&self.features),
        }
    }

    /// The solved map cut to a rank.
    pub(super) fn cut(&mut self, cut: Cut, rank: usize) -> Result<CutRun> {
        let mapped = self.mapped(cut, rank)?;
        Ok(CutRun {
            recipe: self.recipe.clone(),
            cut,
            rank,
            scores: FeatureScores::of(&mapped, &self.edited, &self.mask)?,
            cosines: cosine_grid(&mapped, &self.edited)?,
            displacement: displacement_readout(&self.turned()?, &self.edited, &mapped)?,
            seen: self.seen(&mapped)?,
        })
    }

    /// The features of the photograph on the grid of its edit.
    fn turned(&self) -> Result<FeatureMap> {
        reordered(&self.features, &symmetries(manipulations(&self.recipe)))
    }

    /// A search for a picture with these features: from the decoder's picture where there is one, else from grey.
    pub(super) fn search(&mut self, features: &FeatureMap) -> Result<Inversion> {
        let mut search = self.stage.invert(&target_of(features))?;
        if let Some(picture) = self.stage.decode(features)? {
            let side = self.stage.spec().side_px;
            search.start_from(&picture.resized(side, side)?.planes())?;
        }
        Ok(search)
    }

    /// A feature map through the decoder, if there is one.
    fn seen(&mut self, features: &FeatureMap) -> Result<Option<SeenFeature>> {
        let Some(picture) = self.stage.decode(features)? else {
            return Ok(None);
        };
        self.compared(picture).map(Some)
    }

    /// A picture and the edited one, both as the encoder sees them.
    fn encoded_scores(&mut self, picture: &Picture) -> Result<EncodedScores> {
        let target = match self.target_look.take() {
            Some(look) => look,
            None => self.stage.look(&self.target)?,
        };
        let side = self.target.width();
        let look = self.stage.look(&picture.resized(side, side)?)?;
        let scores = EncodedScores::of(&look, &target);
        self.target_look = Some(target);
        scores
    }

    /// A picture with its scores against the edited one at its side.
    pub(super) fn compared(&mut self, picture: Picture) -> Result<SeenFeature> {
        let side = [picture.width(), picture.height()];
        let target = if side == [self.target.width(), self.target.height()] {
            Arc::clone(&self.target)
        } else {
            let known = self.small_target.as_ref();
            match known.filter(|known| side == [known.width(), known.height()]) {
                Some(known) => Arc::clone(known),
                None => {
                    let small = Arc::new(self.target.resized(side[0], side[1])?);
                    self.small_target = Some(Arc::clone(&small));
                    small
                }
            }
        };
        let lpips = self.stage.lpips(&picture, &target)?;
        let encoded = self.encoded_scores(&picture)?;
        Ok(SeenFeature {
            scores: PictureScores::of(&picture, &target, lpips)?,
            encoded,
            picture: Arc::new(picture),
        })
    }
}

fn mean(scores: &[FeatureScores]) -> FeatureScores {
    let average = |values: Vec<f64>| {
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    FeatureScores {
        mdncs: average(scores.iter().filter_map(|score| score.mdncs).collect()),
        mdncs_masked: None,
        mse: average(scores.iter().map(|score| score.mse).collect()).unwrap_or(f64::NAN),
    }
}

/// What we do to the pictures.
fn manipulations(recipe: &EditRecipe) -> &[Manipulation] {
    match recipe.learnt_on {
        LearningSet::Pairs(_) => &[],
        _ => &recipe.manipulations,
    }
}

/// The edit at the bench, if a map was solved for exactly this recipe at the photograph.
///
/// # Errors
/// Where there is no photograph or device; [`ErrorKind::Cancelled`] where there is no such map yet.
pub(super) fn solved<'a>(
    bench: &'a mut Bench,
    recipe: &EditRecipe,
    asked: &str,
) -> Result<&'a mut EditStudy> {
    let (photo, _) = photo_and_device(bench, asked)?;
    let background = bench.background;
    let study = bench
        .edit
        .as_mut()
        .filter(|study| study.fits(recipe, &photo, background) && study.is_solved_for(recipe));
    study.ok_or_else(unsolved)
}

/// Whoever asks for a rank before there is a map is answered by the fit that is under way.
fn unsolved() -> Error {
    Error::new(
        ErrorKind::Cancelled,
        "cannot cut the map",
        "it is not fitted yet",
        "",
    )
}
