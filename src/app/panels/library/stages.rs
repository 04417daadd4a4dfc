//! The stages of an encoder as a diagram: in order, with names and shapes.

use eframe::egui::{Align2, FontId, Pos2, Rect, Role, Sense, Shape, Stroke, Ui, Vec2, WidgetInfo};

use crate::app::theme::{Palette, SMALL};
use crate::encoders::EncoderSpec;

/// Height of a stage in points.
const STEP: f32 = 24.0;
/// Width of the column of blocks in points.
const BLOCKS: f32 = 64.0;

/// One line of the diagram.
struct Step {
    name: String,
    shape: String,
    /// Width of the block as a share of the input side, and its height as a share of the largest.
    block: [f32; 2],
}

/// Input, stages, pooled feature and classifier from top to bottom: blocks as wide as their maps are,
/// against the input, and as high as they have channels, by logarithms.
pub(super) fn stages_ui(ui: &mut Ui, spec: &EncoderSpec, palette: Palette) {
    let steps = steps(spec);
    let width = ui.available_width();
    let size = Vec2::new(width, steps.len() as f32 * STEP);
    let (rect, response) = ui.allocate_exact_size(size, Sense::hover());
    let font = FontId::proportional(SMALL);
    let axis = rect.left() + BLOCKS / 2.0;
    let arrow = Stroke::new(1.0, palette.reference);
    for (index, step) in steps.iter().enumerate() {
        let y = rect.top() + (index as f32 + 0.5) * STEP;
        let [wide, high] = step.block;
        let block = Rect::from_center_size(
            Pos2::new(axis, y),
            Vec2::new((wide * BLOCKS).max(4.0), (high * (STEP - 8.0)).max(3.0)),
        );
        if index > 0 {
            let tip = Pos2::new(axis, block.top() - 1.0);
            let from = Pos2::new(axis, y - STEP / 2.0 - 3.0);
            ui.painter().line_segment([from, tip], arrow);
            let head = [(-2.5, -3.0), (2.5, -3.0), (0.0, 0.0)].map(|(x, y)| tip + Vec2::new(x, y));
            let head = Shape::convex_polygon(head.to_vec(), palette.reference, Stroke::NONE);
            ui.painter().add(head);
        }
        let fill = palette.encoder(0).gamma_multiply(0.55);
        ui.painter().rect_filled(block, 2.0, fill);
        let left = rect.left() + BLOCKS + 12.0;
        let shape = ui.painter().text(
            Pos2::new(rect.right() - 4.0, y),
            Align2::RIGHT_CENTER,
            &step.shape,
            font.clone(),
            palette.text,
        );
        let room = Rect::from_min_max(
            Pos2::new(left, y - STEP / 2.0),
            Pos2::new(shape.left() - 8.0, y + STEP / 2.0),
        );
        ui.painter().with_clip_rect(room).text(
            Pos2::new(left, y),
            Align2::LEFT_CENTER,
            &step.name,
            font.clone(),
            palette.weak,
        );
    }
    let said: Vec<String> = (steps.iter())
        .map(|step| format!("{} {}", step.name, step.shape))
        .collect();
    let said = format!("Stages: {}", said.join(", then "));
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, &said));
    response.on_hover_text(
        "Blocks are as wide as the maps are and, by logarithms, as high as they have channels",
    );
}

fn steps(spec: &EncoderSpec) -> Vec<Step> {
    let vectors = [spec.pooled_len, spec.logits_len];
    let most = (spec.stages.iter().map(|stage| stage.shape[0]))
        .chain(vectors)
        .fold(3, usize::max);
    let height = |channels: usize| ((channels + 1) as f32).ln() / ((most + 1) as f32).ln();
    let map = |name: &str, [channels, rows, columns]: [usize; 3]| Step {
        name: name.to_owned(),
        shape: format!("{channels} × {rows} × {columns}"),
        block: [
            (columns as f32 / spec.side_px as f32).min(1.0),
            height(channels),
        ],
    };
    let vector = |name: &str, len: usize| Step {
        name: name.to_owned(),
        shape: len.to_string(),
        block: [0.0, height(len)],
    };
    let side = spec.side_px;
    let mut steps = vec![map("input", [3, side, side])];
    steps.extend(
        spec.stages
            .iter()
            .map(|stage| map(&stage.name, stage.shape)),
    );
    steps.push(vector("pooled feature", spec.pooled_len));
    if spec.logits_len > 0 {
        steps.push(vector("logits", spec.logits_len));
    }
    steps
}
