//! Numbers in few digits.

/// `value` to `digits` significant digits, at least one, and never with an exponent: 9.999 is `10.0`
/// in three, 15,000 is `15000`.
pub fn significant(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    let after_first = digits.saturating_sub(1);
    // The exponent after rounding, which may be one more than that of the value itself.
    let rounded = format!("{value:.after_first$e}");
    let exponent: i32 = rounded
        .split_once('e')
        .and_then(|(_, exponent)| exponent.parse().ok())
        .unwrap_or(0);
    let decimals = (after_first as i32 - exponent).max(0) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_kept_across_powers_of_ten() {
        for (value, text) in [
            (1.0, "1.00"),
            (0.25, "0.250"),
            (109.4, "109"),
            (3.544, "3.54"),
            (9.994, "9.99"),
            (9.999, "10.0"),
            (99.96, "100"),
            (0.099_99, "0.100"),
            (0.001_234_5, "0.00123"),
            (15_000.0, "15000"),
            (-0.027_9, "-0.0279"),
            (0.0, "0.00"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(significant(value, 3), text);
        }
        assert_eq!(significant(0.96, 1), "1");
    }
}
