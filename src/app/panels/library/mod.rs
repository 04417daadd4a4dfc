//! The encoders: find, fetch, use, compare; and weight files of the reader's own.

mod details;
mod file;
mod list;
mod stages;

use eframe::egui::{
    Align2, ComboBox, DragValue, Id, Key, Layout, Modifiers, TextEdit, Ui, Vec2, Window,
};

use super::heading;
use super::status::memory_text;
use crate::app::format;
use crate::app::intent::{Intent, Scene};
use crate::app::settings::BUDGET_RANGE_MB;
use crate::app::state::Fetch;
use crate::app::theme::{self, Palette};
use crate::app::view::{LibraryPage, LibraryView, View};
use crate::worker::library::Holding;

/// Largest size of the card, in points; smaller windows leave it less.
const SIZE: Vec2 = Vec2::new(1200.0, 760.0);
/// Width of the details, in points.
const DETAILS: f32 = 348.0;
/// Height of the line of memory at the bottom, in points.
const FOOTER: f32 = 34.0;

/// The card.
pub fn library_ui(ui: &Ui, scene: &Scene<'_>, view: &mut View, intents: &mut Vec<Intent>) {
    let palette = Palette::for_ui(ui);
    let room = ui.ctx().content_rect().size() - Vec2::new(96.0, 112.0);
    let size = SIZE.min(room);
    let mut is_closed = false;
    Window::new("Encoders")
        .title_bar(false)
        .collapsible(false)
        .resizable(false)
        .anchor(Align2::CENTER_CENTER, Vec2::ZERO)
        .frame(theme::floating_card(ui, palette).inner_margin(16))
        .show(ui.ctx(), |ui| {
            ui.set_min_size(size);
            ui.set_max_size(size);
            let bottom = ui.max_rect().bottom();
            let title = match view.library.page {
                LibraryPage::Encoders => "Encoders",
                LibraryPage::File => "Weights file",
            };
            heading(ui, title, |ui| {
                is_closed = ui.button("Close").on_hover_text("Esc").clicked();
                ui.add_space(8.0);
                pages_ui(ui, view, intents);
            });
            ui.add_space(4.0);
            let height = bottom - FOOTER - ui.cursor().top();
            match view.library.page {
                LibraryPage::Encoders => {
                    is_closed |= encoders_ui(ui, scene, view, height, intents);
                }
                LibraryPage::File => {
                    ui.allocate_ui(Vec2::new(size.x, height), |ui| {
                        ui.set_min_size(Vec2::new(size.x, height));
                        file::file_ui(ui, scene, view, intents);
                    });
                }
            }
            memory_ui(ui, scene, intents);
        });
    view.card_is_new = false;
    if is_closed {
        view.card = None;
    }
}

/// The way to the other page.
fn pages_ui(ui: &mut Ui, view: &mut View, intents: &mut Vec<Intent>) {
    match view.library.page {
        LibraryPage::Encoders => {
            let button = ui.button("Open a weights file…");
            let hint = "Weights of your own: safetensors, PyTorch, an index of shards (W)";
            if button.on_hover_text(hint).clicked() {
                view.library.page = LibraryPage::File;
                intents.push(Intent::BrowseWeights);
            }
        }
        LibraryPage::File => {
            if ui
                .button("All encoders")
                .on_hover_text("Back to the list")
                .clicked()
            {
                view.library.page = LibraryPage::Encoders;
                view.card_is_new = true;
            }
        }
    }
}

/// Search, list and details; true where what was asked for closes the card.
fn encoders_ui(
    ui: &mut Ui,
    scene: &Scene<'_>,
    view: &mut View,
    height: f32,
    intents: &mut Vec<Intent>,
) -> bool {
    let top = ui.cursor().top();
    let rows = list::rows(&scene.state.library.holdings, &view.library);
    let mut is_entered = false;
    let width = ui.available_width();
    let list_width = width - DETAILS - 24.0;
    let layout = Layout::left_to_right(eframe::egui::Align::Min);
    let mut closes = false;
    ui.allocate_ui_with_layout(Vec2::new(width, height), layout, |ui| {
        ui.vertical(|ui| {
            ui.set_width(list_width);
            is_entered = search_ui(ui, scene, view, &rows, list_width);
            let left = height - (ui.cursor().top() - top);
            list::list_ui(ui, scene, &mut view.library, left);
        });
        ui.add_space(8.0);
        ui.vertical(|ui| {
            ui.set_width(DETAILS);
            ui.set_min_height(height);
            let found = list::rows(&scene.state.library.holdings, &view.library);
            let selected = found
                .iter()
                .copied()
                .find(|one| *one.row.spec.name == *view.library.selected);
            match selected {
                Some(holding) => {
                    closes = details::details_ui(ui, scene, view, holding, height, intents);
                    if is_entered {
                        closes |= act(scene, holding, intents);
                    }
                }
                None => {
                    ui.label(theme::note("Select an encoder to see what it is."));
                }
            }
        });
    });
    closes
}

