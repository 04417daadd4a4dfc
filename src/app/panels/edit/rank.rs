//! The rank on a logarithmic slider over the whole width, and what is cut.

use eframe::egui::accesskit::Action;
use eframe::egui::{
    Align2, CursorIcon, EventFilter, FontId, Key, Pos2, Rect, Sense, Stroke, TextEdit, Ui, Vec2,
    WidgetInfo,
};

use super::plots::{labelled, place, rank_at};
use super::{alternatives, cut_name, info};
use crate::app::explain;
use crate::app::format;
use crate::app::intent::{Intent, Scene};
use crate::app::theme::{self, LARGE, Palette, SMALL};
use crate::app::view::View;
use crate::geometry::maps::Cut;

/// Width of the typed entry in points.
const ENTRY_WIDTH: f32 = 60.0;
/// Width of what stands right of it in points.
const RIGHT_WIDTH: f32 = 330.0;

/// Label, slider, typed entry, what is cut and how much of it is kept.
pub fn rank_ui(ui: &mut Ui, scene: &Scene<'_>, view: &mut View, intents: &mut Vec<Intent>) {
    let palette = Palette::for_ui(ui);
    let edit = &scene.state.edit;
    ui.horizontal(|ui| {
        ui.set_min_size(Vec2::new(ui.available_width(), 44.0));
        let font = theme::bold_font(LARGE);
        ui.label(theme::scripted("k", &font, palette.marker));
        info(ui, &explain::RANK);
        let right = ENTRY_WIDTH + RIGHT_WIDTH + 3.0 * ui.spacing().item_spacing.x;
        let width = (ui.available_width() - right).max(120.0);
        let (Some(full), Some(rank)) = (edit.full_rank(), edit.rank_within()) else {
            let text = match &edit.fitted {
                Some(_) => "this kind of map has no matrix to cut",
                None => "the rank can be moved once a map is fitted",
            };
            ui.label(theme::note(text));
            return;
        };
        let rank = slider_ui(ui, scene, width, [rank, full], palette, intents);
        entry_ui(ui, rank, full, view, intents);
        let cuts = [
            (
                Cut::Edit,
                "W − I",
                "Cut the edit operator W − I: rank 0 leaves the photograph and moves every feature by the mean displacement",
            ),
            (
                Cut::Map,
                "W",
                "Cut W as in the paper: W is near the identity, so that small ranks cut the photograph away",
            ),
        ];
        ui.label(theme::note("cut of"));
        if let Some(cut) = alternatives(ui, edit.cut, &cuts) {
            intents.push(Intent::Cut(cut));
        }
        let sweep = edit.fitted.as_ref().and_then(|run| run.sweep(edit.cut));
        if let Some(energy) = sweep.and_then(|sweep| sweep.energy_kept(rank)) {
            let percent = format::significant(100.0 * energy, 3);
            ui.label(theme::note(format!("{percent} % of Σσ² kept")))
                .on_hover_text(format!("Share of the squared singular values of {} in the first {rank}", cut_name(edit.cut)));
        }
    });
}

