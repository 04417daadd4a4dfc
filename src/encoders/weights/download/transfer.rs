//! The transfer of one file: on a thread of its own, taken up where it breaks off.

use std::io::{ErrorKind as IoErrorKind, Read};
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use ureq::Agent;
use ureq::config::RedirectAuthHeaders;
use ureq::http::{HeaderMap, StatusCode, header};

use super::partial::Partial;
use super::{Client, Progress, Remote, Watch, failed};
use crate::{Error, ErrorKind, Result};

/// Longest silence of a server, in seconds.
const SILENCE_SECS: u64 = 30;

/// How often a transfer that broke off is taken up again within one call.
const RETRIES: u32 = 4;

/// Wait before the first of them; doubled each time.
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// Longest time between two looks at whether to go on.
const TICK: Duration = Duration::from_millis(50);

/// Bytes that cross the channel at once, and how many such slices may wait in it.
const SLICE_LEN: usize = 256 << 10;
const SLICES_WAITING: usize = 8;

/// How an attempt ended early: the error, after which another attempt makes sense or not.
enum Broken {
    Off(Error),
    For(Error),
}

impl From<Error> for Broken {
    fn from(error: Error) -> Self {
        Self::For(error)
    }
}

impl Client {
    /// Brings a partial file to its full length, taking up a transfer that breaks off.
    pub(super) fn transfer(
        &self,
        remote: &Remote,
        partial: &mut Partial,
        watch: &mut Watch<'_>,
    ) -> Result<()> {
        let mut wait = FIRST_WAIT;
        for attempt in 0.. {
            let before = partial.len;
            match self.attempt(remote, partial, watch) {
                Err(Broken::Off(error)) if attempt < RETRIES => {
                    log::info!(
                        "{}: {error}; going on from byte {}",
                        remote.url,
                        partial.len
                    );
                    let mut left = if partial.len > before {
                        FIRST_WAIT
                    } else {
                        wait
                    };
                    while !left.is_zero() {
                        report(remote, partial, watch)?;
                        let nap = left.min(TICK);
                        std::thread::sleep(nap);
                        left -= nap;
                    }
                    wait *= 2;
                }
                Err(Broken::Off(error) | Broken::For(error)) => return Err(error),
                Ok(()) => return Ok(()),
            }
        }
        Ok(())
    }

    fn attempt(
        &self,
        remote: &Remote,
        partial: &mut Partial,
        watch: &mut Watch<'_>,
    ) -> std::result::Result<(), Broken> {
        if remote.size_bytes.is_some_and(|size| partial.len > size) {
            partial.restart()?;
        }
        if remote.size_bytes == Some(partial.len) {
            return Ok(());
        }
        let (sender, receiver) = sync_channel(SLICES_WAITING);
        let url = remote.url.clone();
        let to_hub = remote.snapshot.is_some();
        let request = self.authorised(agent(&url, 10).get(&url), to_hub);
        let from = partial.len;
        std::thread::spawn(move || send(request, &url, from, &sender));

        loop {
            report(remote, partial, watch)?;
            match receive(&receiver) {
                None => {}
                Some(Ok(Slice::Start(status, headers))) => match status {
                    StatusCode::PARTIAL_CONTENT => {}
                    // The server sends the whole file, or has no more than what is there.
                    StatusCode::OK => partial.restart()?,
                    StatusCode::RANGE_NOT_SATISFIABLE => {
                        partial.restart()?;
                        let why = "what was fetched before does not belong to the file";
                        return Err(Broken::Off(failed(&remote.url, why, "Try again")));
                    }
                    status => {
                        let error =
                            self.refused(&remote.url, status, &headers, to_hub.then_some(""));
                        let may_pass =
                            status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
                        return Err(if may_pass {
                            Broken::Off(error)
                        } else {
                            Broken::For(error)
                        });
                    }
                },
                Some(Ok(Slice::Bytes(bytes))) => partial.append(&bytes)?,
                Some(Ok(Slice::End)) => break,
                Some(Err(error)) => return Err(Broken::Off(error)),
            }
        }
        report(remote, partial, watch)?;
        match remote.size_bytes {
            Some(size) if partial.len != size => {
                let why = format!("the connection ended after {} of {size} bytes", partial.len);
                let remedy = "Try again: what arrived is kept";
                Err(Broken::Off(failed(&remote.url, why, remedy)))
            }
            _ => Ok(()),
        }
    }
}

