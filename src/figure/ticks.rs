//! Where the ticks of an axis stand and what is written at them.
//!
//! Used on paper and, because the window's plots have no logarithmic axis, for its grid marks.

/// A tick of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Its place, in the axis's own units.
    pub value: f64,
    /// What is written at it; `None` for an unlabelled tick.
    pub label: Option<String>,
    /// Long (true) or short.
    pub major: bool,
}

/// Most decades that are labelled one by one; longer axes label every second, third, … one.
const DECADES_MAX: i64 = 10;
/// Longer axes have no ticks between the labelled ones.
const DECADES_DRAWN_MAX: i64 = 50;
/// Decades within which values are written out (0.001 … 1000); beyond, as powers of ten.
const WRITTEN_OUT: std::ops::RangeInclusive<i64> = -3..=3;
/// Largest magnitudes for which a linear axis writes its numbers out.
const WRITTEN_OUT_LINEAR: std::ops::Range<f64> = 1e-3..1e5;
/// Most intervals between the labels of a linear axis.
const INTERVALS_MAX: f64 = 6.0;
/// Slack at the ends of a range, relative to one step: an end given as 0.1 + 0.2 still has its tick.
const SLACK: f64 = 1e-9;

/// Ticks of a logarithmic axis within `range` (low, high), ascending: decades, between them 2 … 9.
///
/// Decades carry labels, every n-th one where there are more than ten; where fewer than two decades
/// are in sight, 2 and 5 carry labels too, or all digits, or, within one digit, the ticks are those
/// of [`linear_ticks`]. Labels are `0.01`, `1`, `100` when every decade in sight is within
/// 10⁻³ … 10³, and `10⁻²` otherwise. An empty or non-positive range has no ticks.
pub fn log_ticks(range: [f64; 2]) -> Vec<Tick> {
    let [low, high] = range;
    if !(low > 0.0 && high > low && high.is_finite()) {
        return Vec::new();
    }
    let exponents = low.log10().floor() as i64 - 1..=high.log10().ceil() as i64 + 1;
    let within = |digit: i64, exponent: i64| {
        let value = decimal(digit, exponent);
        value >= low * (1.0 - SLACK) && value <= high * (1.0 + SLACK)
    };
    let decades = exponents
        .clone()
        .filter(|&exponent| within(1, exponent))
        .count() as i64;
    let stride = (decades - 1) / DECADES_MAX + 1;
    let digits = if stride > 1 { 1..=1 } else { 1..=9 };
    let step = if decades > DECADES_DRAWN_MAX {
        stride
    } else {
        1
    };
    let places: Vec<(i64, i64)> = exponents
        .flat_map(|exponent| digits.clone().map(move |digit| (digit, exponent)))
        .filter(|&(digit, exponent)| exponent.rem_euclid(step) == 0 && within(digit, exponent))
        .collect();

    let count = |digits: &[i64]| {
        places
            .iter()
            .filter(|(digit, _)| digits.contains(digit))
            .count()
    };
    let Some(labelled_digits) = [&[1][..], &[1, 2, 5], &[1, 2, 3, 4, 5, 6, 7, 8, 9]]
        .into_iter()
        .find(|digits| count(digits) >= 2)
    else {
        return linear_ticks(range);
    };
    let is_labelled = |digit: i64, exponent: i64| {
        labelled_digits.contains(&digit) && exponent.rem_euclid(stride) == 0
    };
    let written_out = places
        .iter()
        .filter(|&&(digit, exponent)| is_labelled(digit, exponent))
        .all(|(_, exponent)| WRITTEN_OUT.contains(exponent));
    places
        .iter()
        .map(|&(digit, exponent)| {
            let value = decimal(digit, exponent);
            let label = is_labelled(digit, exponent).then(|| {
                if written_out {
                    fixed(value, -exponent)
                } else {
                    power(digit, exponent)
                }
            });
            Tick {
                value,
                major: digit == 1 && exponent.rem_euclid(stride) == 0,
                label,
            }
        })
        .collect()
}

/// Ticks of a linear axis within `range` (low, high), ascending: labels at multiples of 1, 2 or 5
/// times a power of ten, at most six intervals, unlabelled ticks between them.
///
/// Labels have the decimals of their step and no others; from 10⁵ upward, or where all is below
/// 10⁻³, they are written as `2×10⁶`. An empty range has no ticks.
pub fn linear_ticks(range: [f64; 2]) -> Vec<Tick> {
    let [low, high] = range;
    let width = high - low;
    if !(width > 0.0 && width.is_finite()) {
        return Vec::new();
    }
    let smallest = width / INTERVALS_MAX;
    let below = smallest.log10().floor() as i64;
    let (digit, exponent) = [(1, below), (2, below), (5, below)]
        .into_iter()
        .find(|&(digit, exponent)| decimal(digit, exponent) >= smallest * (1.0 - SLACK))
        .unwrap_or((1, below + 1));
    // A step of 1 is divided by 0.2, of 2 by 0.5, of 5 by 1.
    let (minor_digit, minor_exponent, minors) = match digit {
        1 => (2, exponent - 1, 5),
        2 => (5, exponent - 1, 4),
        _ => (1, exponent, 5),
    };
    let minor_step = decimal(minor_digit, minor_exponent);
    let first = (low / minor_step - SLACK).ceil();
    let last = (high / minor_step + SLACK).floor();
    // 2⁵³ steps from zero, neighbouring ticks become the same number (and a step of 0 has none).
    let far = first.abs().max(last.abs()) * 10.0;
    if far.is_nan() || far >= 2f64.powi(53) {
        return Vec::new();
    }
    let largest = low.abs().max(high.abs());
    let largest_exponent = largest.log10().floor() as i64;
    let label = |value: f64| {
        if value == 0.0 {
            "0".to_owned()
        } else if WRITTEN_OUT_LINEAR.contains(&largest) {
            fixed(value, -exponent)
        } else {
            let mantissa = fixed(
                value / decimal(1, largest_exponent),
                largest_exponent - exponent,
            );
            format!("{mantissa}×10{}", superscript(largest_exponent))
        }
    };
    (first as i64..=last as i64)
        .map(|step| {
            let value = decimal(step * minor_digit, minor_exponent);
            let major = step % minors == 0;
            Tick {
                value,
                label: major.then(|| label(value)),
                major,
            }
        })
        .collect()
}

/// `mantissa · 10^exponent`, correctly rounded (a product of powers would not be).
fn decimal(mantissa: i64, exponent: i64) -> f64 {
    format!("{mantissa}e{exponent}")
        .parse()
        .expect("digits, `e` and digits form a number")
}

/// Fixed-point notation with a true minus sign; a negative number of decimals counts as none.
fn fixed(value: f64, decimals: i64) -> String {
    format!("{value:.*}", decimals.max(0) as usize).replace('-', "−")
}

/// `10⁻²`, or `2×10⁻²`.
fn power(digit: i64, exponent: i64) -> String {
    let power = format!("10{}", superscript(exponent));
    if digit == 1 {
        power
    } else {
        format!("{digit}×{power}")
    }
}

/// An integer in superscript characters.
fn superscript(number: i64) -> String {
    number
        .to_string()
        .chars()
        .map(|c| match c {
            '-' => '⁻',
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            '4' => '⁴',
            '5' => '⁵',
            '6' => '⁶',
            '7' => '⁷',
            '8' => '⁸',
            '9' => '⁹',
            _ => '⁰',
        })
        .collect()
}
