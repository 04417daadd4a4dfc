//! Weights by name from where they are published: the Hugging Face hub and plain addresses.
//!
//! Files go where the libraries of Python keep them, so that nothing is fetched twice: the layout of
//! the hub's cache is that of the crate `hf-hub`. Its downloads are not used: they can be neither
//! cancelled nor held against a hash, wait for ever on a server that has fallen silent, and ignore
//! `HF_TOKEN` and `HF_HUB_OFFLINE`. Here a transfer runs on a thread of its own and hands over slices,
//! so that cancelling takes effect at once; what arrived stays beside its place under
//! `NAME.incomplete`, and the next attempt goes on from there.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind as IoErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use hf_hub::{Cache, Repo, RepoType};
use sha2::{Digest, Sha256};
use ureq::Agent;
use ureq::config::RedirectAuthHeaders;
use ureq::http::{HeaderMap, StatusCode, header};

use super::checkpoint::{hash_into, hex};
use super::find::{Caches, Origin, file_name, is_commit, is_plain};
use super::index;
use crate::{Error, ErrorKind, Result};

/// Where the hub is unless `HF_ENDPOINT` says otherwise.
const ENDPOINT: &str = "https://huggingface.co";

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

/// Longest of the hub's own messages that is shown, in bytes.
const MESSAGE_MAX: usize = 300;

/// A published file before it is fetched.
#[derive(Clone, Debug)]
pub struct Remote {
    /// Its address.
    pub url: String,
    /// Its size in bytes, where the server says it.
    pub size_bytes: Option<u64>,
    /// Its SHA-256 in hexadecimal, where the server publishes it.
    pub sha256: Option<String>,
    /// The file's place in the cache.
    pub path: PathBuf,
    /// What else the hub says of a file.
    snapshot: Option<Snapshot>,
}

/// Where a file of the hub belongs.
#[derive(Clone, Debug)]
struct Snapshot {
    repo: Repo,
    commit: String,
    blob: PathBuf,
}

/// How far a transfer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that are there, those of an earlier attempt included.
    pub done_bytes: u64,
    /// Bytes in all, where the server says it.
    pub total_bytes: Option<u64>,
}

/// Called at least every 50 ms while a transfer runs; breaks to stop it.
pub type Watch<'a> = dyn FnMut(Progress) -> ControlFlow<()> + 'a;

/// Speaks to the servers that publish weights.
#[derive(Clone, Debug)]
pub struct Client {
    /// Folders for what is fetched.
    pub caches: Caches,
    /// The hub's address.
    pub endpoint: String,
    /// Token of an account on the hub, for repositories that ask for one.
    pub token: Option<String>,
    /// Whether nothing may be fetched.
    pub offline: bool,
}

impl Client {
    /// As the environment says: `HF_ENDPOINT`, `HF_TOKEN` (or the token that the hub's own tools
    /// saved), `HF_HUB_OFFLINE`, and the folders of [`Caches::from_env`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Output`] where no folder is named and there is no home folder.
    pub fn from_env() -> Result<Self> {
        let caches = Caches::from_env().ok_or_else(|| {
            Error::new(
                ErrorKind::Output,
                "cannot keep downloads",
                "there is no home folder",
                "Name a folder in the variable HF_HOME",
            )
        })?;
        let text = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let saved = || Cache::new(caches.hub.clone()).token();
        let truth =
            |value: String| ["1", "true", "yes", "on"].contains(&value.to_lowercase().as_str());
        Ok(Self {
            endpoint: text("HF_ENDPOINT").unwrap_or_else(|| ENDPOINT.to_owned()),
            token: text("HF_TOKEN").or_else(saved),
            offline: text("HF_HUB_OFFLINE").is_some_and(truth),
            caches,
        })
    }

    /// Size and hash of a published file, and where it will be kept; nothing is fetched.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Weights`] where the server refuses or cannot be reached, and offline;
    /// [`ErrorKind::Request`] for an origin that is not fetched.
    pub fn look(&self, origin: &Origin) -> Result<Remote> {
        match origin {
            Origin::Hub {
                repo,
                revision,
                file,
            } => self.look_in_hub(repo, revision, file),
            Origin::Url(url) => self.look_at(url),
            Origin::Page(page) => Err(Error::new(
                ErrorKind::Request,
                "cannot fetch these weights",
                "their authors publish them on a page, not as a file",
                format!("Fetch the file at {page} and name it with --weights"),
            )),
            Origin::Bundled(..) | Origin::File(_) => Err(Error::new(
                ErrorKind::Request,
                "cannot fetch these weights",
                "they are on this machine",
                "Use them as they are",
            )),
        }
    }

