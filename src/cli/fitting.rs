//! The photographs of a fit: each is decoded and encoded once, and a map is found from sums or by training.

use super::compute::{Compute, STEPS};
use super::fit::FitArgs;
use super::photographs::Source;
use crate::Result;
use crate::digits::significant;
use crate::geometry::encoding::{Edit, EncodedPair, StageEncoder};
use crate::geometry::maps::reorder::reordered;
use crate::geometry::maps::trained::{
    EpochReport, HIDDEN, NetworkKind, Pair, Step, Trainer, TrainingConfig, TrainingData,
};
use crate::geometry::maps::{EditMap, FeatureMapping, FitSums, GammaChoice, MapFamily, Part};
use crate::images::{GridSymmetry, Photo};
use crate::report::{FittedPhoto, Score};

/// Bytes of feature maps that are held from the fit to the scores; of more photographs, those beyond are read again.
const HELD_BYTES_MAX: usize = 1 << 30;

/// The photographs of a fit with what they are for.
pub(super) struct Photographs<'a> {
    pub(super) args: &'a FitArgs,
    pub(super) sources: &'a [Source],
    pub(super) labels: Vec<String>,
    pub(super) parts: &'a [Part],
    pub(super) encoder: StageEncoder,
}

/// What one pass over the photographs leaves.
#[derive(Default)]
pub(super) struct Read {
    pub(super) photographs: Vec<FittedPhoto>,
    /// Feature maps of the whole photographs, as far as there is room for them.
    pub(super) held: Vec<Option<Pair>>,
    /// Hashes of the training photographs' edits by an outside editor.
    pub(super) edit_hashes: Vec<String>,
}

/// A fitted map.
pub(super) struct FittedMap {
    pub(super) map: EditMap,
    pub(super) choice: Option<GammaChoice>,
    pub(super) vectors: usize,
}

