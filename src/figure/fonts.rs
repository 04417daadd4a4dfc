//! The bundled type family: Lato 2, whose figures are all of one width and which has the Greek
//! letters, sub- and superscripts and signs that the labels need. SIL Open Font License 1.1.

use std::sync::{Arc, OnceLock};

use resvg::usvg::fontdb;

/// Family name, as font files and SVG call it.
pub const FAMILY: &str = "Lato";
/// Lato Regular, a TrueType file.
pub const REGULAR: &[u8] = include_bytes!("../../assets/fonts/Lato-Regular.ttf");
/// Lato Bold, a TrueType file.
pub const BOLD: &[u8] = include_bytes!("../../assets/fonts/Lato-Bold.ttf");

/// Height of capitals and figures over the type size (1433 of 2000 units).
pub(crate) const CAP_HEIGHT: f64 = 0.717;
/// Depth of the deepest letters below the baseline over the type size (426 of 2000 units).
pub(crate) const DESCENT: f64 = 0.213;

/// The bundled fonts and no others: drawing does not depend on what a system has installed.
pub(crate) fn database() -> Arc<fontdb::Database> {
    static DATABASE: OnceLock<Arc<fontdb::Database>> = OnceLock::new();
    Arc::clone(DATABASE.get_or_init(|| {
        let mut database = fontdb::Database::new();
        for font in [REGULAR, BOLD] {
            database.load_font_source(fontdb::Source::Binary(Arc::new(font)));
        }
        Arc::new(database)
    }))
}
