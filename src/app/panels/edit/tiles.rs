//! The pictures: above, what they are and where features agree; below, features seen as pictures.

use std::sync::Arc;

use eframe::egui::{
    Align2, Color32, FontId, Mesh, Pos2, Rect, Role, Sense, Shape, Stroke, StrokeKind, Ui, Vec2,
    WidgetInfo,
};
use eframe::egui_wgpu;

use crate::app::format;
use crate::app::intent::Scene;
use crate::app::state::SeenBy;
use crate::app::theme::{self, GAP, Palette, SMALL};
use crate::app::view::View;
use crate::figure::palette::viridis;
use crate::images::Picture;
use crate::render::Heat;
use crate::worker::edit::{EditRun, SeenFeature};

/// Height of the line above a picture.
const CAPTION: f32 = 18.0;
/// Height of the line below one.
const NOTE: f32 = 18.0;
/// Strength of what answers an older question.
const STALE: f32 = 0.35;
/// Columns of pictures.
const COLUMNS: usize = 4;

/// What stands in a place.
enum Content<'a> {
    Picture(&'static str, &'a Arc<Picture>),
    Cosines(u32, &'a Arc<[f32]>),
    Words(String),
}

/// A place in the grid of pictures.
struct Tile<'a> {
    caption: String,
    content: Content<'a>,
    note: String,
}

/// Width of all pictures and side of each in points, within what is given.
pub(super) fn size(width: f32, height: f32) -> [f32; 2] {
    let gaps = GAP * (COLUMNS as f32 - 1.0);
    let wide = (width - gaps) / COLUMNS as f32;
    let high = (height - 2.0 * (CAPTION + NOTE) - GAP) / 2.0;
    let side = wide.min(high).max(72.0).floor();
    [COLUMNS as f32 * side + gaps, side]
}

/// Two rows of four.
pub(super) fn tiles_ui(ui: &mut Ui, scene: &Scene<'_>, view: &mut View, height: f32) {
    let Some(run) = &scene.state.edit.fitted else {
        return;
    };
    let rows = [above(scene, run), below(scene, run)];
    let [_, side] = size(ui.available_width(), height);
    let is_stale = scene.state.is_edit_stale();
    for row in rows {
        ui.horizontal(|ui| {
            ui.spacing_mut().item_spacing.x = GAP;
            for tile in &row {
                tile_ui(ui, run, view, tile, side, is_stale);
            }
        });
    }
}

fn rank_text(scene: &Scene<'_>) -> String {
    match scene.state.edit.shown.as_ref() {
        Some(shown)
            if !scene
                .state
                .edit
                .fitted
                .as_ref()
                .is_some_and(|run| run.sweeps.is_empty()) =>
        {
            format!("rank {}", shown.rank)
        }
        _ => "mapped".to_owned(),
    }
}

fn above<'a>(scene: &'a Scene<'_>, run: &'a EditRun) -> [Tile<'a>; COLUMNS] {
    let picture = |caption: &str, slot, picture, note: String| Tile {
        caption: caption.to_owned(),
        content: Content::Picture(slot, picture),
        note,
    };
    let side = format!("{} × {} px", run.original.width(), run.original.height());
    let edits: Vec<String> = (run.recipe.manipulations.iter())
        .map(crate::images::Manipulation::title)
        .collect();
    let median = |value: Option<f64>| match value {
        Some(value) => format!("MdnCS {}", format::significant(value, 3)),
        None => "MdnCS undefined".to_owned(),
    };
    let cut = match &scene.state.edit.shown {
        Some(shown) => Tile {
            caption: format!("Cosine, {}", rank_text(scene)),
            content: Content::Cosines(0, &shown.cosines),
            note: median(shown.scores.mdncs),
        },
        None => words("Cosine", "…"),
    };
    [
        picture("Original", "original", &run.original, side),
        picture(
            "Edited: the target",
            "target",
            &run.target,
            match &run.outside {
                Some(_) => "by an outside editor".to_owned(),
                None => edits.join(", "),
            },
        ),
        cut,
        Tile {
            caption: "Cosine, full map".to_owned(),
            content: Content::Cosines(1, &run.full_cosines),
            note: median(run.full.mdncs),
        },
    ]
}

fn words(caption: &str, text: &str) -> Tile<'static> {
    Tile {
        caption: caption.to_owned(),
        content: Content::Words(text.to_owned()),
        note: String::new(),
    }
}

