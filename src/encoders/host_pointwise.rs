//! Dense convolution with a kernel of one element over small planes: a matrix times the channels of every position.
//!
//! The positions of neighbouring images are one long row, cut into panels of a few vectors. A panel is copied so that the
//! values of one channel follow those of the other: a block of output channels then reads without gaps, however far
//! apart the planes lie, and no vector is half empty but in the last panel.

use std::cell::RefCell;

use rayon::prelude::*;

use super::host_dense::{
    CHUNK_VALUES, Finish, Packed, ROWS, SLACK, Sweep, Tiles, Unit, images_together, units,
};

/// Positions of a panel: as many as are in registers at a time.
const PANEL: usize = SLACK;

/// From this many positions a plane on, copying gains nothing: measured with 64 to 384 channels, reading in place is then a
/// tenth to a third faster; below it, with 192 to 3072, a tenth to a third slower.
const POSITIONS_MAX: usize = 1024;

/// Whether this is a sweep of one element, each position an output.
pub(super) fn is_pointwise(packed: &Packed, sweep: &Sweep) -> bool {
    packed.kernel == [1, 1]
        && sweep.padding == [0, 0]
        && sweep.stride == [1, 1]
        && sweep.spread == [1, 1]
        && sweep.skip == [0, 0]
        && sweep.input == sweep.positions
        && sweep.output == sweep.positions
}

/// Whether [`sweep`] is the faster way.
pub(super) fn suits(packed: &Packed, sweep: &Sweep) -> bool {
    sweep.positions[0] * sweep.positions[1] < POSITIONS_MAX && is_pointwise(packed, sweep)
}

/// As [`super::host_dense::sweep`], where it [`suits`].
pub(super) fn sweep(
    x: &[f32],
    source_factors: Option<&[f32]>,
    packed: &Packed,
    sweep: &Sweep,
    finish: &Finish<'_>,
    output: &mut [f32],
) {
    let plane = sweep.output[0] * sweep.output[1];
    let offsets = packed.taps.iter();
    let offsets = offsets.map(|taps| taps.iter().map(|tap| tap.channel * PANEL).collect());
    let images = images_together(plane, sweep.batch);
    let panel_len = packed.channels * PANEL;
    let panels = (CHUNK_VALUES / panel_len.max(1)).clamp(1, (images * plane).div_ceil(PANEL));
    let product = Product {
        packed,
        finish,
        source_factors,
        plane,
        offsets: offsets.collect(),
        chunk: panels * PANEL,
    };
    units(output, sweep.batch, images, [packed.outputs, plane], ROWS)
        .into_par_iter()
        .for_each(|unit| {
            SCRATCH.with_borrow_mut(|scratch| {
                let (panels, sums) = (panels * panel_len, ROWS * PANEL);
                if scratch.len() < panels + sums {
                    scratch.resize(panels + sums, 0.0);
                }
                let (sums, panels) = scratch.split_at_mut(sums);
                product.run(x, panels, sums, unit);
            });
        });
}

thread_local! {
    /// Sums of a block and panels, kept from layer to layer: fresh memory would cost as much as the copies.
    static SCRATCH: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

struct Product<'a> {
    packed: &'a Packed,
    finish: &'a Finish<'a>,
    source_factors: Option<&'a [f32]>,
    plane: usize,
    /// For each list of elements the places of its channels in a panel.
    offsets: Vec<Vec<usize>>,
    /// Positions in the panels that are copied at a time.
    chunk: usize,
}

/// Some positions of a panel that lie in one image.
struct Piece {
    image: usize,
    /// First position in the image.
    position: usize,
    /// First position in the panel.
    at: usize,
    len: usize,
}

