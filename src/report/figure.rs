//! The figure of profiles in the manner of Szymkowiak, Pałubicki and Adamczewski (2026): r_η, and
//! the two quantities whose ratio it is.

use std::sync::Arc;

use super::{ProfileRun, quartiles};
use crate::encoders::{Readout, WeightsKind};
use crate::figure::{
    Axis, Band, Dash, Figure, Guide, Ink, Marker, Panel, Scale, Secondary, Series, label,
};
use crate::geometry::ScaleEstimate;
use crate::geometry::directions::DirectionFamily;
use crate::recipe::ProfileRecipe;

/// Width of a figure over both columns of a journal's page.
pub const DEFAULT_WIDTH_MM: f64 = 180.0;
/// Narrower figures put their panels below each other.
pub(super) const SIDE_BY_SIDE_MM: f64 = 140.0;
/// Width over height of the plotting areas.
pub(super) const ASPECT: f64 = 1.35;
/// Widths of lines in points: single directions or photographs, predictions, what is told.
pub(super) const THIN_PT: f64 = 0.5;
pub(super) const MEDIUM_PT: f64 = 0.8;
pub(super) const BOLD_PT: f64 = 1.25;
pub(super) const THIN_OPACITY: f64 = 0.4;
/// Largest r up to which a linear axis shows everything well: the bumps of trained encoders are
/// 3 to 7 high, the rise of random ones is 50 and more.
const LINEAR_R_MAX: f64 = 20.0;
/// A linear axis makes room for thin lines up to this many times the height of the bold ones; what
/// is higher is cut, so that one direction with a small ‖Ju‖ does not flatten the figure.
const THIN_OVERSHOOT: f64 = 2.0;
/// Encoders whose inputs differ in grey levels per η by no more than this share the second axis: on
/// four decades it moves a tick by less than the width of a line.
pub const GREY_TOLERANCE: f64 = 0.02;
/// Least number of photographs from which quartiles are drawn.
const QUARTILES_MIN: usize = 4;

/// How profiles are drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureOptions {
    /// Width of the page in millimetres.
    pub width_mm: f64,
    /// Vertical scale of r; `None` takes the linear one where nothing told exceeds 20.
    pub r_scale: Option<Scale>,
}

impl Default for FigureOptions {
    fn default() -> Self {
        Self {
            width_mm: DEFAULT_WIDTH_MM,
            r_scale: None,
        }
    }
}

/// The runs that differ in the photograph alone.
struct Group<'a> {
    title: &'a str,
    recipe: &'a ProfileRecipe,
    /// Index of encoder, readout and direction family among those of the figure.
    hue: usize,
    runs: Vec<&'a ProfileRun>,
}

/// The figure: (a) r_η against η with the linear prediction r = 1, (b) measured displacement and
/// linear prediction, both with a second axis in grey levels.
///
/// An encoder has one colour and sign for each readout and direction family; those that are not the
/// default are named. Trained weights are drawn solid, random ones dashed. One photograph gives thin
/// lines for single directions and a bold mean with its standard error; several give a thin line
/// each, the bold median over those where the scale is reliable and, from four on, the quartiles.
/// Unreliable points are hollow; a median is hollow where fewer than half of its photographs are
/// reliable.
pub fn figure(runs: &[Arc<ProfileRun>], options: &FigureOptions) -> Figure {
    let groups = groups(runs);
    let eta = Axis {
        label: "perturbation η".to_owned(),
        unit: "L2 norm".to_owned(),
        scale: Scale::Log10,
        range: None,
        secondary: grey_factor(runs).map(|factor| Secondary {
            label: "pixel RMS".to_owned(),
            unit: "grey levels of 255".to_owned(),
            factor,
        }),
    };
    let columns = if options.width_mm >= SIDE_BY_SIDE_MM {
        2
    } else {
        1
    };
    Figure {
        width_mm: options.width_mm,
        columns,
        aspect: ASPECT,
        title: "Response profile r_η".to_owned(),
        panels: vec![
            response_panel(&groups, eta.clone(), options.r_scale),
            displacement_panel(&groups, eta),
        ],
    }
}

