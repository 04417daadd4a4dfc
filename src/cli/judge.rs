//! How near a feature map comes to that of an edited photograph: in feature space, and as a picture where there is a decoder.

use std::path::Path;

use crate::device::ComputeDevice;
use crate::features::FeatureMap;
use crate::geometry::decode::{Decoder, DecoderHeader};
use crate::geometry::perceptual::Lpips;
use crate::images::Picture;
use crate::metrics::cosine::{masked_median_cosine, median_cosine};
use crate::metrics::mse::{features_mse, mse};
use crate::metrics::ssim::{Window, ssim};
use crate::report::{Agreement, LpipsNote, PictureAgreement};
use crate::{ErrorKind, Result};

/// The edited photograph, against which feature maps are held.
pub(super) struct Judge<'a> {
    /// Its feature map.
    pub(super) features: &'a FeatureMap,
    /// Positions that the edit touches.
    pub(super) mask: &'a [bool],
    pub(super) view: Option<View>,
}

/// A decoder, and the edited photograph at its side.
pub(super) struct View {
    decoder: Decoder,
    /// The edited photograph.
    pub(super) target: Picture,
    lpips: std::result::Result<(Lpips, Vec<FeatureMap>), String>,
}

impl Judge<'_> {
    /// A feature map beside that of the edited photograph, and the picture that is decoded from it.
    pub(super) fn agreement(&self, features: &FeatureMap) -> Result<(Agreement, Option<Picture>)> {
        let picture = self.view.as_ref().map(|view| view.decoded(features));
        let picture = picture.transpose()?;
        let seen = match (&self.view, &picture) {
            (Some(view), Some(picture)) => Some(view.agreement(picture)?),
            _ => None,
        };
        let agreement = Agreement {
            mdncs_features: median_cosine(features, self.features)?,
            mdncs_features_masked: masked_median_cosine(features, self.features, self.mask)?,
            mse_features: features_mse(features, self.features)?,
            picture: seen,
        };
        Ok((agreement, picture))
    }
}

impl View {
    /// `lpips` names a file of AlexNet's weights; without it the registry's are used if they are there.
    pub(super) fn new(
        decoder: Decoder,
        edited: &Picture,
        rows: usize,
        lpips: Option<&Path>,
        device: &ComputeDevice,
    ) -> Result<Self> {
        let side = rows * decoder.header().plan.enlargement();
        let target = edited.resized(side, side)?;
        let metric = match lpips {
            Some(file) => Ok(Lpips::open(file, device)?),
            None => match Lpips::load(device) {
                Ok(metric) => Ok(metric),
                Err(error) if error.kind == ErrorKind::Weights => Err(format!(
                    "{}: {}. {}, or name a file with --lpips",
                    error.what, error.why, error.remedy
                )),
                Err(error) => return Err(error),
            },
        };
        let lpips = match metric {
            Ok(metric) => {
                let stages = metric.stages(&target)?;
                Ok((metric, stages))
            }
            Err(why) => Err(why),
        };
        Ok(Self {
            decoder,
            target,
            lpips,
        })
    }

    /// The picture of a feature map.
    pub(super) fn decoded(&self, features: &FeatureMap) -> Result<Picture> {
        let decoded = self.decoder.decode(features)?;
        Ok(Picture::from_planes(
            &decoded.pixels,
            decoded.rows,
            decoded.columns,
        ))
    }

    /// The decoder.
    pub(super) fn header(&self) -> &DecoderHeader {
        self.decoder.header()
    }

    /// The weights of LPIPS, or why there are none.
    pub(super) fn lpips(&self) -> LpipsNote {
        match &self.lpips {
            Ok((metric, _)) => LpipsNote::Weights(metric.weights_id().to_owned()),
            Err(why) => LpipsNote::Absent(why.clone()),
        }
    }

    fn agreement(&self, picture: &Picture) -> Result<PictureAgreement> {
        let lpips = match &self.lpips {
            Ok((metric, target)) => Some(metric.between(&metric.stages(picture)?, target)?),
            Err(_) => None,
        };
        Ok(PictureAgreement {
            mse: mse(picture, &self.target)?,
            ssim: ssim(picture, &self.target, Window::Uniform)?,
            lpips,
        })
    }
}