impl Product<'_> {
    /// The panel of `len` positions from `first` on, cut where another image begins.
    fn pieces(&self, first: usize, len: usize) -> impl Iterator<Item = Piece> {
        let plane = self.plane;
        let mut at = 0;
        std::iter::from_fn(move || {
            let (image, position) = ((first + at) / plane, (first + at) % plane);
            let piece = Piece {
                image,
                position,
                at,
                len: (len - at).min(plane - position),
            };
            at += piece.len;
            (piece.len > 0).then_some(piece)
        })
    }

    fn run(&self, x: &[f32], panels: &mut [f32], sums: &mut [f32], mut unit: Unit<'_>) {
        let channels = self.packed.channels;
        let x = &x[unit.first_image * channels * self.plane..];
        let positions = unit.images * self.plane;
        let rows = unit.output.len() / positions;
        let arch = pulp::Arch::new();
        for start in (0..positions).step_by(self.chunk) {
            let end = (start + self.chunk).min(positions);
            let panel_starts = (start..end).step_by(PANEL);
            let lens = panel_starts.map(|first| (first, PANEL.min(end - first)));
            for ((first, len), panel) in lens.clone().zip(panels.chunks_mut(channels * PANEL)) {
                self.fill(x, first, len, panel);
            }
            let blocks = self.packed.blocks[unit.first_channel / ROWS..].iter();
            for (index, block) in blocks.take(rows.div_ceil(ROWS)).enumerate() {
                let row = index * ROWS;
                let mut bias = [0.0; ROWS];
                if let Some(biases) = self.finish.bias {
                    let biases = &biases[unit.first_channel + row..];
                    bias.iter_mut()
                        .zip(biases)
                        .for_each(|(to, from)| *to = *from);
                }
                for ((first, len), panel) in lens.clone().zip(panels.chunks(channels * PANEL)) {
                    let tiles = Tiles {
                        source: panel,
                        offsets: &self.offsets[block.taps],
                        weights: &block.weights,
                        bias,
                        range: self.finish.range,
                        factors: None,
                        rows: ROWS.min(rows - row),
                        span: [0, len],
                        tight: false,
                        target: &mut *sums,
                        target_stride: PANEL,
                        target_start: 0,
                    };
                    let (image, position) = (first / self.plane, first % self.plane);
                    if len == PANEL && position + PANEL <= self.plane {
                        let factors = self.finish.factors;
                        let channel = unit.first_channel + row;
                        arch.dispatch(Tiles {
                            factors: factors.map(|all| &all[channel * self.plane + position..]),
                            target: &mut unit.output
                                [(image * rows + row) * self.plane + position..],
                            target_stride: self.plane,
                            ..tiles
                        });
                        continue;
                    }
                    arch.dispatch(tiles);
                    let lanes = sums.chunks(PANEL).take(ROWS.min(rows - row));
                    for (lane, sums) in lanes.enumerate() {
                        self.place(sums, self.pieces(first, len), row + lane, rows, &mut unit);
                    }
                }
            }
        }
    }

    /// Copies `len` positions from `first` on of every channel, times the factors of the source.
    fn fill(&self, x: &[f32], first: usize, len: usize, panel: &mut [f32]) {
        for piece in self.pieces(first, len) {
            let planes = x[piece.image * self.packed.channels * self.plane..].chunks(self.plane);
            let to = panel.chunks_mut(PANEL);
            for (channel, (to, from)) in to.zip(planes).enumerate() {
                let to = &mut to[piece.at..][..piece.len];
                let from = &from[piece.position..][..piece.len];
                let Some(factors) = self.source_factors else {
                    to.copy_from_slice(from);
                    continue;
                };
                let factors = &factors[channel * self.plane + piece.position..];
                for (to, (from, factor)) in to.iter_mut().zip(from.iter().zip(factors)) {
                    *to = from * factor;
                }
            }
        }
    }

    /// Brings the sums of one output channel, `row` of the unit's `rows`, to their images.
    fn place(
        &self,
        sums: &[f32],
        pieces: impl Iterator<Item = Piece>,
        row: usize,
        rows: usize,
        unit: &mut Unit<'_>,
    ) {
        for piece in pieces {
            let sums = &sums[piece.at..][..piece.len];
            let start = (piece.image * rows + row) * self.plane + piece.position;
            let to = &mut unit.output[start..][..piece.len];
            let Some(factors) = self.finish.factors else {
                to.copy_from_slice(sums);
                continue;
            };
            let channel = unit.first_channel + row;
            let factors = &factors[channel * self.plane + piece.position..];
            for (to, (sum, factor)) in to.iter_mut().zip(sums.iter().zip(factors)) {
                *to = sum * factor;
            }
        }
    }
}
