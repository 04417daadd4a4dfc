//! `etascope profile`: photographs through the worker, then one table, sidecar and figure of all.

use std::cell::Cell;
use std::sync::Arc;

use indicatif::ProgressBar;

use super::compute::{STEPS, check_writable, differs, progress_bar, verdict};
use super::job::{ProfileArgs, ProfileJob};
use super::table::table;
use super::{describe, names, note, print};
use crate::digits::significant;
use crate::geometry::summary::Reading;
use crate::recipe::ProfileRecipe;
use crate::report::ProfileRun;
use crate::worker::{Command, Content, Event, Export, ImageSource, Lane, Progress, Worker};
use crate::{Error, ErrorKind, Result};

/// Computes and writes what the arguments ask for. A photograph or profile that fails is reported and
/// the others go on.
///
/// # Errors
/// Of the request, the device or the output; at the end, where a photograph or profile failed.
pub fn run(args: &ProfileArgs) -> Result<()> {
    let job = args.job()?;
    check_writable(&job.folder)?;
    let mut session = Session::start(&job, args.quiet)?;
    for (image, name) in job.images.iter().zip(names::distinct(&job.images)) {
        session.profile(&job, image, &name);
    }
    session.bar.finish_and_clear();
    if !session.runs.is_empty() {
        session.export(&job)?;
        if !args.quiet {
            print(&summary_table(&session.runs))?;
        }
    }
    verdict(&session.failures, !session.runs.is_empty(), "profiles")
}

/// The worker with what it has answered so far.
struct Session {
    worker: Worker,
    bar: ProgressBar,
    /// Finished profiles, in the order of the arguments.
    runs: Vec<Arc<ProfileRun>>,
    failures: Vec<Error>,
    /// True until the first curve is there.
    is_waiting: Cell<bool>,
}

impl Session {
    /// Starts the worker and waits for its device.
    fn start(job: &ProfileJob, quiet: bool) -> Result<Self> {
        let worker = Worker::spawn(job.device.clone(), || {})?;
        let steps = (job.images.len() * job.recipes.len()) as u64 * STEPS;
        let bar = progress_bar(steps, quiet);
        let session = Self {
            worker,
            bar,
            runs: Vec::new(),
            failures: Vec::new(),
            is_waiting: Cell::new(true),
        };
        session.wait(Lane::Device, |_| {})?;
        Ok(session)
    }

    /// Profiles one photograph by every recipe. Each is a request of its own, so that one that fails
    /// takes no other with it; failures are told and kept.
    fn profile(&mut self, job: &ProfileJob, image: &ImageSource, name: &str) {
        let start = self.bar.position();
        let open = Command::OpenImage {
            source: image.clone(),
            background: job.background,
        };
        match self.ask(open, Lane::Image, |_| {}) {
            Ok(()) => {
                for (index, recipe) in job.recipes.iter().enumerate() {
                    match self.compute(name, recipe, start + index as u64 * STEPS) {
                        Ok(run) => self.runs.extend(run),
                        Err(error) => self.fail(Error {
                            what: format!(
                                "{name}, {} ({}): {}",
                                recipe.encoder,
                                recipe.weights.name(),
                                error.what
                            ),
                            ..error
                        }),
                    }
                }
            }
            Err(error) => self.fail(error),
        }
        self.bar
            .set_position(start + job.recipes.len() as u64 * STEPS);
    }

    /// Profiles the open photograph, known as `name`, by one recipe.
    fn compute(
        &self,
        name: &str,
        recipe: &ProfileRecipe,
        done: u64,
    ) -> Result<Option<Arc<ProfileRun>>> {
        let mut latest: Option<Arc<ProfileRun>> = None;
        let command = Command::Profile(vec![recipe.clone()]);
        self.ask(command, Lane::Profile, |event| match event {
            Event::ProfileUpdated { run, .. } => {
                if self.is_waiting.take() {
                    // benches/compare takes the time of this line.
                    log::info!("first curve");
                }
                latest = Some(run);
            }
            Event::Progress { progress, .. } => {
                self.bar
                    .set_position(done + (f64::from(progress.fraction) * STEPS as f64) as u64);
                self.bar.set_message(message(name, &progress));
            }
            Event::EncoderReady {
                spec,
                self_check: Some(check),
                ..
            } if !check.passed() => {
                self.tell(&differs(&check, &spec.title));
            }
            _ => {}
        })?;
        if let Some(run) = &mut latest {
            Arc::make_mut(run).image = name.to_owned();
        }
        Ok(latest)
    }

    /// Writes the files.
    fn export(&self, job: &ProfileJob) -> Result<()> {
        let export = Export {
            folder: job.folder.clone(),
            stem: job.stem.clone(),
            formats: job.formats.clone(),
            content: Content::Profiles(self.runs.clone()),
        };
        self.ask(Command::Export(export), Lane::Export, |_| {})
    }

    /// Sends a command and waits for its end.
    fn ask(&self, command: Command, lane: Lane, on_event: impl FnMut(Event)) -> Result<()> {
        self.worker.send(command)?;
        self.wait(lane, on_event)
    }

    /// Hands out events until the request of `lane` has ended. There is only ever one request.
    fn wait(&self, lane: Lane, mut on_event: impl FnMut(Event)) -> Result<()> {
        for event in self.worker.events() {
            match event {
                Event::Finished { lane: of, .. } if of == lane => return Ok(()),
                Event::Failed {
                    lane: of, error, ..
                } if of == lane => return Err(error),
                event => on_event(event),
            }
        }
        Err(Error::new(
            ErrorKind::Internal,
            "cannot go on",
            "the worker thread has ended",
            "Start again with RUST_LOG=debug to see why",
        ))
    }

    fn fail(&mut self, error: Error) {
        self.tell(&describe(&error));
        self.failures.push(error);
    }

    /// Writes a line to standard error, above the progress bar.
    fn tell(&self, text: &str) {
        self.bar.suspend(|| note(text));
    }
}

fn message(name: &str, progress: &Progress) -> String {
    let mut text = format!("{name} · {}", progress.stage);
    if let Some(remaining) = progress.remaining {
        text.push_str(&format!(" · {} s left", remaining.as_secs()));
    }
    text
}

/// One line a profile: what is read off it.
fn summary_table(runs: &[Arc<ProfileRun>]) -> String {
    let heading = [
        "image", "encoder", "weights", "plateau", "onset η", "peak η", "peak r", "end r", "shape",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for run in runs {
        let summary = &run.profile.summary;
        rows.push(vec![
            run.image.clone(),
            run.encoder_title.clone(),
            run.recipe.weights.name().to_owned(),
            cell(&summary.plateau),
            cell(&summary.onset_eta_l2),
            cell(&summary.peak_eta_l2),
            cell(&summary.peak_r),
            cell(&summary.end_r),
            summary.shape.word().to_owned(),
        ]);
    }
    table(&rows)
}

/// A reading to three significant digits; a dash where it is undefined.
fn cell(reading: &Reading) -> String {
    let Some(value) = reading.value() else {
        return "–".to_owned();
    };
    significant(value, 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_undefined_reading_is_a_dash() {
        assert_eq!(cell(&Reading::Value(9.999)), "10.0");
        assert_eq!(cell(&Reading::Undefined("no peak".into())), "–");
    }
}