/// What Enter does: uses what is here, and leads to it what is not.
fn act(scene: &Scene<'_>, holding: &Holding, intents: &mut Vec<Intent>) -> bool {
    let name: &'static str = &holding.row.spec.name;
    if holding.status.installed {
        intents.push(Intent::Encoder(name));
        return true;
    }
    if holding.status.can_be_fetched {
        match scene.state.library.fetches.get(name) {
            None | Some(Fetch::Failed(_) | Fetch::Done) => intents.push(Intent::Look(name)),
            Some(Fetch::Offered(_)) => intents.push(Intent::Fetch(name)),
            Some(Fetch::Asking | Fetch::Running { .. }) => {}
        }
    }
    false
}

/// Search box and filters; true where Enter was pressed in the box.
fn search_ui(
    ui: &mut Ui,
    scene: &Scene<'_>,
    view: &mut View,
    rows: &[&Holding],
    width: f32,
) -> bool {
    let id = Id::unique("search encoders");
    if ui.memory(|memory| memory.has_focus(id)) {
        move_selection(ui, &mut view.library, rows);
    }
    let mut is_entered = false;
    ui.horizontal(|ui| {
        let field = TextEdit::singleline(&mut view.library.search)
            .id(id)
            .hint_text("Search: title, family, paper, licence…")
            .desired_width(width - 330.0);
        let response = ui.add(field).accessible_name("Search encoders");
        if view.card_is_new {
            response.request_focus();
        }
        if response.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter)) {
            is_entered = true;
            response.request_focus();
        }
        if response.changed() {
            view.library.scroll_to_selected = true;
        }
        family_ui(ui, scene, &mut view.library);
        ui.checkbox(&mut view.library.here_only, "Ready to use")
            .on_hover_text("Only encoders whose weights are on this machine");
    });
    let found = list::rows(&scene.state.library.holdings, &view.library);
    let is_shown = |name: &str| found.iter().any(|one| *one.row.spec.name == *name);
    if !is_shown(&view.library.selected)
        && let Some(first) = found.first()
    {
        view.library.select(&first.row.spec.name);
    }
    is_entered
}

/// Arrow and page keys move the selection while the search box has the focus.
fn move_selection(ui: &Ui, library: &mut LibraryView, rows: &[&Holding]) {
    let steps = ui.input_mut(|input| {
        let mut presses = |key| input.count_and_consume_key(Modifiers::NONE, key) as isize;
        let lines = presses(Key::ArrowDown) - presses(Key::ArrowUp);
        lines + list::PAGE as isize * (presses(Key::PageDown) - presses(Key::PageUp))
    });
    if steps == 0 || rows.is_empty() {
        return;
    }
    let now = rows
        .iter()
        .position(|one| *one.row.spec.name == *library.selected);
    let last = rows.len() as isize - 1;
    let next = now.map_or(0, |now| (now as isize + steps).clamp(0, last));
    if let Some(row) = rows.get(next as usize) {
        library.select(&row.row.spec.name);
    }
}

fn family_ui(ui: &mut Ui, scene: &Scene<'_>, library: &mut LibraryView) {
    let mut families: Vec<&'static str> = (scene.state.library.holdings.iter())
        .map(|one| one.row.architecture.family())
        .collect();
    families.sort_unstable();
    families.dedup();
    let shown = library.family.unwrap_or("All families");
    let combo = ComboBox::from_id_salt("family of encoders")
        .width(150.0)
        .selected_text(shown);
    let inner = combo.show_ui(ui, |ui| {
        let all = families.into_iter().map(Some);
        for family in std::iter::once(None).chain(all) {
            let text = family.unwrap_or("All families");
            if ui
                .selectable_label(family == library.family, text)
                .clicked()
            {
                library.family = family;
                library.scroll_to_selected = true;
            }
        }
    });
    inner.response.accessible_name("Family");
}

/// What the weights in memory take, and what they may.
fn memory_ui(ui: &mut Ui, scene: &Scene<'_>, intents: &mut Vec<Intent>) {
    let memory = &scene.state.memory;
    ui.separator();
    ui.horizontal(|ui| {
        let text = match memory.loaded.len() {
            0 => "No weights in memory".to_owned(),
            count => {
                let networks = if count == 1 { "network" } else { "networks" };
                let size = format::file_size(memory.used_bytes());
                format!("Weights in memory: {size} of {count} {networks}, twins counted")
            }
        };
        ui.label(theme::note(text))
            .on_hover_text(memory_text(scene.state));
        ui.label(theme::note("·  keep at most"));
        let mut budget = scene.settings.weights_budget_mb;
        let [least, most] = BUDGET_RANGE_MB;
        let field = DragValue::new(&mut budget)
            .range(least..=most)
            .speed(20.0)
            .suffix(" MB");
        let hint = "Networks that are not in use give way beyond this, the longest unused first; \
                    those on screen stay";
        let response = ui
            .add(field)
            .accessible_name("Budget of the weights in megabytes");
        if response.on_hover_text(hint).changed() {
            intents.push(Intent::Budget(budget));
        }
        if memory.used_bytes() > memory.budget_bytes {
            let palette = Palette::for_ui(ui);
            let text = "the networks on screen take more than this";
            ui.label(theme::note(text).color(palette.warning));
        }
    });
}
