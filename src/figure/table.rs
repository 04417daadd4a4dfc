//! Tables as CSV whose numbers read back exactly.

use crate::{Error, ErrorKind, Result};

/// One value of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Text.
    Text(String),
    /// A number, written in the fewest digits that read back as the same f64; empty for NaN.
    Number(f64),
    /// A count.
    Count(usize),
    /// `true` or `false`.
    Flag(bool),
}

impl Cell {
    /// As written in a file.
    pub fn to_field(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) if number.is_nan() => String::new(),
            // `Debug` keeps to the shortest digits and, other than `Display`, uses exponents.
            Self::Number(number) => format!("{number:?}"),
            Self::Count(count) => count.to_string(),
            Self::Flag(flag) => flag.to_string(),
        }
    }
}

/// A CSV file (RFC 4180, UTF-8, lines ended by `\n`) with `columns` as its header.
///
/// Fails where a row has another number of cells than the header.
pub fn csv<R: AsRef<[Cell]>>(
    columns: &[&str],
    rows: impl IntoIterator<Item = R>,
) -> Result<String> {
    let failed = |why: String| {
        let remedy = "Report this as a fault of the program";
        Error::new(ErrorKind::Internal, "cannot write the table", why, remedy)
    };
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer
        .write_record(columns)
        .map_err(|error| failed(error.to_string()))?;
    for row in rows {
        let fields = row.as_ref().iter().map(Cell::to_field);
        writer
            .write_record(fields)
            .map_err(|error| failed(error.to_string()))?;
    }
    let bytes = writer
        .into_inner()
        .map_err(|error| failed(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| failed(error.to_string()))
}
