//! A fitted edit as what is written of it.

use super::run::{EditRun, FeatureScores, PictureScores};
use crate::geometry::maps::Cut;
use crate::report::{Agreement, EditFiles, MapScore, PictureAgreement, RankScore, SweepRun};

impl EditRun {
    /// What is written of the edit; `seen` are scores of decoded pictures, as far as they were drawn. The hash of the map is left empty.
    pub fn to_write(&self, seen: &[(Cut, usize, PictureScores)]) -> EditFiles {
        let maps = self.table.iter().map(|(kind, scores)| MapScore {
            kind: kind.clone(),
            photographs: self.table_photographs,
            mdncs_features: scores.mdncs,
            mse_features: scores.mse,
        });
        EditFiles {
            maps: maps.collect(),
            sweep: self.ranks_to_write(seen),
        }
    }

    fn ranks_to_write(&self, seen: &[(Cut, usize, PictureScores)]) -> SweepRun {
        let run = self;
        let drawn_pictures = seen;
        let agreement = |scores: &FeatureScores, seen: Option<PictureScores>| Agreement {
            mdncs_features: scores.mdncs,
            mdncs_features_masked: scores.mdncs_masked,
            mse_features: scores.mse,
            picture: seen.map(|seen| PictureAgreement {
                mse: seen.mse,
                ssim: seen.ssim_uniform,
                lpips: seen.lpips,
            }),
        };
        let scores = run.sweeps.iter().flat_map(|sweep| {
            sweep.scores.iter().map(|&(rank, ref scores)| {
                let drawn = |(cut, at, _): &&(Cut, usize, _)| *cut == sweep.cut && *at == rank;
                let seen = drawn_pictures.iter().find(drawn).map(|(.., seen)| *seen);
                RankScore {
                    cut: sweep.cut,
                    rank,
                    agreement: agreement(scores, seen),
                    energy_kept: sweep.energy_kept(rank),
                }
            })
        });
        let seen = run.seen.as_ref();
        SweepRun {
            image: run.image.clone(),
            image_sha256: run.image_sha256.clone(),
            image_steps: run.image_steps.clone(),
            edited_sha256: None,
            encoded: run.passes,
            recalled: run.recalled,
            encoder_title: run.encoder_title.clone(),
            device: run.device.clone(),
            map_sha256: String::new(),
            masked_positions: run.mask.iter().filter(|&&is_touched| is_touched).count(),
            positions: run.mask.len(),
            decoder: run.decoder.clone(),
            lpips: run.decoder.is_some().then(|| run.lpips.clone()),
            scores: scores.collect(),
            identity: agreement(&run.identity, seen.map(|seen| seen.original.scores)),
            reorder: agreement(&run.reorder, None),
            full: agreement(&run.full, seen.map(|seen| seen.full.scores)),
            reconstruction: seen.map(|seen| {
                let own = FeatureScores {
                    mdncs: Some(1.0),
                    mdncs_masked: run.full.mdncs_masked.map(|_| 1.0),
                    mse: 0.0,
                };
                agreement(&own, Some(seen.target.scores))
            }),
            file: (*run.file).clone(),
        }
    }
}
