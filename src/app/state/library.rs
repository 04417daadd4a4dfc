//! What is known of the library of encoders, and what is asked of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::State;
use crate::worker::library::{Holding, Inspection, LibraryAnswer, LibraryRequest, Offer};
use crate::{Error, ErrorKind};

/// The library as the window sees it.
#[derive(Clone, Debug, Default)]
pub struct LibraryState {
    /// All encoders in the order in which they are offered; empty before they were listed.
    pub holdings: Vec<Holding>,
    /// Whether the list has come.
    pub is_listed: bool,
    /// How fetching stands, by registry name; nothing where it was not asked for.
    pub fetches: BTreeMap<String, Fetch>,
    /// The weight file that was looked into.
    pub file: Option<WeightFile>,
    requests: Vec<LibraryRequest>,
}

/// How fetching an encoder's weights stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Fetch {
    /// The server is asked for size and place.
    Asking,
    /// The reader decides.
    Offered(Offer),
    /// Under way.
    Running {
        /// Bytes that are here.
        done_bytes: u64,
        /// Bytes in all, where known.
        total_bytes: Option<u64>,
        /// Whether it was told to stop.
        stopping: bool,
    },
    /// The weights are here.
    Done,
    /// It failed.
    Failed(Error),
}

/// A weight file of the reader's own.
#[derive(Clone, Debug)]
pub struct WeightFile {
    /// Path, with `#PREFIX` for one of several copies of a network.
    pub file: String,
    /// The encoder that it is held against, instead of proposals.
    pub encoder: Option<String>,
    /// What was found; `None` while it is being read.
    pub found: Option<Result<Arc<Inspection>, Error>>,
    /// The name under which it is being made known.
    pub adopting: Option<String>,
    /// Why that failed.
    pub failure: Option<Error>,
}

impl LibraryState {
    /// Requests to be sent, in this order.
    pub fn take_requests(&mut self) -> Vec<LibraryRequest> {
        std::mem::take(&mut self.requests)
    }

    /// What is known of an encoder.
    pub fn holding(&self, name: &str) -> Option<&Holding> {
        self.holdings.iter().find(|one| *one.row.spec.name == *name)
    }

    /// Lists the encoders anew: files may have come or gone.
    pub fn list(&mut self) {
        self.requests.push(LibraryRequest::List);
    }

    /// Asks for size and place of published weights, as the first half of fetching them.
    pub fn look(&mut self, encoder: &str) {
        self.fetches.insert(encoder.to_owned(), Fetch::Asking);
        self.requests.push(LibraryRequest::Look(encoder.to_owned()));
    }

    /// Fetches what was offered.
    pub fn fetch(&mut self, encoder: &str) {
        let total_bytes = match self.fetches.get(encoder) {
            Some(Fetch::Offered(offer)) => offer.size_bytes,
            _ => return,
        };
        let running = Fetch::Running {
            done_bytes: 0,
            total_bytes,
            stopping: false,
        };
        self.fetches.insert(encoder.to_owned(), running);
        self.requests
            .push(LibraryRequest::Fetch(encoder.to_owned()));
    }

    /// Stops fetching, or forgets an offer or a failure.
    pub fn stop_fetching(&mut self, encoder: &str) {
        if let Some(Fetch::Running { stopping, .. }) = self.fetches.get_mut(encoder) {
            *stopping = true;
            self.requests
                .push(LibraryRequest::StopFetching(encoder.to_owned()));
        } else {
            self.fetches.remove(encoder);
        }
    }

    /// Looks into a weight file.
    pub fn inspect(&mut self, file: String, encoder: Option<String>) {
        self.requests.push(LibraryRequest::Inspect {
            file: file.clone(),
            encoder: encoder.clone(),
        });
        self.file = Some(WeightFile {
            file,
            encoder,
            found: None,
            adopting: None,
            failure: None,
        });
    }

    /// Makes an encoder with the weights of the file known, to be used then.
    pub fn adopt(&mut self, encoder: &str) {
        let Some(file) = &mut self.file else { return };
        let name = crate::encoders::registry::local_name(encoder, &file.file);
        file.adopting = Some(name.clone());
        file.failure = None;
        self.requests.push(LibraryRequest::Adopt(name));
    }
}

impl State {
    /// Takes in what the library says; answers to questions that are no longer asked are dropped.
    pub fn apply_library(&mut self, answer: LibraryAnswer) {
        let library = &mut self.library;
        match answer {
            LibraryAnswer::Listed(holdings) => {
                for holding in holdings.iter().filter(|one| one.status.installed) {
                    know(&mut self.catalogue, &holding.row.spec);
                }
                library.holdings = holdings;
                library.is_listed = true;
            }
            LibraryAnswer::Looked { encoder, offer } => {
                if library.fetches.get(&encoder) == Some(&Fetch::Asking) {
                    let fetch = offer.map_or_else(Fetch::Failed, Fetch::Offered);
                    library.fetches.insert(encoder, fetch);
                }
            }
            LibraryAnswer::Fetching {
                encoder,
                done_bytes: done,
                total_bytes: total,
            } => {
                if let Some(Fetch::Running {
                    done_bytes,
                    total_bytes,
                    ..
                }) = library.fetches.get_mut(&encoder)
                {
                    *done_bytes = done;
                    *total_bytes = total.or(*total_bytes);
                }
            }
            LibraryAnswer::Fetched { encoder, outcome } => match outcome {
                Ok(holding) => {
                    library.fetches.insert(encoder.clone(), Fetch::Done);
                    know(&mut self.catalogue, &holding.row.spec);
                    let known = library.holdings.iter_mut();
                    for one in known.filter(|one| *one.row.spec.name == *encoder) {
                        *one = holding.clone();
                    }
                }
                Err(error) if error.kind == ErrorKind::Cancelled => {
                    library.fetches.remove(&encoder);
                }
                Err(error) => {
                    library.fetches.insert(encoder, Fetch::Failed(error));
                }
            },
            LibraryAnswer::Inspected {
                file,
                encoder,
                found,
            } => {
                if let Some(known) = &mut library.file
                    && known.file == file
                    && known.encoder == encoder
                {
                    known.found = Some(found);
                }
            }
            LibraryAnswer::Adopted { name, outcome } => {
                let Some(file) = &mut library.file else {
                    return;
                };
                if file.adopting.as_ref() != Some(&name) {
                    return;
                }
                file.adopting = None;
                match outcome {
                    Ok(spec) => {
                        library.file = None;
                        know(&mut self.catalogue, spec);
                        self.choose_encoder(&spec.name);
                    }
                    Err(error) => file.failure = Some(error),
                }
            }
        }
    }
}

/// Adds an encoder to those that can be chosen.
fn know(
    catalogue: &mut Vec<&'static crate::encoders::EncoderSpec>,
    spec: &'static crate::encoders::EncoderSpec,
) {
    if !catalogue.iter().any(|known| known.name == spec.name) {
        catalogue.push(spec);
    }
}
