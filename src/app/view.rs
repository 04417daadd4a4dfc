//! State of the interface alone: what is typed and not yet asked for, which cards are open, where
//! things stood in the last frame.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use eframe::egui::{ColorImage, Context, TextureHandle, TextureId, TextureOptions};

use super::plots::PlotPlace;
use crate::images::{Disc, Picture};
use crate::worker::ExportFormat;

/// A card that floats above the panels. None of them blocks what lies beneath.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Card {
    /// Choice of a photograph.
    Open,
    /// The encoders: find, fetch, use, compare; and weights files.
    Encoders,
    /// What to export and where.
    Export,
    /// All keys.
    Keys,
    /// All messages.
    Messages,
    /// Version, sources, licences.
    About,
}

/// State of the interface.
#[derive(Default)]
pub struct View {
    /// The card on top, if any.
    pub card: Option<Card>,
    /// True in the frame after a card was opened, for the keyboard focus.
    pub card_is_new: bool,
    /// Path in the open card.
    pub path: String,
    /// What the open card says about the system's dialog.
    pub dialog: DialogState,
    /// The export card.
    pub export: ExportForm,
    /// The card of the encoders.
    pub library: LibraryView,
    /// The magnitude as it is being typed.
    pub eta_text: Option<String>,
    /// The rank as it is being typed.
    pub rank_text: Option<String>,
    /// The score that is drawn against the rank.
    pub edit_metric: EditMetric,
    /// The column that orders the maps.
    pub table_order: TableOrder,
    /// The path of the folder that maps are learnt from, as it is being typed.
    pub edit_folder: String,
    /// Pictures on the window's device.
    pub pictures: Pictures,
    /// The seed as it is being typed.
    pub seed_text: Option<String>,
    /// The path of the photograph that directions lead toward, as it is being typed.
    pub toward_text: String,
    /// Whether dragging on the photograph paints the mask instead of moving the seam.
    pub is_painting: bool,
    /// Discs that were painted since the button went down.
    pub painted: Vec<Disc>,
    /// Fraction of the preview left of the seam.
    pub seam: f32,
    /// Where the plots of profiles stood.
    pub plots: Vec<PlotPlace>,
    /// Where the plot of spectra stood.
    pub spectrum_plot: Option<PlotPlace>,
    /// Show the whole ladder in the next frame.
    pub reset_plots: bool,
    /// Whether a button of the pointer was down in the last frame.
    pub is_held: bool,
    /// Where the curves are, for the welcome to stay clear of.
    pub response_rect: Option<eframe::egui::Rect>,
}

impl View {
    /// The view at the start.
    pub fn new(export_folder: Option<PathBuf>) -> Self {
        Self {
            seam: 0.5,
            reset_plots: true,
            export: ExportForm::new(export_folder),
            ..Self::default()
        }
    }

    /// Opens a card.
    pub fn open(&mut self, card: Card) {
        self.card = Some(card);
        self.card_is_new = true;
        if matches!(card, Card::Open | Card::Encoders) {
            self.dialog = DialogState::Hidden;
        }
    }
}

/// A score that is drawn against the rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EditMetric {
    /// Median cosine of features.
    #[default]
    Mdncs,
    /// Structural similarity of pictures.
    Ssim,
    /// Peak signal-to-noise ratio of pictures.
    Psnr,
    /// Mean squared error of pictures.
    Mse,
}

/// What orders the table of maps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TableOrder {
    /// The simplest kind first.
    #[default]
    Kind,
    /// The largest median cosine first.
    Mdncs,
    /// The smallest mean squared error first.
    Mse,
}

/// Pictures as the window's device holds them, one for each place.
#[derive(Default)]
pub struct Pictures {
    held: HashMap<&'static str, (Arc<Picture>, TextureHandle)>,
}

impl Pictures {
    /// The texture of a place, uploaded where it shows another picture than before.
    pub fn texture(
        &mut self,
        context: &Context,
        place: &'static str,
        picture: &Arc<Picture>,
    ) -> TextureId {
        if let Some((known, texture)) = self.held.get(place)
            && Arc::ptr_eq(known, picture)
        {
            return texture.id();
        }
        let size = [picture.width(), picture.height()];
        let image = ColorImage::from_rgb(size, picture.rgb());
        let texture = context.load_texture(place, image, TextureOptions::LINEAR);
        let id = texture.id();
        self.held.insert(place, (Arc::clone(picture), texture));
        id
    }
}

/// The card of the encoders.
#[derive(Clone, Debug, Default)]
pub struct LibraryView {
    /// Which page it shows.
    pub page: LibraryPage,
    /// What is searched for.
    pub search: String,
    /// The family that the list keeps to.
    pub family: Option<&'static str>,
    /// Whether the list keeps to encoders whose weights are here.
    pub here_only: bool,
    /// The column that orders the list; without one it is in the registry's order.
    pub sort: Option<(Column, bool)>,
    /// Name of the selected encoder.
    pub selected: String,
    /// Whether the selected row is to be scrolled to.
    pub scroll_to_selected: bool,
    /// Upper edge and height of the visible part of the list in the last frame, in points.
    pub seen: [f32; 2],
    /// Path of a weights file.
    pub path: String,
    /// The encoder chosen among the proposals for the file.
    pub proposal: Option<String>,
}

impl LibraryView {
    /// Selects a row, and shows it.
    pub fn select(&mut self, name: &str) {
        name.clone_into(&mut self.selected);
        self.scroll_to_selected = true;
    }
}

/// A page of the card of the encoders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LibraryPage {
    /// The list with the details of the selected encoder.
    #[default]
    Encoders,
    /// A weights file of the reader's own.
    File,
}

/// A column of the list of encoders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Title.
    Title,
    /// Family.
    Family,
    /// Input side.
    Input,
    /// Number of parameters.
    Parameters,
    /// Size of the weight file.
    File,
    /// Licence of the weights.
    Licence,
    /// Whether the weights are here.
    State,
}

/// Where the system's dialog is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DialogState {
    /// Not asked for.
    #[default]
    Hidden,
    /// Asked for; it may be behind the window.
    Asked,
    /// It never came up.
    Missing,
}

/// The export card as it is being filled in.
#[derive(Clone, Debug, Default)]
pub struct ExportForm {
    /// Folder.
    pub folder: String,
    /// File name without extension; follows the photograph until it is edited.
    pub stem: Option<String>,
    /// Formats with whether they are wanted.
    pub formats: Vec<(ExportFormat, bool)>,
}

impl ExportForm {
    fn new(folder: Option<PathBuf>) -> Self {
        let folder = folder
            .or_else(|| {
                directories::UserDirs::new()?
                    .document_dir()
                    .map(|dir| dir.join("Etascope"))
            })
            .or_else(|| std::env::current_dir().ok())
            .unwrap_or_default();
        let all = [
            ExportFormat::Csv,
            ExportFormat::Json,
            ExportFormat::Svg,
            ExportFormat::Png,
        ];
        Self {
            folder: folder.display().to_string(),
            stem: None,
            formats: all.map(|format| (format, true)).to_vec(),
        }
    }
}
