//! Feature maps as plain data: what an encoder's stage shows of a picture, without tensor types.

use std::sync::Arc;

use crate::{Error, ErrorKind, Result};

/// A feature map F ∈ R^{C×h×w} as its N = h·w feature vectors.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureMap {
    rows: usize,
    columns: usize,
    channels: usize,
    /// `rows · columns · channels` values: the vectors of the positions, row after row.
    vectors: Arc<[f32]>,
}

impl FeatureMap {
    /// From its vectors, the positions row after row, the channels of a position side by side.
    ///
    /// # Errors
    /// [`ErrorKind::Request`] where it is empty or the number of values is another.
    pub fn from_vectors(
        [channels, rows, columns]: [usize; 3],
        vectors: impl Into<Arc<[f32]>>,
    ) -> Result<Self> {
        let vectors = vectors.into();
        let len = rows
            .checked_mul(columns)
            .and_then(|positions| positions.checked_mul(channels));
        if len != Some(vectors.len()) || vectors.is_empty() {
            return Err(Error::new(
                ErrorKind::Request,
                "cannot use the feature map",
                format!(
                    "{} values are not {channels} channels at {rows} × {columns} positions",
                    vectors.len()
                ),
                "Choose another stage",
            ));
        }
        Ok(Self {
            rows,
            columns,
            channels,
            vectors,
        })
    }

    /// From the order of encoders: channel, row, column.
    ///
    /// # Errors
    /// As [`FeatureMap::from_vectors`].
    pub fn from_planes(shape: [usize; 3], planes: &[f32]) -> Result<Self> {
        let [channels, rows, columns] = shape;
        let area = rows.saturating_mul(columns);
        if area.checked_mul(channels) != Some(planes.len()) {
            // The refusal is that of the other order.
            return Self::from_vectors(shape, planes);
        }
        let vectors: Vec<f32> = (0..area)
            .flat_map(|at| (0..channels).map(move |channel| planes[channel * area + at]))
            .collect();
        Self::from_vectors(shape, vectors)
    }

    /// In the order of encoders: channel, row, column.
    pub fn planes(&self) -> Vec<f32> {
        (0..self.channels)
            .flat_map(|channel| self.vectors[channel..].iter().step_by(self.channels))
            .copied()
            .collect()
    }

    /// Channels C, rows h, columns w.
    pub fn shape(&self) -> [usize; 3] {
        [self.channels, self.rows, self.columns]
    }

    /// Length C of a vector.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Number N = h·w of vectors.
    pub fn positions(&self) -> usize {
        self.rows * self.columns
    }

    /// The vectors, `positions · channels` values.
    pub fn vectors(&self) -> &[f32] {
        &self.vectors
    }
}
