//! How far the r axis and the axis of displacements reach.

use super::curve::Drawn;
use crate::app::settings::AxisScale;
use crate::recipe::WeightsKind;

/// Room above the curves on a linear axis, for the values that are written at the marker.
const HEADROOM: f64 = 1.25;
/// On a linear axis a twin may be this many times as high as the trained curves.
const TWIN_ROOM: f64 = 1.25;

/// Least and largest r to be shown; steps of the upper end are coarse, so that a sharpening curve
/// does not make the axis jump. On a linear axis a twin that rises hundreds of times higher does not
/// press the trained curve flat; [`hidden_top`] then tells how high it goes.
pub(super) fn r_range(curves: &[Drawn<'_>], scale: AxisScale) -> [f64; 2] {
    match scale {
        AxisScale::Linear => {
            let trained = largest_r(curves, WeightsKind::Trained).unwrap_or(0.0);
            let twin = largest_r(curves, WeightsKind::Random).unwrap_or(0.0);
            let room_for_twin = if trained > 0.0 {
                TWIN_ROOM * trained
            } else {
                f64::INFINITY
            };
            let top = coarse_above(trained.max(twin.min(room_for_twin)).max(1.4) * HEADROOM);
            // A little below 0, so that its label has room above those of the η axis.
            [-0.03 * top, top]
        }
        AxisScale::Log => {
            let values = || curves.iter().flat_map(finite_r);
            let bottom = values().filter(|r| *r > 0.0).fold(0.5, f64::min);
            let top = values().fold(1.4, f64::max);
            // Thirds of a decade.
            let step =
                |value: f64, round: fn(f64) -> f64| 10f64.powf(round(value.log10() * 3.0) / 3.0);
            [step(bottom * 0.9, f64::floor), step(top * 1.08, f64::ceil)]
        }
    }
}

fn finite_r<'a>(curve: &'a Drawn<'_>) -> impl Iterator<Item = f64> + 'a {
    curve
        .profile
        .scales
        .iter()
        .map(|scale| scale.r)
        .filter(|r| r.is_finite())
}

fn largest_r(curves: &[Drawn<'_>], weights: WeightsKind) -> Option<f64> {
    let of_kind = curves.iter().filter(|curve| curve.weights == weights);
    of_kind.flat_map(finite_r).reduce(f64::max)
}

/// The largest r of a curve that leaves the plot at the top.
pub(super) fn hidden_top(curves: &[Drawn<'_>], top: f64) -> Option<f64> {
    largest_r(curves, WeightsKind::Random).filter(|r| *r > top)
}

fn coarse_above(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    let steps = [1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps
        .iter()
        .map(|step| step * decade)
        .find(|top| *top >= value)
        .unwrap_or(10.0 * decade)
}

pub(super) fn displacement_range(curves: &[Drawn<'_>]) -> [f64; 2] {
    let values = || {
        curves
            .iter()
            .flat_map(|curve| &curve.profile.scales)
            .flat_map(|scale| [scale.displacement_sq, scale.prediction_sq])
            .filter(|value| value.is_finite() && *value > 0.0)
    };
    let (low, high) = values().fold((f64::INFINITY, 0.0f64), |(l, h), v| (l.min(v), h.max(v)));
    if low > high {
        return [10f64.powf(-4.33), 1e4];
    }
    // A third of a decade below the last label, so that it has room above those of the η axis.
    [
        10f64.powf(low.log10().floor() - 0.33),
        10f64.powf(high.log10().ceil()),
    ]
}