fn groups(runs: &[Arc<ProfileRun>]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut hues = 0;
    for run in runs {
        let recipe = &run.recipe;
        let is_same_feature = |group: &&Group<'_>| {
            let other = group.recipe;
            (&other.encoder, &other.readout, &other.family)
                == (&recipe.encoder, &recipe.readout, &recipe.family)
        };
        let hue = groups.iter().find(is_same_feature).map(|group| group.hue);
        let is_same_curve = |group: &&mut Group<'_>| {
            Some(group.hue) == hue && group.recipe.weights == recipe.weights
        };
        if let Some(group) = groups.iter_mut().find(is_same_curve) {
            group.runs.push(run);
            continue;
        }
        groups.push(Group {
            title: &run.encoder_title,
            recipe,
            hue: hue.unwrap_or(hues),
            runs: vec![run],
        });
        hues += usize::from(hue.is_none());
    }
    groups
}

/// Grey levels per η, if the encoders agree.
fn grey_factor(runs: &[Arc<ProfileRun>]) -> Option<f64> {
    let mut factors = runs.iter().filter_map(|run| {
        let scale = run.profile.scales.iter().find(|scale| scale.eta_l2 > 0.0)?;
        Some(scale.eta_grey_rms / scale.eta_l2)
    });
    let first = factors.next().filter(|&first| first > 0.0)?;
    factors
        .all(|factor| (factor / first - 1.0).abs() <= GREY_TOLERANCE)
        .then_some(first)
}

impl Group<'_> {
    fn dash(&self) -> Dash {
        match self.recipe.weights {
            WeightsKind::Trained => Dash::Solid,
            WeightsKind::Random => Dash::Dashed,
        }
    }

    /// Encoder and weights, and whatever is not the default of readout and directions.
    fn label(&self) -> String {
        let mut parts = vec![
            label::escape(self.title),
            self.recipe.weights.name().to_owned(),
        ];
        match self.recipe.readout {
            Readout::Pooled => {}
            Readout::Logits => parts.push("logits".to_owned()),
            Readout::Stage(_) => parts.extend(
                (self.runs.first())
                    .and_then(|run| run.stage())
                    .map(|stage| format!("stage {}", label::escape(&stage))),
            ),
        }
        if self.recipe.family != DirectionFamily::Isotropic {
            parts.push(label::escape(&self.recipe.family.title()));
        }
        if self.runs.len() > 1 {
            parts.push(format!("median of {}", self.runs.len()));
        }
        parts.join(", ")
    }

    /// η of all scales, ascending.
    fn etas(&self) -> Vec<f64> {
        let scales = self.runs.iter().flat_map(|run| &run.profile.scales);
        let mut etas: Vec<f64> = scales.map(|scale| scale.eta_l2).collect();
        etas.sort_by(f64::total_cmp);
        etas.dedup();
        etas
    }

    /// The bold curve of a quantity: its value, quartiles and whether each is unreliable.
    fn curve(&self, quantity: impl Fn(&ScaleEstimate) -> f64) -> Series {
        let etas = self.etas();
        let told: Vec<([f64; 3], bool)> = etas
            .iter()
            .map(|&eta| {
                let at_eta = |run: &&ProfileRun| {
                    run.profile
                        .scales
                        .iter()
                        .find(|scale| scale.eta_l2 == eta)
                        .cloned()
                };
                let scales: Vec<ScaleEstimate> = self.runs.iter().filter_map(at_eta).collect();
                let reliable = scales.iter().filter(|scale| scale.reliable);
                let kept: Vec<f64> = match reliable.clone().count() {
                    0 => scales.iter().map(&quantity).collect(),
                    _ => reliable.clone().map(&quantity).collect(),
                };
                let hollow = 2 * reliable.count() < scales.len();
                (quartiles(kept).unwrap_or([f64::NAN; 3]), hollow)
            })
            .collect();
        let pick = |which: usize| told.iter().map(|(values, _)| values[which]).collect();
        Series {
            x: etas,
            y: pick(1),
            band: (self.runs.len() >= QUARTILES_MIN).then(|| Band {
                low: pick(0),
                high: pick(2),
            }),
            hollow: told.iter().map(|&(_, hollow)| hollow).collect(),
            ink: Ink::Hue(self.hue),
            dash: self.dash(),
            width_pt: BOLD_PT,
            opacity: 1.0,
            marker: Some(Marker::of_index(self.hue)),
            label: None,
        }
    }

    /// The bold curve of r; for one photograph with its standard error.
    fn bold(&self) -> Series {
        let mut series = Series {
            label: Some(self.label()),
            ..self.curve(|scale| scale.r)
        };
        if let [run] = self.runs[..] {
            let scales = &run.profile.scales;
            series.band = Some(Band {
                low: scales.iter().map(|scale| scale.r - scale.r_se).collect(),
                high: scales.iter().map(|scale| scale.r + scale.r_se).collect(),
            });
        }
        series
    }

    /// The thin curves of r: single directions of the one photograph, or single photographs.
    fn thin(&self) -> Vec<Series> {
        let curve = |run: &ProfileRun, y: Vec<f64>| Series {
            x: run
                .profile
                .scales
                .iter()
                .map(|scale| scale.eta_l2)
                .collect(),
            y,
            ink: Ink::Hue(self.hue),
            dash: self.dash(),
            width_pt: THIN_PT,
            opacity: THIN_OPACITY,
            ..Series::default()
        };
        match self.runs[..] {
            [run] => run
                .profile
                .singles
                .iter()
                .map(|single| curve(run, single.clone()))
                .collect(),
            _ => {
                let r = |run: &ProfileRun| run.profile.scales.iter().map(|scale| scale.r).collect();
                self.runs.iter().map(|run| curve(run, r(run))).collect()
            }
        }
    }
}