    /// Fetches a file, or finds it where it was fetched before, and returns its place. With an index
    /// of shards come the shards. `sha256` is the hash that it must have, or the beginning of it.
    ///
    /// # Errors
    ///
    /// As [`Self::look`]; [`ErrorKind::Weights`] where the file has another hash;
    /// [`ErrorKind::Output`] where it cannot be written; [`ErrorKind::Cancelled`].
    pub fn fetch(
        &self,
        origin: &Origin,
        sha256: Option<&str>,
        watch: &mut Watch<'_>,
    ) -> Result<PathBuf> {
        if let Some(path) = self.caches.find(origin) {
            return Ok(path);
        }
        let path = self.fetch_file(&self.look(origin)?, sha256, watch)?;
        let Origin::Hub {
            repo,
            revision,
            file,
        } = origin
        else {
            return Ok(path);
        };
        if file.ends_with(".index.json") {
            let folder = Path::new(file).parent().unwrap_or(Path::new(""));
            let shards: std::collections::BTreeSet<String> =
                index::shards(&path)?.into_values().collect();
            for shard in shards {
                let shard = Origin::Hub {
                    repo: repo.clone(),
                    revision: revision.clone(),
                    file: folder.join(shard).to_string_lossy().into_owned(),
                };
                if self.caches.find(&shard).is_none() {
                    self.fetch_file(&self.look(&shard)?, None, watch)?;
                }
            }
        }
        Ok(path)
    }