fn below<'a>(scene: &'a Scene<'_>, run: &'a EditRun) -> [Tile<'a>; COLUMNS] {
    let edit = &scene.state.edit;
    let note = |seen: &SeenFeature| {
        let number = |value: Option<f64>, digits| {
            value.map_or_else(
                || format::UNDEFINED.to_owned(),
                |value| format::significant(value, digits),
            )
        };
        format!(
            "SSIM {} · {} dB",
            number(seen.scores.ssim_uniform, 2),
            number(seen.scores.psnr_db, 3)
        )
    };
    let tile = |what: &str, how: &str, slot, seen: &'a SeenFeature| Tile {
        caption: format!("{what}, {how}"),
        content: Content::Picture(slot, &seen.picture),
        note: note(seen),
    };
    let rank = rank_text(scene);
    let rank = format!("{}{}", rank[..1].to_uppercase(), &rank[1..]);
    if edit.seen_by == SeenBy::Inversion {
        let found = edit.inverted.as_ref();
        let how = "inverted";
        let sought = |seen: Option<&'a SeenFeature>, what: &str, slot| match seen {
            Some(seen) => tile(what, how, slot, seen),
            None => words(&format!("{what}, {how}"), "being sought"),
        };
        let rank = match found {
            Some(found) if !run.sweeps.is_empty() => format!("Rank {}", found.rank),
            _ => rank,
        };
        return [
            sought(
                found.and_then(|found| found.original.as_ref()),
                "Unedited",
                "unedited, inverted",
            ),
            words("Target", "not sought"),
            sought(
                found.and_then(|found| found.mapped.as_ref()),
                &rank,
                "rank, inverted",
            ),
            words("Full map", "not sought: move k to its end"),
        ];
    }
    let Some(seen) = &run.seen else {
        let text = "no decoder for this stage:\nchoose Inversion above";
        return ["Unedited", "Target", &rank, "Full map"].map(|caption| words(caption, text));
    };
    let how = "decoded";
    let cut = match edit.shown.as_ref().and_then(|shown| shown.seen.as_ref()) {
        Some(cut) => tile(&rank, how, "rank", cut),
        None => words(&rank, "…"),
    };
    [
        tile("Unedited", how, "unedited", &seen.original),
        tile("Target", how, "target, decoded", &seen.target),
        cut,
        tile("Full map", how, "full", &seen.full),
    ]
}

fn tile_ui(
    ui: &mut Ui,
    run: &EditRun,
    view: &mut View,
    tile: &Tile<'_>,
    side: f32,
    is_stale: bool,
) {
    let palette = Palette::for_ui(ui);
    let size = Vec2::new(side, side + CAPTION + NOTE);
    let (place, response) = ui.allocate_exact_size(size, Sense::hover());
    let rect = Rect::from_min_size(place.min + Vec2::new(0.0, CAPTION), Vec2::splat(side));
    let painter = ui.painter().with_clip_rect(place);
    let line = |at: Pos2, anchor, text: &str, font, colour| {
        painter.text(at, anchor, text, font, colour);
    };
    let caption = Pos2::new(place.left(), rect.top() - 3.0);
    line(
        caption,
        Align2::LEFT_BOTTOM,
        &tile.caption,
        theme::bold_font(SMALL),
        palette.text,
    );
    let strength = if is_stale { STALE } else { 1.0 };
    match &tile.content {
        Content::Picture(slot, picture) => {
            let texture = view.pictures.texture(ui.ctx(), slot, picture);
            let whole = Rect::from_min_max(Pos2::ZERO, Pos2::new(1.0, 1.0));
            let tint = Color32::WHITE.gamma_multiply(strength);
            ui.painter().image(texture, rect, whole, tint);
        }
        Content::Cosines(slot, values) => {
            let [_, rows, columns] = run.shape;
            ui.painter().add(egui_wgpu::Callback::new_paint_callback(
                rect,
                Heat {
                    slot: *slot,
                    shape: [rows, columns],
                    values: Arc::clone(values),
                    range: [run.scale_low, 1.0],
                    interpolate: false,
                    strength,
                    side_px: rect.width(),
                    background: Palette::channels(palette.card),
                },
            ));
            draw_mask(ui, rect, run);
        }
        Content::Words(text) => {
            ui.painter().rect_filled(rect, 0.0, palette.well);
            let font = FontId::proportional(SMALL);
            let galley = ui
                .painter()
                .layout(text.clone(), font, palette.weak, side - 16.0);
            let at = Align2::CENTER_CENTER.anchor_size(rect.center(), galley.size());
            ui.painter().galley(at.min, galley, palette.weak);
        }
    }
    let edge = Stroke::new(1.0, palette.edge);
    ui.painter()
        .rect_stroke(rect, 0.0, edge, StrokeKind::Outside);
    let below = rect.left_bottom() + Vec2::new(0.0, 3.0);
    if matches!(tile.content, Content::Cosines(..)) {
        colour_bar(ui, rect, run.scale_low, &tile.note, palette);
    } else {
        line(
            below,
            Align2::LEFT_TOP,
            &tile.note,
            FontId::proportional(SMALL),
            palette.weak,
        );
    }
    let name = format!("{}. {}", tile.caption, tile.note);
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, &name));
    let tooltip = match &tile.content {
        Content::Cosines(..) => format!(
            "{name}\nCosine at each position between mapped and target features, from {:.1} and below (dark) to 1 \
             (light); hatched where it is undefined. The line goes round the positions that the edit touches.",
            run.scale_low
        ),
        _ => name,
    };
    response.on_hover_text(tooltip);
}