impl Photographs<'_> {
    /// The whole of a photograph with its edit, and whatever `more` makes of the two.
    fn opened<T>(
        &self,
        index: usize,
        more: impl FnOnce(&Photo, Edit<'_>) -> Result<T>,
    ) -> Result<(Photo, Option<Photo>, EncodedPair, T)> {
        let (photo, edited) = self.sources[index].open(self.args.compute.background)?;
        let edit = match &edited {
            Some(edited) => Edit::To(edited),
            None => Edit::By(&self.args.manipulation),
        };
        let pair = self.encoder.pair(&photo, edit)?;
        let more = more(&photo, edit)?;
        Ok((photo, edited, pair, more))
    }

    /// Decodes and encodes each photograph once; `take` gets the whole of each with its part, and then the crops of
    /// those to fit to. Crops go where their photograph goes, so that no part of a held-out photograph is ever fitted to.
    fn read(
        &self,
        compute: &Compute,
        mut take: impl FnMut(Part, &Pair) -> Result<()>,
    ) -> Result<Read> {
        let mut read = Read::default();
        let mut held_bytes = 0;
        for (index, &part) in self.parts.iter().enumerate() {
            let label = &self.labels[index];
            compute.bar.set_message(format!("{label} · encoding"));
            let crops = self.args.crop_set().filter(|_| part == Part::Train);
            let (photo, edited, whole, crops) = self.opened(index, |photo, edit| {
                let pairs = crops.map(|crops| self.encoder.crop_pairs(photo, edit, &crops));
                pairs.transpose()
            })?;
            take(part, &whole.features)?;
            for pair in crops.iter().flatten() {
                take(part, pair)?;
            }
            if part == Part::Train {
                read.edit_hashes.extend(edited.map(|edited| edited.sha256));
            }
            read.photographs.push(FittedPhoto {
                name: label.clone(),
                sha256: photo.sha256,
                part,
                steps: whole.steps,
            });
            let pair = whole.features;
            held_bytes += 4 * (pair.original.vectors().len() + pair.edited.vectors().len());
            read.held
                .push((held_bytes <= HELD_BYTES_MAX).then_some(pair));
            compute.bar.inc(STEPS);
        }
        Ok(read)
    }

    /// A map in closed form, from sums alone.
    pub(super) fn solve(
        &self,
        family: MapFamily,
        shape: [usize; 3],
        reorder: Vec<GridSymmetry>,
        compute: &Compute,
    ) -> Result<(FittedMap, Read)> {
        let FitArgs { gamma, raw, .. } = self.args;
        let mut train = if family == MapFamily::PerPosition {
            FitSums::with_positions(shape, reorder.clone())?
        } else {
            FitSums::new(shape[0], reorder.clone())
        };
        let mut validation = FitSums::new(shape[0], reorder);
        let read = self.read(compute, |part, pair| match part {
            Part::Train => train.add(&pair.original, &pair.edited),
            Part::Validation => validation.add(&pair.original, &pair.edited),
            Part::HeldOut => Ok(()),
        })?;
        compute.bar.set_message("fitting");
        let (kind, choice) = family.choose(*gamma, !raw, &mut train, &mut validation)?;
        let fitted = FittedMap {
            map: train.fit(kind, !raw)?,
            choice,
            vectors: train.moments()?.count as usize,
        };
        compute.bar.inc(STEPS);
        Ok((fitted, read))
    }

    /// A map that is trained on all pairs at once.
    pub(super) fn train(
        &self,
        kind: NetworkKind,
        reorder: Vec<GridSymmetry>,
        compute: &Compute,
    ) -> Result<(FittedMap, Read)> {
        let mut data = TrainingData::default();
        let read = self.read(compute, |part, pair| {
            let pairs = match part {
                Part::Train => &mut data.train,
                Part::Validation => &mut data.validation,
                Part::HeldOut => &mut data.held_out,
            };
            pairs.push(pair.clone());
            Ok(())
        })?;
        let vectors = data
            .train
            .iter()
            .map(|pair| pair.original.positions())
            .sum();
        let config = TrainingConfig {
            loss: self.args.loss,
            rate: self.args.rate,
            epochs: self.args.epochs,
            seed: self.args.seed,
            ..TrainingConfig::default()
        };
        let is_normalised = !self.args.raw;
        let device = &compute.device;
        let mut trainer = Trainer::new(kind, HIDDEN, config, reorder, is_normalised, data, device)?;
        loop {
            match trainer.step()? {
                Step::Finished => break,
                Step::Epoch(report) => {
                    let EpochReport {
                        epoch,
                        validation_loss,
                        ..
                    } = report;
                    compute.bar.inc(STEPS / config.epochs as u64);
                    let loss = significant(validation_loss, 3);
                    let message = format!("training · epoch {epoch}, validation loss {loss}");
                    compute.bar.set_message(message);
                }
                Step::Batch { .. } => {}
            }
        }
        let fitted = FittedMap {
            map: trainer.map()?,
            choice: None,
            vectors,
        };
        Ok((fitted, read))
    }

    /// The map beside its baselines at each whole photograph. Those that are not held are read again.
    pub(super) fn scores(&self, map: &EditMap, held: Vec<Option<Pair>>) -> Result<Vec<Score>> {
        let mut scores = Vec::new();
        for (index, pair) in held.into_iter().enumerate() {
            let pair = match pair {
                Some(pair) => pair,
                None => self.opened(index, |_, _| Ok(()))?.2.features,
            };
            let candidates = [
                ("identity", pair.original.clone()),
                ("reorder", reordered(&pair.original, &map.reorder)?),
                ("map", map.map(&pair.original)?),
            ];
            let (label, part) = (&self.labels[index], self.parts[index]);
            for (method, features) in &candidates {
                scores.push(Score::of(label, part, method, features, &pair.edited)?);
            }
        }
        Ok(scores)
    }
}
