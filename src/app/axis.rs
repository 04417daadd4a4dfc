//! The one adapter between values and places on a plot's axis: the plots have no logarithmic axis, so
//! logarithms are plotted and the grid marks are our own, the same as on paper.

use std::cell::RefCell;
use std::ops::RangeInclusive;

use egui_plot::{GridInput, GridMark};

use super::settings::AxisScale;
use crate::figure::ticks::{Tick, linear_ticks, log_ticks};

/// An axis: which place a value has, and where its marks stand.
#[derive(Debug)]
pub struct Axis {
    scale: AxisScale,
    /// The marks of the range that was asked for last: every label asks for them again.
    known: RefCell<Option<([f64; 2], Vec<Mark>)>>,
}

/// A tick at its place.
#[derive(Clone, Debug)]
struct Mark {
    place: f64,
    /// Distance to the next mark of its kind.
    step: f64,
    tick: Tick,
}

impl Axis {
    /// An axis of this scale.
    pub fn new(scale: AxisScale) -> Self {
        Self {
            scale,
            known: RefCell::new(None),
        }
    }

    /// The place of a value; `None` where it has none: a value that is not finite, or not positive
    /// on a logarithmic axis.
    pub fn place(&self, value: f64) -> Option<f64> {
        let place = match self.scale {
            AxisScale::Log if value > 0.0 => value.log10(),
            AxisScale::Log => return None,
            AxisScale::Linear => value,
        };
        place.is_finite().then_some(place)
    }

    /// The value at a place.
    pub fn value(&self, place: f64) -> f64 {
        match self.scale {
            AxisScale::Log => 10f64.powf(place),
            AxisScale::Linear => place,
        }
    }

    /// The grid marks between two places.
    pub fn grid(&self, input: GridInput) -> Vec<GridMark> {
        let (low, high) = input.bounds;
        self.with_marks([low, high], |marks| {
            marks
                .iter()
                .map(|m| GridMark {
                    value: m.place,
                    step_size: m.step,
                })
                .collect()
        })
    }

    /// The grid marks between two places that carry a label.
    pub fn labelled_grid(&self, input: GridInput) -> Vec<GridMark> {
        let (low, high) = input.bounds;
        self.with_marks([low, high], |marks| {
            let labelled = marks.iter().filter(|mark| mark.tick.label.is_some());
            labelled
                .map(|m| GridMark {
                    value: m.place,
                    step_size: m.step,
                })
                .collect()
        })
    }

    /// What is written at a mark; empty for most small ones.
    pub fn label(&self, mark: GridMark, range: &RangeInclusive<f64>) -> String {
        self.labelled_value(mark, range)
            .map(|(_, label)| label)
            .unwrap_or_default()
    }

    /// Value and label of a mark that carries one.
    pub fn labelled_value(
        &self,
        mark: GridMark,
        range: &RangeInclusive<f64>,
    ) -> Option<(f64, String)> {
        self.with_marks([*range.start(), *range.end()], |marks| {
            let known = marks.iter().find(|known| known.place == mark.value)?;
            Some((known.tick.value, known.tick.label.clone()?))
        })
    }

    fn with_marks<T>(&self, range: [f64; 2], read: impl FnOnce(&[Mark]) -> T) -> T {
        let mut known = self.known.borrow_mut();
        let (_, marks) = match known.take() {
            Some(entry) if entry.0 == range => known.insert(entry),
            _ => known.insert((range, self.marks(range))),
        };
        read(marks)
    }

    fn marks(&self, range: [f64; 2]) -> Vec<Mark> {
        let [low, high] = range;
        let ticks = match self.scale {
            AxisScale::Log => log_ticks([self.value(low), self.value(high)]),
            AxisScale::Linear => linear_ticks(range),
        };
        let mut marks: Vec<Mark> = ticks
            .into_iter()
            .filter_map(|tick| {
                Some(Mark {
                    place: self.place(tick.value)?,
                    step: 0.0,
                    tick,
                })
            })
            .collect();
        let width = (high - low).abs();
        let steps: Vec<f64> = marks
            .iter()
            .enumerate()
            .map(|(i, mark)| {
                let is_kin =
                    |other: &&Mark| mark.tick.label.is_none() || other.tick.label.is_some();
                let before = marks[..i].iter().rev().find(is_kin);
                let after = marks[i + 1..].iter().find(is_kin);
                [before, after]
                    .into_iter()
                    .flatten()
                    .map(|other| (other.place - mark.place).abs())
                    .fold(width, f64::min)
            })
            .collect();
        for (mark, step) in marks.iter_mut().zip(steps) {
            mark.step = step;
        }
        marks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_values_are_inverse_and_undefined_values_have_no_place() {
        for scale in [AxisScale::Log, AxisScale::Linear] {
            let axis = Axis::new(scale);
            for value in [1e-3, 0.5, 2.0, 77.0] {
                let place = axis.place(value).unwrap();
                assert!((axis.value(place) / value - 1.0).abs() < 1e-12);
            }
            assert_eq!(axis.place(f64::NAN), None);
        }
        assert_eq!(Axis::new(AxisScale::Log).place(0.0), None);
        assert_eq!(Axis::new(AxisScale::Linear).place(-1.0), Some(-1.0));
    }

    #[test]
    fn decades_carry_the_labels_and_the_widest_steps() {
        let axis = Axis::new(AxisScale::Log);
        let range = (-2.0, 2.0);
        let marks = axis.grid(GridInput {
            bounds: range,
            base_step_size: 0.0,
        });
        let label = |mark: &GridMark| axis.label(*mark, &(range.0..=range.1));
        let labelled: Vec<_> = marks
            .iter()
            .filter(|mark| !label(mark).is_empty())
            .collect();
        let labels: Vec<_> = labelled.iter().map(|mark| label(mark)).collect();
        assert_eq!(labels, ["0.01", "0.1", "1", "10", "100"]);
        assert!(
            labelled
                .iter()
                .all(|mark| (mark.step_size - 1.0).abs() < 1e-9)
        );
        assert!(marks.len() > labelled.len());
    }
}
