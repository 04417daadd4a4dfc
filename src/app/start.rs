//! How the window is opened.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use eframe::egui::ViewportBuilder;

use super::EtascopeApp;
use super::host::SystemDesktop;
use super::settings::{Settings, ThemeChoice, Workspace};
use crate::device::DeviceChoice;
use crate::encoders::registry;
use crate::geometry::feature_cache::{BUDGET_BYTES_DEFAULT, FeatureCache};
use crate::render::{HeatPipeline, PreviewPipeline};
use crate::worker::{DeviceEngine, ImageSource, Library, Worker};
use crate::{Error, ErrorKind, Result};

/// Size of the window at the first start, in points.
const FIRST_SIZE: [f32; 2] = [1280.0, 800.0];
/// Smallest size at which every control can be reached.
const LEAST_SIZE: [f32; 2] = [1024.0, 640.0];
/// How the window starts.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Photograph to open instead of the bundled one.
    pub image: Option<ImageSource>,
    /// Registry name of the encoder to choose.
    pub encoder: Option<String>,
    /// Compute device instead of the one in the settings.
    pub device: Option<DeviceChoice>,
    /// For pictures in documents and for tests: write the window to a PNG once all is computed, and
    /// leave. Settings are then neither read nor written.
    pub screenshot: Option<Screenshot>,
}

/// A picture of the window.
#[derive(Clone, Debug)]
pub struct Screenshot {
    /// The PNG file.
    pub path: PathBuf,
    /// Width and height of the window in points.
    pub size: [f32; 2],
    /// Light or dark.
    pub theme: ThemeChoice,
    /// Whether the twin is shown.
    pub twin: bool,
    /// The workspace in front.
    pub workspace: Workspace,
}

/// Opens the window and stays until it is closed.
///
/// # Errors
/// [`ErrorKind::Request`] where the window cannot be opened, for example without a display;
/// [`ErrorKind::Output`] where a screenshot was asked for and could not be written.
pub fn run(options: Options) -> Result<()> {
    let settings_path = if options.screenshot.is_some() {
        None
    } else {
        Settings::default_path()
    };
    let mut settings = settings_path
        .as_deref()
        .map(Settings::load)
        .unwrap_or_default();
    let mut size = FIRST_SIZE;
    if let Some(shot) = &options.screenshot {
        size = shot.size;
        settings.theme = shot.theme;
        settings.twin = shot.twin;
        settings.workspace = shot.workspace;
    }
    let viewport = ViewportBuilder::default()
        .with_title("Etascope")
        .with_app_id("etascope")
        .with_inner_size(size)
        .with_min_inner_size(LEAST_SIZE)
        .with_drag_and_drop(true);
    let native = eframe::NativeOptions {
        viewport,
        renderer: eframe::Renderer::Wgpu,
        persist_window: options.screenshot.is_none(),
        persistence_path: settings_path
            .as_deref()
            .map(|path| path.with_file_name("window.ron")),
        ..Default::default()
    };
    let outcome: Arc<Mutex<Result<()>>> = Arc::new(Mutex::new(Ok(())));
    let shared = Arc::clone(&outcome);
    let opened = eframe::run_native(
        "etascope",
        native,
        Box::new(move |context| {
            let app = create(context, options, settings, settings_path, shared)?;
            Ok(Box::new(app))
        }),
    );
    opened.map_err(|error| cannot_open(&error))?;
    outcome.lock().map_or(Ok(()), |outcome| outcome.clone())
}

fn cannot_open(why: &dyn std::fmt::Display) -> Error {
    Error::new(
        ErrorKind::Request,
        "cannot open the window",
        why,
        "Without a display use “etascope profile”, see “etascope profile --help”",
    )
}

fn create(
    context: &eframe::CreationContext<'_>,
    options: Options,
    settings: Settings,
    settings_path: Option<PathBuf>,
    outcome: Arc<Mutex<Result<()>>>,
) -> Result<EtascopeApp> {
    if let Some(render) = &context.wgpu_render_state {
        let pipeline = PreviewPipeline::new(&render.device, render.target_format);
        let heat = HeatPipeline::new(&render.device, render.target_format);
        let mut renderer = render.renderer.write();
        renderer.callback_resources.insert(pipeline);
        renderer.callback_resources.insert(heat);
    }
    let egui_context = context.egui_ctx.clone();
    let choice = options
        .device
        .clone()
        .unwrap_or_else(|| settings.device.clone());
    let waker = egui_context.clone();
    // Nothing is left behind by a picture for documents.
    let cache = if options.screenshot.is_some() {
        None
    } else {
        FeatureCache::of_user(BUDGET_BYTES_DEFAULT)
    };
    let engine = || DeviceEngine::new().with_cache(cache);
    let worker = Worker::spawn_with(engine, choice, move || waker.request_repaint())?;
    let waker = egui_context.clone();
    let library = Library::new(move || waker.request_repaint());
    let desktop = SystemDesktop::new(egui_context.clone(), settings_path);
    let mut catalogue = registry::specs();
    // An encoder that the command line named: weights from a file, or weights that are missing, which
    // loading then explains.
    if let Some(name) = &options.encoder
        && let Ok(spec) = registry::find(name)
        && !catalogue.iter().any(|known| known.name == spec.name)
    {
        catalogue.push(spec);
    }
    let mut app = EtascopeApp::new(
        &egui_context,
        catalogue,
        Box::new(worker),
        Box::new(library),
        Box::new(desktop),
        settings,
        options,
    )?;
    app.outcome = Some(outcome);
    Ok(app)
}
