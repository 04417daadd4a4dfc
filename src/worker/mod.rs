//! The worker: one thread that owns the compute device and every tensor.
//!
//! [`Command`] in, [`Event`] out. Every request has a [`Lane`] and a [`Generation`]; a newer request
//! in a lane supersedes the older, which stops at its next step and says nothing more. Every other
//! request ends in exactly one [`Event::Finished`] or [`Event::Failed`].
//!
//! Work is cut into *steps* of at most about one batch on the device. Between two steps the thread
//! reads its commands and turns to the most urgent lane, so that cancelling, pausing and measuring
//! at a dragged η take effect within one step. A panic in a step ends that request only.

mod bench;
pub mod command;
mod device_engine;
pub mod edit;
pub mod engine;
pub mod event;
mod jobs;
pub mod library;
mod mailbox;
mod measure_job;
pub mod memory;
mod outbox;
mod pictured;
mod profile_job;
mod spectrum_job;
mod study;
mod thread;

use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, bounded};

pub use command::{
    CoalescingKey, Command, Content, DIRECTIONS_KEPT, Export, ExportFormat, Generation,
    ImageSource, Lane, Request, SpectrumTask,
};
pub use device_engine::{DeviceEngine, TWIN_SEED};
pub use engine::{Engine, Look, StageView, Subject};
pub use event::{Event, LeastRun, Progress};
pub use library::{Library, LibraryAnswer, LibraryRequest};
pub use memory::{DEFAULT_BUDGET_BYTES, LoadedWeights, Memory};

use crate::device::DeviceChoice;
use crate::{Error, ErrorKind, Result};

/// Events that wait for the window before the worker starts to merge them. An update of a profile
/// holds the shown direction, 0.6 MB.
const EVENT_CAPACITY: usize = 64;

/// Handle on the worker thread; dropping it ends the thread after the running step and after the
/// exports that were asked for, and waits for that.
pub struct Worker {
    mailbox: Arc<mailbox::Mailbox>,
    events: Receiver<Event>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts the thread and lets it open a compute device, which answers with
    /// [`Event::DeviceReady`] or [`Event::Failed`] as for [`Command::UseDevice`].
    ///
    /// `wake` is called on the worker thread after each event, for example to repaint a window.
    ///
    /// # Errors
    /// Where the system refuses another thread.
    pub fn spawn(choice: DeviceChoice, wake: impl Fn() + Send + 'static) -> Result<Self> {
        Self::spawn_with(DeviceEngine::new, choice, wake)
    }

    /// The same with another compute side; `engine` is called on the worker thread.
    ///
    /// # Errors
    /// As [`Worker::spawn`].
    pub fn spawn_with<E: Engine + 'static>(
        engine: impl FnOnce() -> E + Send + 'static,
        choice: DeviceChoice,
        wake: impl Fn() + Send + 'static,
    ) -> Result<Self> {
        let (mailbox, bell) = mailbox::Mailbox::new();
        let mailbox = Arc::new(mailbox);
        mailbox.put(Command::UseDevice(choice))?;
        let (sender, events) = bounded(EVENT_CAPACITY);
        let outbox = outbox::Outbox::new(sender, Box::new(wake));
        let thread = std::thread::Builder::new()
            .name("etascope-worker".to_owned())
            .spawn({
                let mailbox = Arc::clone(&mailbox);
                move || {
                    let bench = bench::Bench::new(Box::new(engine()));
                    thread::Thread::new(mailbox, bell, outbox, bench).run();
                }
            })
            .map_err(|error| {
                Error::new(
                    ErrorKind::Internal,
                    "cannot start the worker",
                    error,
                    "Close other programs and start again",
                )
            })?;
        Ok(Self {
            mailbox,
            events,
            thread: Some(thread),
        })
    }

    /// Asks for something and returns its number at once; never blocks.
    ///
    /// # Errors
    /// Where the thread has ended.
    pub fn send(&self, command: Command) -> Result<Generation> {
        self.mailbox.put(command)
    }

    /// What the worker says, in order.
    pub fn events(&self) -> &Receiver<Event> {
        &self.events
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // An error means that the thread has ended already.
        let _ = self.mailbox.put(Command::Shutdown);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            log::error!("the worker thread ended by a panic outside any job");
        }
    }
}
