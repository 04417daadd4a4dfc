//! A picture of the window, for documents and tests.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use eframe::egui::{ColorImage, Context, ScreenshotCallback, ViewportCommand};

use super::EtascopeApp;
use super::state::Content;

/// A picture of the window on its way.
pub(super) struct Shooting {
    path: PathBuf,
    phase: ShootingPhase,
    taken: Arc<Mutex<Option<Arc<ColorImage>>>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ShootingPhase {
    /// The curves are still being computed.
    Computing,
    /// The toolkit was asked for the picture.
    Asked,
    /// The picture is being written.
    Writing,
}

impl Shooting {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            phase: ShootingPhase::Computing,
            taken: Arc::default(),
        }
    }
}

impl EtascopeApp {
    /// Takes the picture once all is computed, has it written, and leaves.
    pub(super) fn shoot(&mut self, context: &Context) {
        let Some(shooting) = &mut self.screenshot else {
            return;
        };
        let failed = self
            .state
            .messages
            .iter()
            .any(|m| matches!(m.content, Content::Failure(_)));
        match shooting.phase {
            ShootingPhase::Computing if self.state.is_settled() || failed => {
                shooting.phase = ShootingPhase::Asked;
                let (taken, waker) = (Arc::clone(&shooting.taken), context.clone());
                let callback = ScreenshotCallback::new(move |image| {
                    if let Ok(mut taken) = taken.lock() {
                        *taken = Some(image);
                    }
                    waker.request_repaint();
                });
                context.send_viewport_cmd(ViewportCommand::Screenshot(callback));
                context.request_repaint();
            }
            ShootingPhase::Asked => {
                let image = shooting
                    .taken
                    .lock()
                    .ok()
                    .and_then(|mut taken| taken.take());
                if let Some(image) = image {
                    shooting.phase = ShootingPhase::Writing;
                    self.desktop.save_screenshot(image, &shooting.path);
                }
            }
            ShootingPhase::Computing | ShootingPhase::Writing => {}
        }
    }
}
