//! The library of encoders: whose weights are on this machine, how others come here, and what a
//! weight file is of.
//!
//! None of this needs the compute device, and all of it waits for files or servers. So each request
//! has a thread of its own, beside the worker's, and ends in exactly one [`LibraryAnswer`] that names
//! what was asked; [`LibraryAnswer::Fetching`] may come before.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::encoders::EncoderSpec;
use crate::encoders::registry::{self, Row, Status};
use crate::encoders::weights::checkpoint::Checkpoint;
use crate::encoders::weights::infer::{self, Proposal};
use crate::{Error, Result};

/// What can be asked of the library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LibraryRequest {
    /// Which encoders there are, and whose weights are here.
    List,
    /// Size and place of an encoder's published weights; nothing is fetched.
    Look(String),
    /// Fetch an encoder's weights, and see that they fit.
    Fetch(String),
    /// Stop fetching; what arrived is kept for the next attempt.
    StopFetching(String),
    /// What a weight file is of, or how it serves one encoder.
    Inspect {
        /// The file, with `#PREFIX` for one of several copies of a network in it.
        file: String,
        /// Registry name; without it the encoders that fit are proposed.
        encoder: Option<String>,
    },
    /// Make an encoder with weights from a file known by its [`registry::local_name`].
    Adopt(String),
}

/// What the library answers.
#[derive(Clone, Debug)]
pub enum LibraryAnswer {
    /// All encoders in the order in which they are offered.
    Listed(Vec<Holding>),
    /// What fetching would fetch.
    Looked {
        /// Registry name.
        encoder: String,
        /// The offer; an error where the server refuses or cannot be reached.
        offer: Result<Offer>,
    },
    /// How far a transfer is.
    Fetching {
        /// Registry name.
        encoder: String,
        /// Bytes that are here, those of an earlier attempt included.
        done_bytes: u64,
        /// Bytes in all, where the server says it.
        total_bytes: Option<u64>,
    },
    /// A transfer has ended.
    Fetched {
        /// Registry name.
        encoder: String,
        /// The encoder with its weights; an error where it failed, was stopped, or does not fit.
        outcome: Result<Holding>,
    },
    /// What a weight file is of.
    Inspected {
        /// As it was asked.
        file: String,
        /// As it was asked.
        encoder: Option<String>,
        /// What was found; an error where the file cannot be read.
        found: Result<Arc<Inspection>>,
    },
    /// An encoder with weights from a file is known, or not.
    Adopted {
        /// Its name.
        name: String,
        /// What it is; an error where the file does not fit.
        outcome: Result<&'static EncoderSpec>,
    },
}

/// A row of the registry with the state of its weights.
#[derive(Clone, Debug)]
pub struct Holding {
    /// What the registry knows.
    pub row: &'static Row,
    /// Whether the weights are here.
    pub status: Status,
}

impl Holding {
    /// The state of a row's weights now. Looks at the file system.
    pub fn of(row: &'static Row) -> Self {
        let status = row.status();
        Self { row, status }
    }
}

/// Published weights before they are fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Their address.
    pub url: String,
    /// Size of the file in bytes, where server or registry tell it.
    pub size_bytes: Option<u64>,
    /// Where the file will be kept.
    pub path: PathBuf,
}

/// A weight file that was looked into.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// What kind of file it is.
    pub format: String,
    /// Its size, all shards included.
    pub size_bytes: u64,
    /// Number of tensors in it.
    pub tensors: usize,
    /// Its largest tensors, in words.
    pub contents: String,
    /// The encoders that it may be of, the best first; or the one that was asked for.
    pub proposals: Vec<Proposal>,
}

/// Handle on the library; dropping it stops what is being fetched.
pub struct Library {
    sender: Sender<LibraryAnswer>,
    answers: Receiver<LibraryAnswer>,
    wake: Arc<dyn Fn() + Send + Sync>,
    /// The signs to stop, by registry name.
    stops: HashMap<String, Arc<AtomicBool>>,
}

