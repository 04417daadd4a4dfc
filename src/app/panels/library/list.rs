//! The list: which encoders it holds, in which order, and its rows.

use eframe::egui::{
    Align, Align2, Button, FontId, Layout, Pos2, Rect, Role, ScrollArea, Sense, Stroke, StrokeKind,
    Ui, Vec2, WidgetInfo,
};

use crate::app::format;
use crate::app::intent::Scene;
use crate::app::state::{Fetch, LibraryState};
use crate::app::theme::{self, Palette, SMALL};
use crate::app::view::{Column, LibraryView};
use crate::encoders::weights::find::Origin;
use crate::worker::library::Holding;

/// Height of a row in points.
const ROW: f32 = 24.0;
/// Rows that a page key moves by.
pub(super) const PAGE: usize = 12;
/// Columns with their headings and widths in points; the title takes what is left.
const COLUMNS: [(Column, &str, f32); 7] = [
    (Column::Title, "Encoder", 0.0),
    (Column::Family, "Family", 108.0),
    (Column::Input, "Input", 56.0),
    (Column::Parameters, "Params", 64.0),
    (Column::File, "File", 68.0),
    (Column::Licence, "Licence", 104.0),
    (Column::State, "Weights", 84.0),
];
/// Least width of a list with all columns.
const NARROW: f32 = 720.0;
/// Distance between columns.
const SPACING: f32 = 14.0;

/// Where an encoder's weights are, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Bundled,
    Here,
    Published,
    Gated,
    ByHand,
}

impl Place {
    pub(super) fn of(holding: &Holding) -> Self {
        match &holding.row.origin {
            Origin::Bundled(..) => Self::Bundled,
            _ if holding.status.installed => Self::Here,
            _ if !holding.status.can_be_fetched => Self::ByHand,
            _ if holding.row.gated => Self::Gated,
            _ => Self::Published,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Bundled => "bundled",
            Self::Here => "installed",
            Self::Published => "to fetch",
            Self::Gated => "gated",
            Self::ByHand => "by hand",
        }
    }

    pub(super) fn sentence(self) -> &'static str {
        match self {
            Self::Bundled => "The weights are part of the program.",
            Self::Here => "The weights are on this machine.",
            Self::Published => "The program can fetch the weights from where they are published.",
            Self::Gated => {
                "The authors give the weights to those who accept their licence; then the program \
                 can fetch them with your token of the hub."
            }
            Self::ByHand => {
                "The program cannot fetch these weights: get the file yourself and open it."
            }
        }
    }

    fn is_here(self) -> bool {
        matches!(self, Self::Bundled | Self::Here)
    }
}

/// The encoders that search and filters leave, in the chosen order.
pub(super) fn rows<'a>(holdings: &'a [Holding], library: &LibraryView) -> Vec<&'a Holding> {
    let words: Vec<String> = (library.search.split_whitespace())
        .map(str::to_lowercase)
        .collect();
    let matches = |holding: &&Holding| {
        let row = holding.row;
        let family = row.architecture.family();
        if library.family.is_some_and(|wanted| wanted != family) {
            return false;
        }
        if library.here_only && !holding.status.installed {
            return false;
        }
        let spec = &row.spec;
        let place = Place::of(holding).word();
        let text = format!(
            "{} {} {family} {} {} {} {place} {}",
            spec.title, spec.name, spec.source, spec.licence, row.citation, row.note
        );
        let text = text.to_lowercase();
        words.iter().all(|word| text.contains(word.as_str()))
    };
    let mut rows: Vec<&Holding> = holdings.iter().filter(matches).collect();
    if let Some((column, descending)) = library.sort {
        rows.sort_by(|a, b| {
            let (x, y) = (&a.row.spec, &b.row.spec);
            let order = match column {
                Column::Title => x.title.to_lowercase().cmp(&y.title.to_lowercase()),
                Column::Family => {
                    let family = |one: &Holding| one.row.architecture.family();
                    family(a).cmp(family(b))
                }
                Column::Input => x.side_px.cmp(&y.side_px),
                Column::Parameters => x.parameters.cmp(&y.parameters),
                Column::File => {
                    let size =
                        |one: &Holding| one.status.size_bytes.unwrap_or(one.status.memory_bytes);
                    size(a).cmp(&size(b))
                }
                Column::Licence => x.licence.to_lowercase().cmp(&y.licence.to_lowercase()),
                Column::State => Place::of(a).cmp(&Place::of(b)),
            };
            if descending { order.reverse() } else { order }
        });
    }
    rows
}

