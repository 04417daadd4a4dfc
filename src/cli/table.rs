//! Columns of text for a terminal.

/// Lays out rows in columns two spaces apart, each as wide as its widest cell; the first row is the
/// heading. The last column is not padded.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(&format!("{cell:<width$}  "));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_by_characters_and_lines_end_without_spaces() {
        let rows = [["η", "shape"], ["0.25", "bump"], ["100", ""]]
            .map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(&rows), "η     shape\n0.25  bump\n100\n");
        assert_eq!(table(&[]), "");
    }
}
