//! The brush on the photograph, and the mask that it leaves.

use eframe::egui::{CursorIcon, Rect, Response, Stroke, Ui, Vec2};

use crate::app::intent::Intent;
use crate::app::theme::Palette;
use crate::app::view::View;
use crate::geometry::directions::DirectionFamily;
use crate::images::{Disc, Mask};

/// Adds discs along the dragged path; answers with the whole mask once the button is released.
pub(super) fn paint(
    ui: &Ui,
    view: &mut View,
    mask: &Mask,
    response: &Response,
    rect: Rect,
) -> Option<Intent> {
    let radius = mask.discs.last().map_or(0.1, |disc| disc.radius);
    if response.hovered() || response.dragged() {
        ui.ctx().set_cursor_icon(CursorIcon::Crosshair);
    }
    if let Some(pointer) = response.interact_pointer_pos() {
        let at = (pointer - rect.min) / rect.size();
        let disc = Disc {
            x: at.x,
            y: at.y,
            radius,
        };
        // A third of the radius apart, the discs leave no visible notches.
        let is_new = view
            .painted
            .last()
            .is_none_or(|last| (last.x - disc.x).hypot(last.y - disc.y) > radius / 3.0);
        if is_new {
            view.painted.push(disc);
        }
    }
    let is_released = response.drag_stopped() || response.clicked();
    (is_released && !view.painted.is_empty()).then(|| {
        let mut discs = mask.discs.clone();
        discs.append(&mut view.painted);
        Intent::Family(DirectionFamily::Masked {
            mask: Mask { discs },
        })
    })
}

/// The outline of the mask; a disc inside others is drawn all the same.
pub(super) fn draw_mask<'a>(
    ui: &Ui,
    rect: Rect,
    discs: impl Iterator<Item = &'a Disc>,
    palette: Palette,
) {
    let painter = ui.painter().with_clip_rect(rect);
    for disc in discs {
        let centre = rect.min + Vec2::new(disc.x, disc.y) * rect.size();
        let radius = disc.radius * rect.width();
        painter.circle_filled(centre, radius, palette.marker.gamma_multiply(0.12));
        painter.circle_stroke(centre, radius, Stroke::new(1.0, palette.marker));
    }
}
