//! What the window asks of the worker and of the desktop, behind traits, so that tests can play both.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use eframe::egui::{ColorImage, Context};

use super::settings::Settings;
use crate::device::DeviceInfo;
use crate::worker::{Command, Event, Generation, Library, LibraryAnswer, LibraryRequest, Worker};
use crate::{Error, ErrorKind, Result};

/// Extensions that the file dialog offers; what counts is the content.
const EXTENSIONS: [&str; 8] = ["png", "jpg", "jpeg", "webp", "tif", "tiff", "bmp", "gif"];
/// Extensions of weight files that the file dialog offers.
const WEIGHT_EXTENSIONS: [&str; 7] = ["safetensors", "pth", "pt", "bin", "ckpt", "tar", "json"];
/// A dialog that is gone sooner was most likely never there: without a portal the answer is the same
/// as that of a reader who cancels.
const DIALOG_MIN: Duration = Duration::from_millis(700);

/// The worker as the window sees it.
pub trait Link {
    /// Asks for something; never blocks.
    ///
    /// # Errors
    /// Where the worker has ended.
    fn send(&mut self, command: Command) -> Result<Generation>;
    /// The next thing it has said, if any.
    fn poll(&mut self) -> Option<Event>;
}

impl Link for Worker {
    fn send(&mut self, command: Command) -> Result<Generation> {
        Worker::send(self, command)
    }

    fn poll(&mut self) -> Option<Event> {
        self.events().try_recv().ok()
    }
}

/// The library of encoders as the window sees it.
pub trait Librarian {
    /// Asks for something; never blocks.
    fn ask(&mut self, request: LibraryRequest);
    /// The next answer, if any.
    fn poll(&mut self) -> Option<LibraryAnswer>;
}

impl Librarian for Library {
    fn ask(&mut self, request: LibraryRequest) {
        Library::ask(self, request);
    }

    fn poll(&mut self) -> Option<LibraryAnswer> {
        Library::poll(self)
    }
}

/// What the desktop answers, some time after it was asked.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A photograph was chosen.
    File(PathBuf),
    /// A weights file was chosen.
    Weights(PathBuf),
    /// A folder was chosen.
    Folder(PathBuf),
    /// The reader closed the dialog without a choice.
    DialogClosed,
    /// No dialog came up.
    DialogMissing,
    /// The compute devices of this machine.
    Devices(Vec<DeviceInfo>),
    /// The settings could not be written.
    SettingsLost(Error),
    /// The picture of the window is written, or not.
    Screenshot(Result<PathBuf>),
}

/// The desktop as the window sees it. Every request returns at once; answers come through
/// [`Desktop::poll`].
pub trait Desktop {
    /// Shows the system's dialog for a photograph.
    fn pick_file(&mut self);
    /// Shows the system's dialog for a weights file.
    fn pick_weights(&mut self);
    /// Shows the system's dialog for a folder.
    fn pick_folder(&mut self);
    /// Lists the compute devices.
    fn list_devices(&mut self);
    /// Writes the settings.
    fn save_settings(&mut self, settings: &Settings);
    /// Writes a picture of the window as PNG.
    fn save_screenshot(&mut self, image: std::sync::Arc<ColorImage>, path: &Path);
    /// The next answer, if any.
    fn poll(&mut self) -> Option<Answer>;
}

/// The real desktop: each request runs on a thread of its own and wakes the window when it is done.
pub struct SystemDesktop {
    context: Context,
    settings_path: Option<PathBuf>,
    sender: Sender<Answer>,
    answers: Receiver<Answer>,
}

impl SystemDesktop {
    /// A desktop that wakes `context` and keeps the settings in `settings_path`, if that is given.
    pub fn new(context: Context, settings_path: Option<PathBuf>) -> Self {
        let (sender, answers) = channel();
        Self {
            context,
            settings_path,
            sender,
            answers,
        }
    }

    /// Runs `job` on a thread of its own and hands on its answer.
    fn run(&self, name: &str, job: impl FnOnce() -> Option<Answer> + Send + 'static) {
        let (sender, context) = (self.sender.clone(), self.context.clone());
        let spawned = std::thread::Builder::new()
            .name(format!("etascope-{name}"))
            .spawn(move || {
                if let Some(answer) = job() {
                    // The window may have been closed meanwhile.
                    let _ = sender.send(answer);
                    context.request_repaint();
                }
            });
        if let Err(error) = spawned {
            log::error!("cannot start a thread for “{name}”: {error}");
        }
    }
}

fn ask(dialog: impl FnOnce() -> Option<PathBuf>, chosen: fn(PathBuf) -> Answer) -> Answer {
    let started = Instant::now();
    match dialog() {
        Some(path) => chosen(path),
        None if started.elapsed() < DIALOG_MIN => Answer::DialogMissing,
        None => Answer::DialogClosed,
    }
}

impl Desktop for SystemDesktop {
    fn pick_file(&mut self) {
        self.run("file-dialog", || {
            let dialog = rfd::FileDialog::new()
                .set_title("Open photograph")
                .add_filter("Photographs", &EXTENSIONS)
                .add_filter("All files", &["*"]);
            Some(ask(|| dialog.pick_file(), Answer::File))
        });
    }

    fn pick_weights(&mut self) {
        self.run("weights-dialog", || {
            let dialog = rfd::FileDialog::new()
                .set_title("Open weights file")
                .add_filter("Weights", &WEIGHT_EXTENSIONS)
                .add_filter("All files", &["*"]);
            Some(ask(|| dialog.pick_file(), Answer::Weights))
        });
    }

    fn pick_folder(&mut self) {
        self.run("folder-dialog", || {
            let dialog = rfd::FileDialog::new().set_title("Folder for the files");
            Some(ask(|| dialog.pick_folder(), Answer::Folder))
        });
    }

    fn list_devices(&mut self) {
        self.run("devices", || Some(Answer::Devices(crate::device::list())));
    }

    fn save_settings(&mut self, settings: &Settings) {
        let Some(path) = self.settings_path.clone() else {
            return;
        };
        let settings = settings.clone();
        self.run("settings", move || {
            settings.save(&path).err().map(Answer::SettingsLost)
        });
    }

    fn save_screenshot(&mut self, image: std::sync::Arc<ColorImage>, path: &Path) {
        let path = path.to_owned();
        self.run("screenshot", move || {
            Some(Answer::Screenshot(write_png(&image, &path)))
        });
    }

    fn poll(&mut self) -> Option<Answer> {
        self.answers.try_recv().ok()
    }
}

fn write_png(image: &ColorImage, path: &Path) -> Result<PathBuf> {
    let [width, height] = image.size;
    let rgb: Vec<u8> = image
        .pixels
        .iter()
        .flat_map(|p| [p.r(), p.g(), p.b()])
        .collect();
    image::save_buffer(
        path,
        &rgb,
        width as u32,
        height as u32,
        image::ExtendedColorType::Rgb8,
    )
    .map(|()| path.to_owned())
    .map_err(|error| {
        Error::new(
            ErrorKind::Output,
            format!("cannot write “{}”", path.display()),
            error,
            "Choose a folder that can be written and a name that ends in .png",
        )
    })
}

/// Whether a dropped file is one of weights, judged by its name: photographs have other extensions.
pub(super) fn is_weights(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| {
        let lower = extension.to_lowercase();
        WEIGHT_EXTENSIONS.contains(&lower.as_str())
    })
}
