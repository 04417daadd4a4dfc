//! Planes on their way into and out of a convolution on the host: split by a stride with room for the
//! padding, and put together again from sums.

use super::host_dense::Sweep;

/// A plane split by a stride.
pub struct Phases {
    /// Columns of the plane.
    pub columns: usize,
    /// Zeros above and to the left of the plane.
    pub padding: [usize; 2],
    /// Rows and columns between neighbours in a phase.
    pub stride: [usize; 2],
    /// Rows and columns of a phase.
    pub phase: [usize; 2],
    /// Distance between the phases.
    pub distance: usize,
}

/// Copies a plane, times `factors` where given, into its phases. What lies around it there is left as
/// it is.
pub fn split_phases(plane: &[f32], factors: Option<&[f32]>, to: &Phases, target: &mut [f32]) {
    let [stride_y, stride_x] = to.stride;
    let [top, left] = to.padding;
    for (y, row) in plane.chunks(to.columns).enumerate() {
        let (phase_y, line) = ((y + top) % stride_y, (y + top) / stride_y);
        if line >= to.phase[0] {
            // Below the last kernel element of the last position.
            continue;
        }
        let base = phase_y * stride_x * to.distance + line * to.phase[1];
        for phase_x in 0..stride_x {
            // First input column x with (x + left) % stride == phase_x.
            let first = (phase_x + stride_x - left % stride_x) % stride_x;
            let at = (first + left) / stride_x;
            if at >= to.phase[1] || first >= row.len() {
                continue;
            }
            let target = &mut target[base + phase_x * to.distance..][at..to.phase[1]];
            match factors {
                None => copy_strided(&row[first..], stride_x, target),
                Some(factors) => {
                    let factors = &factors[y * to.columns..][..to.columns];
                    multiply_strided(&row[first..], &factors[first..], stride_x, target);
                }
            }
        }
    }
}

/// `target[i] = source[i · stride] · factors[i · stride]`, for as many as all hold.
fn multiply_strided(source: &[f32], factors: &[f32], stride: usize, target: &mut [f32]) {
    let set = |(target, (value, factor)): (&mut f32, (&f32, &f32))| *target = value * factor;
    let values = source.iter().zip(factors);
    if stride == 1 {
        // By itself, because only neighbours are multiplied several at a time.
        target.iter_mut().zip(values).for_each(set);
    } else {
        target.iter_mut().zip(values.step_by(stride)).for_each(set);
    }
}

/// `target[i] = source[i · stride]`, for as many as both hold.
fn copy_strided(source: &[f32], stride: usize, target: &mut [f32]) {
    match stride {
        1 => {
            let len = target.len().min(source.len());
            target[..len].copy_from_slice(&source[..len]);
        }
        2 => {
            // In pairs, which the compiler turns into shuffles.
            let pairs = source.chunks_exact(2);
            let last = pairs.remainder().first();
            let odd_one = source.len() / 2;
            if let (Some(value), Some(last)) = (target.get_mut(odd_one), last) {
                *value = *last;
            }
            target
                .iter_mut()
                .zip(pairs)
                .for_each(|(value, pair)| *value = pair[0]);
        }
        _ => {
            let source = source.iter().step_by(stride);
            target
                .iter_mut()
                .zip(source)
                .for_each(|(value, from)| *value = *from);
        }
    }
}

/// Sums of one row of positions.
pub struct PlaceRow<'a> {
    /// One a position.
    pub sums: &'a [f32],
    /// Factors of the plane to which they go.
    pub factors: Option<&'a [f32]>,
    /// The row of positions.
    pub position: usize,
    /// Row and column of the output among those that a position fills.
    pub place: [usize; 2],
}

/// Brings a row of sums into its output plane.
pub fn place_row(row: &PlaceRow<'_>, sweep: &Sweep, plane: &mut [f32]) {
    let [height, width] = sweep.output;
    let [spread_y, spread_x] = sweep.spread;
    let [skip_y, skip_x] = sweep.skip;
    let y = (row.position * spread_y + row.place[0]).checked_sub(skip_y);
    let Some(y) = y.filter(|&y| y < height) else {
        return;
    };
    // First position whose output lies within the row.
    let first = skip_x.saturating_sub(row.place[1]).div_ceil(spread_x);
    let x = (first * spread_x + row.place[1] - skip_x).min(width);
    let sums = &row.sums[first.min(row.sums.len())..];
    let target = &mut plane[y * width..][..width][x..];
    match row.factors {
        Some(factors) if spread_x == 1 => {
            let factors = &factors[y * width..][..width][x..];
            multiply_strided(sums, factors, 1, target);
        }
        Some(factors) => {
            let factors = &factors[y * width..][..width][x..];
            let targets = target.iter_mut().zip(factors).step_by(spread_x);
            targets
                .zip(sums)
                .for_each(|((value, factor), sum)| *value = sum * factor);
        }
        None if spread_x == 1 => {
            let len = target.len().min(sums.len());
            target[..len].copy_from_slice(&sums[..len]);
        }
        None => {
            let targets = target.iter_mut().step_by(spread_x);
            targets.zip(sums).for_each(|(value, sum)| *value = *sum);
        }
    }
}