fn report(remote: &Remote, partial: &Partial, watch: &mut Watch<'_>) -> Result<()> {
    let progress = Progress {
        done_bytes: partial.len,
        total_bytes: remote.size_bytes,
    };
    match watch(progress) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::cancelled(format!("cannot fetch “{}”", remote.url))),
    }
}

/// What crosses from the transferring thread.
enum Slice {
    Start(StatusCode, HeaderMap),
    Bytes(Vec<u8>),
    End,
}

/// The next slice, if one comes in time; a thread that ended without a word counts as broken off.
fn receive(receiver: &Receiver<Result<Slice>>) -> Option<Result<Slice>> {
    match receiver.recv_timeout(TICK) {
        Ok(slice) => Some(slice),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => Some(Err(Error::new(
            ErrorKind::Internal,
            "cannot fetch the file",
            "the transfer ended unexpectedly",
            "Try again",
        ))),
    }
}

/// Sends the file from byte `from` on, until it ends or nobody listens.
fn send(
    request: ureq::RequestBuilder<ureq::typestate::WithoutBody>,
    url: &str,
    from: u64,
    sender: &SyncSender<Result<Slice>>,
) {
    let request = if from > 0 {
        request.header(header::RANGE, format!("bytes={from}-"))
    } else {
        request
    };
    let answer = match request.call() {
        Ok(answer) => answer,
        Err(error) => {
            let _ = sender.send(Err(unreachable_at(url, &error)));
            return;
        }
    };
    let (head, body) = answer.into_parts();
    let is_wanted = head.status.is_success();
    let start = Slice::Start(head.status, head.headers);
    if sender.send(Ok(start)).is_err() || !is_wanted {
        return;
    }
    let mut reader = body.into_reader();
    loop {
        let mut slice = vec![0; SLICE_LEN];
        let sent = match reader.read(&mut slice) {
            Ok(0) => {
                let _ = sender.send(Ok(Slice::End));
                return;
            }
            Ok(read) => {
                slice.truncate(read);
                sender.send(Ok(Slice::Bytes(slice)))
            }
            Err(error) if error.kind() == IoErrorKind::Interrupted => Ok(()),
            Err(error) => {
                let why = format!("the connection was lost ({error})");
                let _ = sender.send(Err(failed(url, why, "Try again: what arrived is kept")));
                return;
            }
        };
        if sent.is_err() {
            return;
        }
    }
}

pub(super) fn agent(url: &str, redirects: u32) -> Agent {
    let silence = Duration::from_secs(SILENCE_SECS);
    let mut config = Agent::config_builder()
        .timeout_connect(Some(silence))
        .timeout_recv_response(Some(silence))
        .timeout_per_read(Some(silence))
        .max_redirects(redirects)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .redirect_auth_headers(RedirectAuthHeaders::SameHost)
        .user_agent(concat!("etascope/", env!("CARGO_PKG_VERSION")))
        // Parts of a compressed stream could not be put together.
        .accept_encoding("identity");
    // A server on this machine is not reached through a proxy.
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    if host.starts_with("127.0.0.1") || host.starts_with("localhost") || host.starts_with("[::1]") {
        config = config.proxy(None);
    }
    config.build().into()
}

pub(super) fn unreachable_at(url: &str, error: &ureq::Error) -> Error {
    let why = match error {
        ureq::Error::HostNotFound => {
            "there is no such server, or no connection to the internet".to_owned()
        }
        ureq::Error::Timeout(_) => format!("the server does not answer ({error})"),
        other => format!("the connection failed ({other})"),
    };
    failed(url, why, "Check the connection, and try again")
}