/// Headings and rows.
pub(super) fn list_ui(ui: &mut Ui, scene: &Scene<'_>, library: &mut LibraryView, height: f32) {
    let palette = Palette::for_ui(ui);
    let bottom = ui.cursor().top() + height;
    // The scroll bar stands right of the rows.
    let width = ui.available_width() - 12.0;
    headings_ui(ui, library, width);
    let known = &scene.state.library;
    let rows = rows(&known.holdings, library);
    if rows.is_empty() {
        empty_ui(ui, known, library);
        return;
    }
    let height = bottom - ui.cursor().top() - 4.0;
    let pitch = ROW;
    let mut area = ScrollArea::vertical()
        .id_salt("list of encoders")
        .max_height(height)
        .auto_shrink([false, false]);
    if std::mem::take(&mut library.scroll_to_selected) {
        let place = rows
            .iter()
            .position(|one| *one.row.spec.name == *library.selected);
        let top = place.unwrap_or_default() as f32 * pitch;
        let [from, seen] = library.seen;
        if top < from || top + pitch > from + seen {
            area = area.vertical_scroll_offset((top - height / 2.0).max(0.0));
        }
    }
    ui.spacing_mut().item_spacing.y = 0.0;
    let output = area.show_rows(ui, pitch, rows.len(), |ui, range| {
        for holding in &rows[range] {
            let is_selected = *holding.row.spec.name == *library.selected;
            let response = row_ui(ui, scene, holding, is_selected, width, palette);
            if response.clicked() || response.gained_focus() {
                library.selected = holding.row.spec.name.to_string();
            }
        }
    });
    library.seen = [output.state.clamped_offset().y, output.inner_rect.height()];
}