    fn look_in_hub(&self, repo: &str, revision: &str, file: &str) -> Result<Remote> {
        let place = Repo::with_revision(repo.to_owned(), RepoType::Model, revision.to_owned());
        let url = format!(
            "{}/{repo}/resolve/{}/{file}",
            self.endpoint,
            place.url_revision()
        );
        if !is_plain(Path::new(file)) || !is_plain(Path::new(repo)) {
            return Err(failed(
                &url,
                "the name of the repository or file is not plain",
                "Correct the encoder's row",
            ));
        }
        let (headers, _) = self.head(&url, Some(repo))?;
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let bare = |value: &str| value.trim_start_matches("W/").trim_matches('"').to_owned();
        let etag = text("x-linked-etag").or(text("etag")).map(bare);
        let commit = text("x-repo-commit").map(str::to_owned);
        let size = text("x-linked-size").or(text("content-length"));
        let is_name = |name: &String| {
            !name.is_empty()
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        let (Some(etag), Some(commit)) = (
            etag.filter(is_name),
            commit.filter(|commit| is_commit(commit)),
        ) else {
            let why = "the server does not answer as the hub does: it names no commit or no hash";
            return Err(failed(&url, why, "Check HF_ENDPOINT"));
        };
        let cache = Cache::new(self.caches.hub.clone()).repo(place.clone());
        let path = cache.pointer_path(&commit).join(file);
        let blob = cache.blob_path(&etag);
        // Large files are named by their SHA-256, small ones by git's SHA-1.
        let sha256 = (etag.len() == 64).then_some(etag);
        Ok(Remote {
            url,
            size_bytes: size.and_then(|size| size.parse().ok()),
            sha256,
            path,
            snapshot: Some(Snapshot {
                repo: place,
                commit,
                blob,
            }),
        })
    }

    fn look_at(&self, url: &str) -> Result<Remote> {
        let Some(name) = file_name(url) else {
            return Err(failed(
                url,
                "the address does not end in a file name",
                "Correct the encoder's row",
            ));
        };
        let (headers, url) = self.head(url, None)?;
        let size = headers
            .get(header::CONTENT_LENGTH)
            .and_then(|size| size.to_str().ok());
        Ok(Remote {
            size_bytes: size.and_then(|size| size.parse().ok()),
            sha256: None,
            path: self.caches.torch.join(name),
            snapshot: None,
            url,
        })
    }

    /// Headers of an answer without its body. For the hub redirections away from it are not followed:
    /// the first answer is the one that names commit and hash.
    fn head(&self, url: &str, repo: Option<&str>) -> Result<(HeaderMap, String)> {
        self.check_online(url)?;
        let mut url = url.to_owned();
        // A repository that was renamed redirects within the hub.
        for _ in 0..5 {
            let agent = agent(&url, if repo.is_some() { 0 } else { 10 });
            let request = self.authorised(agent.head(&url), repo.is_some());
            let answer = request
                .call()
                .map_err(|error| unreachable_at(&url, &error))?;
            let status = answer.status();
            let location = answer.headers().get(header::LOCATION);
            let location = location.and_then(|location| location.to_str().ok());
            match location.filter(|_| repo.is_some() && status.is_redirection()) {
                Some(inside) if inside.starts_with('/') && !inside.starts_with("//") => {
                    url = format!("{}{inside}", self.endpoint);
                }
                _ if status.is_success() || (repo.is_some() && status.is_redirection()) => {
                    let mut headers = answer.headers().clone();
                    if status.is_redirection() {
                        // That of the redirecting answer.
                        headers.remove(header::CONTENT_LENGTH);
                    }
                    return Ok((headers, url));
                }
                _ => return Err(self.refused(&url, status, answer.headers(), repo)),
            }
        }
        Err(failed(
            &url,
            "the server redirects in circles",
            "Try again later",
        ))
    }

    fn authorised<B>(
        &self,
        request: ureq::RequestBuilder<B>,
        to_hub: bool,
    ) -> ureq::RequestBuilder<B> {
        match &self.token {
            Some(token) if to_hub => {
                request.header(header::AUTHORIZATION, format!("Bearer {token}"))
            }
            _ => request,
        }
    }

    fn check_online(&self, url: &str) -> Result<()> {
        if self.offline {
            let remedy = "Unset the variable, or fetch the file on another machine";
            return Err(failed(url, "HF_HUB_OFFLINE forbids it", remedy));
        }
        Ok(())
    }

    /// Fetches one file and puts it in its place.
    fn fetch_file(
        &self,
        remote: &Remote,
        sha256: Option<&str>,
        watch: &mut Watch<'_>,
    ) -> Result<PathBuf> {
        self.check_online(&remote.url)?;
        let place = remote
            .snapshot
            .as_ref()
            .map_or(&remote.path, |snapshot| &snapshot.blob);
        if !place.is_file() {
            let mut partial = Partial::open(place)?;
            let expected: Vec<&str> = [remote.sha256.as_deref(), sha256]
                .into_iter()
                .flatten()
                .collect();
            // Without a hash nothing would tell whether two halves belong together.
            if expected.is_empty() {
                partial.restart()?;
            }
            self.transfer(remote, &mut partial, watch)?;
            partial.finish(place, &expected)?;
        }
        if let Some(snapshot) = &remote.snapshot {
            link(&snapshot.blob, &remote.path).map_err(|error| unwritable(&remote.path, &error))?;
            let cache = Cache::new(self.caches.hub.clone()).repo(snapshot.repo.clone());
            if !is_commit(snapshot.repo.revision()) {
                cache
                    .create_ref(&snapshot.commit)
                    .map_err(|error| unwritable(&remote.path, &error))?;
            }
        }
        Ok(remote.path.clone())
    }

    /// Brings a partial file to its full length, taking up a transfer that breaks off.
    fn transfer(
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

    /// A server's refusal in words.
    fn refused(
        &self,
        url: &str,
        status: StatusCode,
        headers: &HeaderMap,
        repo: Option<&str>,
    ) -> Error {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let code = text("x-error-code").unwrap_or_default();
        let said = text("x-error-message").map(|message| {
            let end = message.floor_char_boundary(MESSAGE_MAX);
            format!("; it says: {}", &message[..end])
        });
        let said = said.unwrap_or_default();
        let denied = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let page = repo.map(|repo| format!("{}/{repo}", self.endpoint));
        match (code, page) {
            ("GatedRepo", Some(page)) => failed(
                url,
                format!("its authors give it to those who accept their licence{said}"),
                if self.token.is_some() {
                    format!("Accept it at {page} with the account of your token, and try again")
                } else {
                    format!(
                        "Accept it at {page}, make a token at {}/settings/tokens, and set it in the \
                         variable HF_TOKEN",
                        self.endpoint
                    )
                },
            ),
            (_, Some(page)) if denied => failed(
                url,
                format!(
                    "the hub denies it ({status}): the repository is private, or there is none{said}"
                ),
                if self.token.is_some() {
                    format!("Check {page} and whether your token is still valid")
                } else {
                    format!(
                        "Check {page}, and set a token of your account in the variable HF_TOKEN"
                    )
                },
            ),
            (_, None) if denied => failed(
                url,
                format!("the server denies it ({status})"),
                "Fetch the file in a browser, and name it with --weights",
            ),
            _ if status == StatusCode::NOT_FOUND => failed(
                url,
                format!("there is no such file ({status}){said}"),
                "Check the address: files are sometimes moved",
            ),
            _ => failed(
                url,
                format!("the server answers {status}{said}"),
                "Try again later",
            ),
        }
    }
}

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

/// A file that is being fetched: its bytes so far, and their hash.
struct Partial {
    path: PathBuf,
    file: File,
    len: u64,
    hash: Sha256,
}

impl Partial {
    /// What an earlier attempt left of `place`, or an empty beginning; locked against others.
    fn open(place: &Path) -> Result<Self> {
        let mut name = place.as_os_str().to_owned();
        name.push(".incomplete");
        let path = PathBuf::from(name);
        let failed = |error: &io::Error| unwritable(&path, error);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| failed(&error))?;
        }
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|error| failed(&error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::new(
                    ErrorKind::Output,
                    format!("cannot write “{}”", path.display()),
                    "another program is fetching the same file",
                    "Wait until it has finished",
                ));
            }
            Err(TryLockError::Error(error)) => return Err(failed(&error)),
        }
        let mut hash = Sha256::new();
        let len = file.metadata().map_err(|error| failed(&error))?.len();
        if len > 0 {
            hash_into(&mut hash, &mut file).map_err(|error| failed(&error))?;
        }
        Ok(Self {
            path,
            file,
            len,
            hash,
        })
    }

    /// Forgets what is there.
    fn restart(&mut self) -> Result<()> {
        if self.len > 0 {
            let emptied = self
                .file
                .set_len(0)
                .and_then(|()| self.file.seek(SeekFrom::Start(0)));
            emptied.map_err(|error| unwritable(&self.path, &error))?;
            self.len = 0;
            self.hash = Sha256::new();
        }
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file
            .write_all(bytes)
            .map_err(|error| unwritable(&self.path, &error))?;
        self.hash.update(bytes);
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Moves the whole file to its place if its hash begins with each of `expected`; else removes it.
    fn finish(self, place: &Path, expected: &[&str]) -> Result<()> {
        let found = hex(&self.hash.finalize());
        if let Some(wanted) = expected.iter().find(|wanted| !found.starts_with(**wanted)) {
            let _ = fs::remove_file(&self.path);
            return Err(Error::new(
                ErrorKind::Weights,
                format!("cannot use what was fetched for “{}”", place.display()),
                format!("its SHA-256 is {found}, not {wanted}: it is damaged, or another file"),
                "Try again; if it stays so, the file was replaced where it is published",
            ));
        }
        let done = self
            .file
            .sync_all()
            .and_then(|()| fs::rename(&self.path, place));
        done.map_err(|error| unwritable(place, &error))
    }
}

