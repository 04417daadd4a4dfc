//! Jobs: requests as state machines that advance by one step at a time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::bench::Bench;
use super::command::{Command, Export, Generation, ImageSource, Lane};
use super::edit::{FitJob, InvertJob, RankJob};
use super::event::{Event, Progress};
use super::measure_job::MeasureJob;
use super::outbox::Outbox;
use super::profile_job::ProfileJob;
use super::spectrum_job::SpectrumJob;
use crate::Result;
use crate::device::DeviceChoice;
use crate::images::{self, Background, Photo};
use crate::report;

/// Whether a job goes on.
pub(super) enum Step {
    /// It has more to do.
    More,
    /// It is complete.
    Done,
}

/// A request in progress.
pub(super) trait Job {
    /// What was asked, for people.
    fn asked(&self) -> String;

    /// Does at most about one batch of work on the device.
    fn step(&mut self, bench: &mut Bench, outbox: &mut Outbox) -> Result<Step>;
}

/// The job that answers a command; `None` for commands that act at once.
pub(super) fn job_for(generation: Generation, command: Command) -> Option<Box<dyn Job>> {
    match command {
        Command::UseDevice(choice) => Some(Box::new(DeviceJob { generation, choice })),
        Command::OpenImage { source, background } => Some(Box::new(ImageJob {
            generation,
            source,
            background,
        })),
        Command::Profile(recipes) => Some(Box::new(ProfileJob::new(generation, recipes))),
        Command::Measure { recipes, eta_l2 } => {
            Some(Box::new(MeasureJob::new(generation, recipes, eta_l2)))
        }
        Command::Edit(recipe) => Some(Box::new(FitJob::new(generation, recipe))),
        Command::Rank { recipe, cut, rank } => {
            Some(Box::new(RankJob::new(generation, recipe, cut, rank)))
        }
        Command::Invert { recipe, cut, rank } => {
            Some(Box::new(InvertJob::new(generation, recipe, cut, rank)))
        }
        Command::Export(export) => Some(Box::new(ExportJob { generation, export })),
        Command::Spectrum(tasks) => Some(Box::new(SpectrumJob::new(generation, tasks))),
        Command::SetBudget(_)
        | Command::Pause(_)
        | Command::Resume(_)
        | Command::Cancel(_)
        | Command::Shutdown => None,
    }
}

/// Progress of a request, told under its number.
pub(super) struct Teller {
    generation: Generation,
    lane: Lane,
    started: Option<Instant>,
}

impl Teller {
    pub(super) fn new(generation: Generation, lane: Lane) -> Self {
        Self {
            generation,
            lane,
            started: None,
        }
    }

    /// Says how far the request is. Its time runs from the first call.
    pub(super) fn tell(
        &mut self,
        outbox: &mut Outbox,
        stage: impl Into<String>,
        fraction: f64,
        remaining: Option<Duration>,
    ) {
        let elapsed = self.started.get_or_insert_with(Instant::now).elapsed();
        let progress = Progress {
            stage: stage.into(),
            fraction: fraction as f32,
            elapsed,
            remaining,
        };
        let Self {
            generation, lane, ..
        } = *self;
        outbox.send(Event::Progress {
            generation,
            lane,
            progress,
        });
    }

    /// Says what is about to be done, before work that may take long and before any result of it.
    pub(super) fn announce(&mut self, outbox: &mut Outbox, stage: &str, fraction: f64) {
        self.tell(outbox, stage, fraction, None);
        outbox.flush();
    }
}

struct DeviceJob {
    generation: Generation,
    choice: DeviceChoice,
}

impl Job for DeviceJob {
    fn asked(&self) -> String {
        match &self.choice {
            DeviceChoice::Auto => "use the best compute device".to_owned(),
            DeviceChoice::Cpu => "use the compute device “cpu”".to_owned(),
            DeviceChoice::Adapter(name) => format!("use the compute device “{name}”"),
        }
    }

    fn step(&mut self, bench: &mut Bench, outbox: &mut Outbox) -> Result<Step> {
        Teller::new(self.generation, Lane::Device).announce(outbox, "starting the device", 0.0);
        let device = bench.use_device(&self.choice)?;
        outbox.send(Event::DeviceReady {
            generation: self.generation,
            device,
        });
        Ok(Step::Done)
    }
}

/// Name of a photograph that came from the clipboard.
const PASTED_NAME: &str = "pasted image";

impl ImageSource {
    /// Reads the photograph. `background` is the colour under transparent pixels.
    ///
    /// # Errors
    /// Those of [`images::open`] and [`images::bundled::open`].
    pub fn open(&self, background: Background) -> Result<Photo> {
        match self {
            Self::Path(path) => images::open(path, background),
            Self::Bundled(name) => images::bundled::open(name),
            Self::Bytes { name, bytes } => images::decode(bytes, name, background),
            Self::Rgba {
                width,
                height,
                rgba,
            } => images::from_rgba(*width, *height, rgba, PASTED_NAME, background),
        }
    }
}

struct ImageJob {
    generation: Generation,
    source: ImageSource,
    background: Background,
}

impl Job for ImageJob {
    fn asked(&self) -> String {
        match &self.source {
            ImageSource::Path(path) => {
                let name = path.file_name().unwrap_or(path.as_os_str());
                format!("open “{}”", name.to_string_lossy())
            }
            ImageSource::Bundled(name) | ImageSource::Bytes { name, .. } => {
                format!("open “{name}”")
            }
            ImageSource::Rgba { .. } => format!("open the {PASTED_NAME}"),
        }
    }

    fn step(&mut self, bench: &mut Bench, outbox: &mut Outbox) -> Result<Step> {
        let mut teller = Teller::new(self.generation, Lane::Image);
        teller.announce(outbox, "reading the photograph", 0.0);
        let photo = Arc::new(self.source.open(self.background)?);
        bench.use_photo(Arc::clone(&photo), self.background);
        outbox.send(Event::ImageOpened {
            generation: self.generation,
            photo,
        });
        Ok(Step::Done)
    }
}

/// Writes all files of an export at once, because they appear together or not at all.
struct ExportJob {
    generation: Generation,
    export: Export,
}

impl Job for ExportJob {
    fn asked(&self) -> String {
        let Export { stem, folder, .. } = &self.export;
        format!("export “{stem}” to “{}”", folder.display())
    }

    fn step(&mut self, _: &mut Bench, outbox: &mut Outbox) -> Result<Step> {
        Teller::new(self.generation, Lane::Export).announce(outbox, "writing files", 0.0);
        let files = report::write(&self.export)?;
        outbox.send(Event::Exported {
            generation: self.generation,
            files,
        });
        Ok(Step::Done)
    }
}