impl Library {
    /// A library that calls `wake` after each answer, on the thread that found it.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        let (sender, answers) = channel();
        Self {
            sender,
            answers,
            wake: Arc::new(wake),
            stops: HashMap::new(),
        }
    }

    /// Asks for something; never blocks.
    pub fn ask(&mut self, request: LibraryRequest) {
        if let LibraryRequest::StopFetching(encoder) = &request {
            if let Some(stop) = self.stops.get(encoder) {
                stop.store(true, Ordering::Relaxed);
            }
            return;
        }
        let stop = Arc::new(AtomicBool::new(false));
        if let LibraryRequest::Fetch(encoder) = &request {
            self.stops.insert(encoder.clone(), Arc::clone(&stop));
        }
        let teller = Teller {
            sender: self.sender.clone(),
            wake: Arc::clone(&self.wake),
            stop,
        };
        let unspawned = teller.clone();
        let asked = request.clone();
        let spawned = std::thread::Builder::new()
            .name("etascope-library".to_owned())
            .spawn(move || {
                let answer = catch_unwind(AssertUnwindSafe(|| answer(&request, &teller)));
                teller.tell(answer.unwrap_or_else(|payload| {
                    let error = Error::from_panic("the library failed", payload.as_ref());
                    failed(&request, error)
                }));
            });
        if let Err(error) = spawned {
            let kind = crate::ErrorKind::Internal;
            let remedy = "Close other programs and try again";
            let error = Error::new(kind, "cannot start a thread", error, remedy);
            unspawned.tell(failed(&asked, error));
        }
    }

    /// The next answer, if any.
    pub fn poll(&mut self) -> Option<LibraryAnswer> {
        self.answers.try_recv().ok()
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        for stop in self.stops.values() {
            stop.store(true, Ordering::Relaxed);
        }
    }
}

/// The way of answers to the handle.
#[derive(Clone)]
struct Teller {
    sender: Sender<LibraryAnswer>,
    wake: Arc<dyn Fn() + Send + Sync>,
    stop: Arc<AtomicBool>,
}

impl Teller {
    fn tell(&self, answer: LibraryAnswer) {
        // The handle may be gone, and nobody left to wake.
        if self.sender.send(answer).is_ok() {
            (self.wake)();
        }
    }
}

fn answer(request: &LibraryRequest, teller: &Teller) -> LibraryAnswer {
    match request {
        LibraryRequest::List | LibraryRequest::StopFetching(_) => {
            LibraryAnswer::Listed(registry::all_rows().into_iter().map(Holding::of).collect())
        }
        LibraryRequest::Look(encoder) => LibraryAnswer::Looked {
            encoder: encoder.clone(),
            offer: look(encoder),
        },
        LibraryRequest::Fetch(encoder) => LibraryAnswer::Fetched {
            encoder: encoder.clone(),
            outcome: fetch(encoder, teller),
        },
        LibraryRequest::Inspect { file, encoder } => LibraryAnswer::Inspected {
            file: file.clone(),
            encoder: encoder.clone(),
            found: inspect(file, encoder.as_deref()).map(Arc::new),
        },
        LibraryRequest::Adopt(name) => LibraryAnswer::Adopted {
            name: name.clone(),
            outcome: registry::find(name),
        },
    }
}

/// The answer to a request that ended without one.
fn failed(request: &LibraryRequest, error: Error) -> LibraryAnswer {
    match request.clone() {
        LibraryRequest::List | LibraryRequest::StopFetching(_) => {
            log::error!("{error}");
            LibraryAnswer::Listed(Vec::new())
        }
        LibraryRequest::Look(encoder) => LibraryAnswer::Looked {
            encoder,
            offer: Err(error),
        },
        LibraryRequest::Fetch(encoder) => LibraryAnswer::Fetched {
            encoder,
            outcome: Err(error),
        },
        LibraryRequest::Inspect { file, encoder } => LibraryAnswer::Inspected {
            file,
            encoder,
            found: Err(error),
        },
        LibraryRequest::Adopt(name) => LibraryAnswer::Adopted {
            name,
            outcome: Err(error),
        },
    }
}

#[cfg(feature = "hub")]
fn look(encoder: &str) -> Result<Offer> {
    use crate::encoders::weights::download::Client;

    let row = registry::row(encoder)?;
    let remote = Client::from_env()?.look(&row.origin)?;
    Ok(Offer {
        url: remote.url,
        size_bytes: remote.size_bytes.or(row.size_bytes),
        path: remote.path,
    })
}

#[cfg(feature = "hub")]
fn fetch(encoder: &str, teller: &Teller) -> Result<Holding> {
    use std::ops::ControlFlow;
    use std::time::{Duration, Instant};

    use crate::encoders::weights::download::{Client, Progress};

    /// Shortest time between two words on the progress.
    const INTERVAL: Duration = Duration::from_millis(100);

    let row = registry::row(encoder)?;
    let mut told: Option<Instant> = None;
    let mut watch = |progress: Progress| {
        if teller.stop.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        if told.is_none_or(|at| at.elapsed() >= INTERVAL) {
            told = Some(Instant::now());
            teller.tell(LibraryAnswer::Fetching {
                encoder: encoder.to_owned(),
                done_bytes: progress.done_bytes,
                total_bytes: progress.total_bytes,
            });
        }
        ControlFlow::Continue(())
    };
    Client::from_env()?.fetch(&row.origin, row.sha256.as_deref(), &mut watch)?;
    match row.report()?.error() {
        Some(error) => Err(error),
        None => Ok(Holding::of(row)),
    }
}