/// Makes `path` lead to `blob`, which lies in the same cache.
fn link(blob: &Path, path: &Path) -> io::Result<()> {
    if path.is_file() {
        return Ok(());
    }
    // A link to a blob that was deleted.
    if path.symlink_metadata().is_ok() {
        fs::remove_file(path)?;
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    fs::create_dir_all(folder)?;
    #[cfg(unix)]
    {
        // Relative, so that a cache can be moved: up to the folder of the repository, down to blobs.
        let repo = blob
            .parent()
            .and_then(Path::parent)
            .unwrap_or(Path::new(""));
        let up = folder
            .strip_prefix(repo)
            .map_or(0, |inside| inside.components().count());
        let inside = blob.strip_prefix(repo).unwrap_or(blob);
        let target: PathBuf = std::iter::repeat_n(Path::new(".."), up)
            .chain([inside])
            .collect();
        std::os::unix::fs::symlink(target, path)
    }
    #[cfg(not(unix))]
    {
        // Links ask for rights there; the hub's own tools copy, too.
        fs::hard_link(blob, path).or_else(|_| fs::copy(blob, path).map(|_| ()))
    }
}

fn agent(url: &str, redirects: u32) -> Agent {
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

fn failed(url: &str, why: impl std::fmt::Display, remedy: impl Into<String>) -> Error {
    Error::new(
        ErrorKind::Weights,
        format!("cannot fetch “{url}”"),
        why,
        remedy,
    )
}

fn unreachable_at(url: &str, error: &ureq::Error) -> Error {
    let why = match error {
        ureq::Error::HostNotFound => {
            "there is no such server, or no connection to the internet".to_owned()
        }
        ureq::Error::Timeout(_) => format!("the server does not answer ({error})"),
        other => format!("the connection failed ({other})"),
    };
    failed(url, why, "Check the connection, and try again")
}

fn unwritable(path: &Path, error: &io::Error) -> Error {
    let (why, remedy) = match error.kind() {
        IoErrorKind::StorageFull | IoErrorKind::QuotaExceeded => (
            "the disk is full".to_owned(),
            "Make room, or name another folder in HF_HOME or TORCH_HOME; what arrived is kept",
        ),
        IoErrorKind::PermissionDenied => (
            "permission is denied".to_owned(),
            "Allow writing there, or name another folder in HF_HOME or TORCH_HOME",
        ),
        _ => (
            error.to_string(),
            "Name another folder in HF_HOME or TORCH_HOME",
        ),
    };
    Error::new(
        ErrorKind::Output,
        format!("cannot write “{}”", path.display()),
        why,
        remedy,
    )
}