/// A series that only explains something in the legend.
fn legend_only() -> Series {
    Series {
        opacity: 1.0,
        ..Series::default()
    }
}

fn response_panel(groups: &[Group<'_>], eta: Axis, scale: Option<Scale>) -> Panel {
    let thin: Vec<Series> = groups.iter().flat_map(Group::thin).collect();
    let bold: Vec<Series> = groups.iter().map(Group::bold).collect();
    let highest = |series: &[Series]| {
        let values = series
            .iter()
            .flat_map(|series| &series.y)
            .filter(|r| r.is_finite());
        values.copied().fold(1.0, f64::max)
    };
    let (bold_max, thin_max) = (highest(&bold), highest(&thin));
    let scale = scale.unwrap_or(match bold_max > LINEAR_R_MAX {
        true => Scale::Log10,
        false => Scale::Linear,
    });
    let range = match scale {
        // A little room above; from 0, which r approaches far out.
        Scale::Linear => Some([
            0.0,
            1.05 * bold_max.max(thin_max.min(THIN_OVERSHOOT * bold_max)),
        ]),
        Scale::Log10 => None,
    };
    let is_one_photograph = groups.iter().all(|group| group.runs.len() == 1);
    let (line, region) = if is_one_photograph {
        ("single directions", "standard error")
    } else {
        ("single photographs", "quartiles")
    };
    let note = |label: &str| Series {
        label: Some(label.to_owned()),
        ..legend_only()
    };
    let mut notes = Vec::new();
    if !thin.is_empty() {
        notes.push(Series {
            width_pt: THIN_PT,
            ..note(line)
        });
    }
    if bold.iter().any(|series| series.band.is_some()) {
        notes.push(Series {
            band: Some(Band::default()),
            ..note(region)
        });
    }
    if bold.iter().any(|series| series.hollow.contains(&true)) {
        let marker = Some(Marker::Circle);
        notes.push(Series {
            hollow: vec![true],
            marker,
            ..note("below rounding floor")
        });
    }
    Panel {
        x: eta,
        y: Axis {
            label: "response r_η".to_owned(),
            scale,
            range,
            ..Axis::default()
        },
        series: thin.into_iter().chain(bold).chain(notes).collect(),
        guides: vec![Guide::Horizontal {
            at: 1.0,
            label: "linear prediction".to_owned(),
        }],
    }
}

fn displacement_panel(groups: &[Group<'_>], eta: Axis) -> Panel {
    let predicted = groups.iter().map(|group| Series {
        width_pt: MEDIUM_PT,
        marker: None,
        band: None,
        hollow: Vec::new(),
        ..group.curve(|scale| scale.prediction_sq)
    });
    let measured = groups
        .iter()
        .map(|group| group.curve(|scale| scale.displacement_sq));
    let sample = |width_pt: f64, marker: Option<Marker>, label: &str| Series {
        width_pt,
        marker,
        label: Some(label.to_owned()),
        ..legend_only()
    };
    let keys = [
        sample(
            BOLD_PT,
            Some(Marker::Circle),
            "measured, E‖Φ(x + ηu) − Φ(x)‖²",
        ),
        sample(MEDIUM_PT, None, "linear prediction, η² E‖J u‖²"),
    ];
    Panel {
        x: eta,
        y: Axis {
            label: "squared displacement of Φ".to_owned(),
            scale: Scale::Log10,
            ..Axis::default()
        },
        series: predicted.chain(measured).chain(keys).collect(),
        guides: Vec::new(),
    }
}