#[cfg(not(feature = "hub"))]
fn look(_: &str) -> Result<Offer> {
    Err(without_hub())
}

#[cfg(not(feature = "hub"))]
fn fetch(_: &str, _: &Teller) -> Result<Holding> {
    Err(without_hub())
}

#[cfg(not(feature = "hub"))]
fn without_hub() -> Error {
    Error::new(
        crate::ErrorKind::Request,
        "cannot fetch weights",
        "this program was built without downloads (feature “hub”)",
        "Fetch the file in a browser and open it as a weights file",
    )
}

fn inspect(file: &str, encoder: Option<&str>) -> Result<Inspection> {
    let (path, prefix) = registry::local_file(file);
    let checkpoint = Checkpoint::open(&path)?;
    let proposals = match encoder {
        None => registry::propose(&checkpoint, prefix)?,
        Some(name) => {
            let row = registry::row(name)?;
            let prefix = prefix.or(row.prefix.as_deref());
            let (architecture, fit) = infer::fit(&checkpoint, &row.architecture, prefix)?;
            let mut report = fit.report;
            report.suggest();
            vec![Proposal {
                encoders: vec![name.to_owned()],
                architecture,
                report,
            }]
        }
    };
    Ok(Inspection {
        format: checkpoint.format().to_owned(),
        size_bytes: checkpoint.size_bytes()?,
        tensors: checkpoint.tensors().len(),
        contents: infer::describe(&checkpoint),
        proposals,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use std::sync::mpsc::{self, RecvTimeoutError};
    use std::time::Duration;

    /// The first answer to a request.
    fn asked(request: LibraryRequest) -> LibraryAnswer {
        let (bell, rung) = mpsc::channel();
        let mut library = Library::new(move || bell.send(()).unwrap_or_default());
        library.ask(request);
        match rung.recv_timeout(Duration::from_secs(60)) {
            Err(RecvTimeoutError::Timeout) => panic!("the library is silent"),
            _ => library.poll().expect("it rang"),
        }
    }

    #[test]
    fn the_bundled_encoders_are_here_and_the_list_is_the_registrys() {
        let LibraryAnswer::Listed(all) = asked(LibraryRequest::List) else {
            panic!("a list");
        };
        let names: Vec<_> = all.iter().map(|one| &one.row.spec.name).collect();
        let known = registry::all_rows();
        assert!(
            names
                .iter()
                .copied()
                .eq(known.iter().map(|row| &row.spec.name))
        );
        let bundled = all
            .iter()
            .find(|one| &*one.row.spec.name == "squeezenet1_1");
        assert!(bundled.is_some_and(|one| one.status.installed));
    }

    #[test]
    fn a_weight_file_is_proposed_with_evidence_and_adopted_under_its_name() {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/assets/encoders/squeezenet1_1.safetensors"
        );
        let request = |encoder: Option<&str>| LibraryRequest::Inspect {
            file: file.to_owned(),
            encoder: encoder.map(str::to_owned),
        };
        let found = |request| match asked(request) {
            LibraryAnswer::Inspected { found, .. } => found.expect("a file that can be read"),
            other => panic!("{other:?}"),
        };
        let proposed = found(request(None));
        let best = proposed.proposals.first().expect("a proposal");
        assert!(best.is_complete() && best.encoders.contains(&"squeezenet1_1".to_owned()));
        // Another encoder's report names what is missing.
        let other = found(request(Some("efficientnet_lite0")));
        assert!(!other.proposals[0].report.missing.is_empty());

        let name = registry::local_name("squeezenet1_1", file);
        let LibraryAnswer::Adopted { outcome, .. } = asked(LibraryRequest::Adopt(name.clone()))
        else {
            panic!("an answer");
        };
        assert_eq!(*outcome.expect("a fitting file").name, *name);
    }

    #[test]
    fn what_cannot_be_read_or_fetched_is_an_error_with_a_remedy() {
        let request = LibraryRequest::Inspect {
            file: "/nowhere/at-all.pth".to_owned(),
            encoder: None,
        };
        let LibraryAnswer::Inspected { found, .. } = asked(request) else {
            panic!("an answer");
        };
        assert_eq!(found.unwrap_err().kind, ErrorKind::Weights);
        // Bundled weights are never fetched, so that no server is asked.
        let request = LibraryRequest::Look("squeezenet1_1".to_owned());
        let LibraryAnswer::Looked { offer, .. } = asked(request) else {
            panic!("an answer");
        };
        let error = offer.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Request);
        assert!(!error.remedy.is_empty());
    }
}