/// The slider; answers with the rank as it is from this frame on.
fn slider_ui(
    ui: &mut Ui,
    scene: &Scene<'_>,
    width: f32,
    [rank, full]: [usize; 2],
    palette: Palette,
    intents: &mut Vec<Intent>,
) -> usize {
    let (rect, response) = ui.allocate_exact_size(Vec2::new(width, 44.0), Sense::click_and_drag());
    let track = Rect::from_x_y_ranges(
        rect.left() + 10.0..=rect.right() - 10.0,
        rect.top() + 12.0..=rect.top() + 18.0,
    );
    let end = place(full as f64);
    let x_of = |rank: usize| track.left() + (place(rank as f64) / end) as f32 * track.width();
    let mut moved = rank as i64;
    if response.double_clicked() {
        moved = scene.state.edit.rank_default().unwrap_or(rank) as i64;
    } else if let Some(pointer) = response.interact_pointer_pos() {
        let fraction = f64::from((pointer.x - track.left()) / track.width()).clamp(0.0, 1.0);
        moved = rank_at(fraction * end).round() as i64;
        response.request_focus();
    }
    if response.has_focus() {
        let filter = EventFilter {
            horizontal_arrows: true,
            vertical_arrows: true,
            ..EventFilter::default()
        };
        ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, filter));
        moved = ui.input(|input| {
            let pressed = |key| input.num_presses(key) as i64;
            let fine = pressed(Key::ArrowRight) + pressed(Key::ArrowUp)
                - pressed(Key::ArrowLeft)
                - pressed(Key::ArrowDown);
            let mut moved = moved + fine;
            for _ in 0..pressed(Key::PageUp) {
                moved = (2 * moved).max(1);
            }
            for _ in 0..pressed(Key::PageDown) {
                moved /= 2;
            }
            match () {
                () if input.key_pressed(Key::Home) => 0,
                () if input.key_pressed(Key::End) => full as i64,
                () => moved,
            }
        });
    }
    moved += ui.input(|input| {
        input.num_accesskit_action_requests(response.id, Action::Increment) as i64
            - input.num_accesskit_action_requests(response.id, Action::Decrement) as i64
    });
    let shown = moved.clamp(0, full as i64) as usize;
    if shown != rank {
        intents.push(Intent::Rank(shown));
    }

    let painter = ui.painter();
    painter.rect_filled(track, 3.0, ui.visuals().widgets.inactive.bg_fill);
    let mut travelled = track;
    travelled.set_right(x_of(shown));
    painter.rect_filled(travelled, 3.0, palette.marker.gamma_multiply(0.55));
    for tick in labelled(full) {
        let at = Pos2::new(x_of(tick), track.bottom() + 3.0);
        painter.line_segment(
            [at, at + Vec2::new(0.0, 5.0)],
            Stroke::new(1.0, palette.weak),
        );
        let font = FontId::proportional(SMALL);
        painter.text(
            at + Vec2::new(0.0, 5.0),
            Align2::CENTER_TOP,
            tick,
            font,
            palette.weak,
        );
    }
    let handle = Pos2::new(x_of(shown), track.center().y);
    let radius = if response.hovered() || response.dragged() {
        10.0
    } else {
        9.0
    };
    painter.circle(
        handle,
        radius,
        palette.marker,
        Stroke::new(2.0, palette.card),
    );
    if response.has_focus() {
        painter.circle_stroke(handle, radius + 3.0, Stroke::new(2.0, palette.encoder(0)));
    }
    if response.hovered() || response.dragged() {
        ui.ctx().set_cursor_icon(CursorIcon::ResizeHorizontal);
    }
    response.widget_info(|| WidgetInfo::slider(true, shown as f64, "Rank k"));
    if ui.ctx().has_accesskit_node(response.id) {
        ui.ctx().accesskit_node_builder(response.id, |node| {
            node.set_min_numeric_value(0.0);
            node.set_max_numeric_value(full as f64);
            node.add_action(Action::Increment);
            node.add_action(Action::Decrement);
        });
    }
    shown
}

fn entry_ui(ui: &mut Ui, rank: usize, full: usize, view: &mut View, intents: &mut Vec<Intent>) {
    let mut text = view.rank_text.clone().unwrap_or_else(|| rank.to_string());
    let edit = TextEdit::singleline(&mut text)
        .desired_width(ENTRY_WIDTH - 16.0)
        .align(Align2::RIGHT_CENTER)
        .font(eframe::egui::TextStyle::Monospace);
    let response = ui
        .add_sized(Vec2::new(ENTRY_WIDTH, 28.0), edit)
        .accessible_name("Rank k, typed")
        .on_hover_text(format!("Type a rank from 0 to {full} and press Enter"));
    if response.has_focus() {
        view.rank_text = Some(text);
        return;
    }
    if response.lost_focus() {
        let dropped = ui.input(|input| input.key_pressed(Key::Escape));
        if let Ok(typed) = text.trim().parse::<usize>()
            && !dropped
            && typed != rank
        {
            intents.push(Intent::Rank(typed));
        }
    }
    view.rank_text = None;
}