/// A column's heading, left edge and width.
type Slot = (Column, &'static str, [f32; 2]);

/// The columns of a list of this width from its left edge on. Where there is no room for all, family
/// and licence are left to filter, search and details.
fn columns(left: f32, width: f32) -> Vec<Slot> {
    let is_narrow = width < NARROW;
    let is_shown = |(column, ..): &&(Column, &str, f32)| {
        !is_narrow || !matches!(column, Column::Family | Column::Licence)
    };
    let shown: Vec<_> = COLUMNS.iter().filter(is_shown).collect();
    let fixed: f32 = shown.iter().map(|(_, _, own)| own + SPACING).sum();
    let mut at = left + 6.0;
    let place = |&&(column, title, own): &&(Column, &'static str, f32)| {
        let own = match column {
            Column::Title => (width - fixed).max(120.0),
            _ => own,
        };
        let place = (column, title, [at, own]);
        at += own + SPACING;
        place
    };
    shown.iter().map(place).collect()
}

fn is_number(column: Column) -> bool {
    matches!(column, Column::Input | Column::Parameters | Column::File)
}

fn headings_ui(ui: &mut Ui, library: &mut LibraryView, width: f32) {
    let (rect, _) = ui.allocate_exact_size(Vec2::new(width, ROW), Sense::hover());
    for (column, title, [left, own]) in columns(rect.left(), width) {
        let (arrow, order) = match library.sort {
            Some((sorted, false)) if sorted == column => (" ↑", "ascending"),
            Some((sorted, true)) if sorted == column => (" ↓", "descending"),
            _ => ("", "not sorted"),
        };
        let place = Rect::from_min_size(Pos2::new(left, rect.top()), Vec2::new(own, ROW));
        let layout = if is_number(column) {
            Layout::right_to_left(Align::Center)
        } else {
            Layout::left_to_right(Align::Center)
        };
        let builder = eframe::egui::UiBuilder::new()
            .max_rect(place)
            .layout(layout);
        let mut part = ui.new_child(builder);
        part.spacing_mut().button_padding.x = 0.0;
        let button = Button::new(theme::note(format!("{title}{arrow}"))).frame(false);
        let response = part
            .add(button)
            .accessible_name(format!("Sort by {title}, {order}"))
            .on_hover_text("Sort: ascending, descending, as offered");
        if response.clicked() {
            library.sort = match library.sort {
                Some((sorted, false)) if sorted == column => Some((column, true)),
                Some((sorted, true)) if sorted == column => None,
                _ => Some((column, false)),
            };
            library.scroll_to_selected = true;
        }
    }
    let line = [rect.left_bottom(), rect.right_bottom()];
    ui.painter()
        .line_segment(line, Stroke::new(1.0, Palette::for_ui(ui).edge));
}

fn row_ui(
    ui: &mut Ui,
    scene: &Scene<'_>,
    holding: &Holding,
    is_selected: bool,
    width: f32,
    palette: Palette,
) -> eframe::egui::Response {
    // One stop for the Tab key in the whole list: the selected row.
    let sense = if is_selected {
        Sense::click()
    } else {
        Sense::CLICK
    };
    let (rect, response) = ui.allocate_exact_size(Vec2::new(width, ROW), sense);
    let row = holding.row;
    let spec = &row.spec;
    if is_selected {
        let fill = ui.visuals().selection.bg_fill;
        ui.painter().rect_filled(rect, 4.0, fill);
    } else if response.hovered() {
        ui.painter().rect_filled(rect, 4.0, palette.control);
    }
    if response.has_focus() {
        let stroke = Stroke::new(2.0, palette.encoder(0));
        ui.painter()
            .rect_stroke(rect, 4.0, stroke, StrokeKind::Inside);
    }
    let place = Place::of(holding);
    // Where no size is published, about what the parameters take in single precision.
    let size = holding.status.size_bytes.map_or_else(
        || format!("≈ {}", format::file_size(holding.status.memory_bytes)),
        format::file_size,
    );
    let state = match scene.state.library.fetches.get(&*spec.name) {
        Some(Fetch::Asking) => "asking…".to_owned(),
        Some(Fetch::Running {
            done_bytes,
            total_bytes: Some(total),
            ..
        }) => format!(
            "{:.0} %",
            100.0 * *done_bytes as f64 / (*total).max(1) as f64
        ),
        Some(Fetch::Running { .. }) => "fetching".to_owned(),
        Some(Fetch::Failed(_)) => "failed".to_owned(),
        _ if scene.state.shows(&spec.name) => "in use".to_owned(),
        _ => place.word().to_owned(),
    };
    let cell = |column| match column {
        Column::Title => spec.title.to_string(),
        Column::Family => row.architecture.family().to_owned(),
        Column::Input => format!("{} px", spec.side_px),
        Column::Parameters => format::millions(spec.parameters),
        Column::File => size.clone(),
        Column::Licence => spec.licence.to_string(),
        Column::State => state.clone(),
    };
    let font = FontId::proportional(theme::BODY);
    let small = FontId::proportional(SMALL);
    let strong = if place.is_here() {
        palette.text
    } else {
        palette.text.gamma_multiply(0.85)
    };
    for (column, _, [left, own]) in columns(rect.left(), width) {
        let is_title = column == Column::Title;
        let colour = match column {
            Column::Title => strong,
            Column::State if state == "failed" => palette.error,
            Column::State if state == "in use" => palette.text,
            _ if is_selected => palette.text,
            _ => palette.weak,
        };
        let font = if is_title {
            font.clone()
        } else {
            small.clone()
        };
        let mut job = eframe::egui::text::LayoutJob::simple_singleline(cell(column), font, colour);
        job.wrap = eframe::egui::text::TextWrapping::truncate_at_width(own);
        let galley = ui.painter().layout_job(job);
        let anchor = if is_number(column) {
            Align2::RIGHT_CENTER
        } else {
            Align2::LEFT_CENTER
        };
        let x = if is_number(column) { left + own } else { left };
        let at = anchor.anchor_size(Pos2::new(x, rect.center().y), galley.size());
        ui.painter().galley(at.min, galley, colour);
    }
    let said = format!(
        "{}, {}, {} px, {} parameters, file {}, licence {}, {state}",
        spec.title,
        row.architecture.family(),
        spec.side_px,
        format::millions(spec.parameters),
        size,
        spec.licence,
    );
    response.widget_info(|| WidgetInfo::selected(Role::ListBoxOption, true, is_selected, &said));
    response
}

/// Why the list is empty, and what to do.
fn empty_ui(ui: &mut Ui, known: &LibraryState, library: &mut LibraryView) {
    ui.add_space(24.0);
    if !known.is_listed {
        ui.label(theme::note("Looking at which weights are on this machine…"));
        return;
    }
    if known.holdings.is_empty() {
        ui.label("No encoder could be listed.");
        ui.label(theme::note("Close this card and open it again."));
        return;
    }
    ui.label("No encoder matches.");
    ui.label(theme::note(
        "The search looks at titles, names, families, papers, licences and notes; every word must \
         be found.",
    ));
    ui.add_space(8.0);
    if ui.button("Clear search and filters").clicked() {
        library.search.clear();
        library.family = None;
        library.here_only = false;
        library.scroll_to_selected = true;
    }
}
