//! A fitted edit as files: the map itself, and table, sidecar and figure of its ranks.

use std::path::{Path, PathBuf};

use super::run::{EditRun, FeatureScores, PictureScores};
use crate::geometry::maps::{Cut, save};
use crate::report::{Agreement, ExportFormat, PictureAgreement, RankScore, SweepRun, write_sweep};
use crate::{Error, ErrorKind, Result};

/// Files to write of an edit.
#[derive(Clone, Debug)]
pub struct EditExport {
    /// Folder; made if absent.
    pub folder: PathBuf,
    /// File name without extension.
    pub stem: String,
    /// Which files, besides the map.
    pub formats: Vec<ExportFormat>,
    /// The fitted map.
    pub run: std::sync::Arc<EditRun>,
    /// Scores of decoded pictures, as far as they were drawn.
    pub seen: Vec<(Cut, usize, PictureScores)>,
}

impl EditExport {
    /// Writes the map as `STEM.safetensors` and what the window shows of its ranks; returns the paths.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] where the stem is not a file name; [`ErrorKind::Output`] where the folder or a file in it
    /// cannot be written.
    pub(in crate::worker) fn write(&self) -> Result<Vec<PathBuf>> {
        let Self {
            folder,
            stem,
            formats,
            run,
            ..
        } = self;
        if Path::new(stem).file_name() != Some(stem.as_ref()) {
            return Err(Error::new(
                ErrorKind::Request,
                format!("cannot name files “{stem}”"),
                "it is not a plain file name",
                "Choose a name without folders",
            ));
        }
        let map = folder.join(format!("{stem}.safetensors"));
        std::fs::create_dir_all(folder).map_err(|error| {
            Error::new(
                ErrorKind::Output,
                format!("cannot write to “{}”", folder.display()),
                crate::files::reason(&error),
                "Choose another folder",
            )
        })?;
        save(&run.file, &map)?;
        let sweep = self.sweep(sha256_of(&map)?);
        let mut files = vec![map];
        files.extend(write_sweep(folder, stem, formats, &sweep)?);
        Ok(files)
    }

    fn sweep(&self, map_sha256: String) -> SweepRun {
        let run = &self.run;
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
            sweep.scores.iter().enumerate().map(|(rank, scores)| {
                let drawn = |(cut, at, _): &&(Cut, usize, _)| *cut == sweep.cut && *at == rank;
                let seen = self.seen.iter().find(drawn).map(|(.., seen)| *seen);
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
            map_sha256,
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

fn sha256_of(path: &Path) -> Result<String> {
    std::fs::read(path)
        .map(|bytes| crate::images::sha256_hex(&bytes))
        .map_err(|error| {
            Error::new(
                ErrorKind::Output,
                format!("cannot read “{}” again", path.display()),
                crate::files::reason(&error),
                "Choose another folder",
            )
        })
}
