//! Numbers as people read them: few significant digits, units beside them, a dash for what is not
//! defined.

use std::time::Duration;

/// What stands in place of an undefined number.
pub const UNDEFINED: &str = "—";

/// `value` with `digits` significant digits, without an exponent between 0.001 and 99,999.
pub fn significant(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return UNDEFINED.to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = exponent(value, digits);
    if !(-3..5).contains(&magnitude) {
        return format!("{value:.*e}", digits.saturating_sub(1)).replace('-', "−");
    }
    let decimals = (digits as i32 - 1 - magnitude).max(0) as usize;
    format!("{value:.decimals$}").replace('-', "−")
}

/// Power of ten of the leading digit once `value` is rounded to `digits` significant digits.
fn exponent(value: f64, digits: usize) -> i32 {
    let rounded: f64 = format!("{value:.*e}", digits.saturating_sub(1))
        .parse()
        .unwrap_or(value);
    rounded.abs().log10().floor() as i32
}

/// `value ± error`, both to the decimal place of the error's first significant digit (two where it
/// is a one), as errors are written.
pub fn with_error(value: f64, error: f64) -> String {
    if !value.is_finite() {
        return UNDEFINED.to_owned();
    }
    if !error.is_finite() || error <= 0.0 {
        return significant(value, 3);
    }
    let first = (error / 10f64.powi(error.log10().floor() as i32)) as u32;
    let digits = if first == 1 { 2 } else { 1 };
    let decimals = (digits - 1 - exponent(error, digits as usize)).clamp(0, 9) as usize;
    format!("{value:.decimals$} ± {error:.decimals$}").replace('-', "−")
}

/// Bytes in decimal megabytes, as servers count: `13.6 MB`, `347 MB`, `1.20 GB`.
pub fn file_size(bytes: u64) -> String {
    let megabytes = bytes as f64 / 1e6;
    if megabytes < 1000.0 {
        format!("{} MB", significant(megabytes, 3))
    } else {
        format!("{} GB", significant(megabytes / 1000.0, 3))
    }
}

/// A count with commas between thousands: `14,112`.
pub fn grouped(count: usize) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Parameters in millions: `25.6 M`.
pub fn millions(count: usize) -> String {
    format!("{} M", significant(count as f64 / 1e6, 3))
}

/// A duration to the second: `12 s`, `1 min 05 s`, `2 h 10 min`; below ten seconds with a decimal.
pub fn duration(time: Duration) -> String {
    let secs = time.as_secs();
    if secs < 10 {
        format!("{:.1} s", time.as_secs_f64())
    } else if secs < 60 {
        format!("{secs} s")
    } else if secs < 3600 {
        format!("{} min {:02} s", secs / 60, secs % 60)
    } else {
        format!("{} h {:02} min", secs / 3600, secs / 60 % 60)
    }
}

/// Memory in megabytes of 10⁶ bytes.
pub fn megabytes(bytes: usize) -> String {
    format!("{} MB", bytes / 1_000_000)
}

/// A typed magnitude: a positive finite number; a decimal comma is taken for a point.
pub fn parse_positive(text: &str) -> Option<f64> {
    let value: f64 = text
        .trim()
        .replace(',', ".")
        .replace('−', "-")
        .parse()
        .ok()?;
    (value.is_finite() && value > 0.0).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn significant_digits_are_counted_after_rounding() {
        assert_eq!(significant(2.512, 3), "2.51");
        assert_eq!(significant(0.01, 3), "0.0100");
        assert_eq!(significant(9.999, 3), "10.0");
        assert_eq!(significant(100.0, 3), "100");
        assert_eq!(significant(-0.5, 2), "−0.50");
        assert_eq!(significant(1.5e-6, 2), "1.5e−6");
        assert_eq!(significant(f64::NAN, 3), UNDEFINED);
    }

    #[test]
    fn errors_decide_the_decimals() {
        assert_eq!(with_error(3.5412, 0.0312), "3.54 ± 0.03");
        assert_eq!(with_error(3.5412, 0.0123), "3.541 ± 0.012");
        assert_eq!(with_error(109.3, 2.4), "109 ± 2");
        assert_eq!(with_error(1.0, 0.098), "1.0 ± 0.1");
        assert_eq!(with_error(1.0, f64::NAN), "1.00");
        assert_eq!(with_error(f64::NAN, 0.1), UNDEFINED);
    }

    #[test]
    fn typed_numbers_may_use_a_comma_and_must_be_positive() {
        assert_eq!(parse_positive(" 2,5 "), Some(2.5));
        assert_eq!(parse_positive("1e-2"), Some(0.01));
        assert_eq!(parse_positive("0"), None);
        assert_eq!(parse_positive("−3"), None);
        assert_eq!(parse_positive("inf"), None);
        assert_eq!(parse_positive("two"), None);
    }

    #[test]
    fn durations_name_two_units_at_most() {
        let said = |secs| duration(Duration::from_secs(secs));
        assert_eq!(said(3), "3.0 s");
        assert_eq!(said(59), "59 s");
        assert_eq!(said(65), "1 min 05 s");
        assert_eq!(said(7800), "2 h 10 min");
    }
}