/// The scale below a map of cosines, with its ends, and what is said of the map.
fn colour_bar(ui: &Ui, rect: Rect, low: f32, note: &str, palette: Palette) {
    let font = FontId::proportional(SMALL);
    let top = rect.bottom() + 3.0;
    let painter = ui.painter();
    let start = Pos2::new(rect.left(), top);
    let low = format!("{low:.1}");
    let zero = painter.text(start, Align2::LEFT_TOP, low, font.clone(), palette.weak);
    let bar = Rect::from_min_size(
        Pos2::new(zero.right() + 3.0, top + 4.0),
        Vec2::new(0.22 * rect.width(), 8.0),
    );
    const PARTS: usize = 16;
    let mut mesh = Mesh::default();
    for i in 0..=PARTS {
        let fraction = i as f32 / PARTS as f32;
        let [r, g, b] = viridis(f64::from(fraction));
        let x = bar.left() + fraction * bar.width();
        for y in [bar.top(), bar.bottom()] {
            mesh.colored_vertex(Pos2::new(x, y), Color32::from_rgb(r, g, b));
        }
        if i > 0 {
            let last = 2 * i as u32;
            mesh.add_triangle(last - 2, last - 1, last);
            mesh.add_triangle(last - 1, last, last + 1);
        }
    }
    painter.add(Shape::mesh(mesh));
    let one = Pos2::new(bar.right() + 3.0, top);
    painter.text(one, Align2::LEFT_TOP, "1", font.clone(), palette.weak);
    let end = Pos2::new(rect.right(), top);
    painter.text(end, Align2::RIGHT_TOP, note, font, palette.weak);
}

/// A line round the positions that the edit touches, unless that is all or nothing.
fn draw_mask(ui: &Ui, rect: Rect, run: &EditRun) {
    let [_, rows, columns] = run.shape;
    let touched = run.mask.iter().filter(|&&is_touched| is_touched).count();
    if touched == 0 || touched == run.mask.len() || run.mask.len() != rows * columns {
        return;
    }
    let is_touched = |row: usize, column: usize| {
        row < rows && column < columns && run.mask[row * columns + column]
    };
    let at = |row: usize, column: usize| {
        let share = Vec2::new(column as f32 / columns as f32, row as f32 / rows as f32);
        rect.min + share * rect.size()
    };
    let pens = [
        Stroke::new(2.0, Color32::from_black_alpha(120)),
        Stroke::new(1.0, Color32::WHITE),
    ];
    for pen in pens {
        for row in 0..=rows {
            for column in 0..=columns {
                let here = is_touched(row, column);
                if row > 0 && column < columns && here != is_touched(row - 1, column) {
                    ui.painter()
                        .line_segment([at(row, column), at(row, column + 1)], pen);
                }
                if column > 0 && row < rows && here != is_touched(row, column - 1) {
                    ui.painter()
                        .line_segment([at(row, column), at(row + 1, column)], pen);
                }
            }
        }
    }
}
