//! Weights by name from where they are published: the Hugging Face hub and plain addresses.
//!
//! Files go where the libraries of Python keep them, so that nothing is fetched twice: the layout of
//! the hub's cache is that of the crate `hf-hub`. Its downloads are not used: they can be neither
//! cancelled nor held against a hash, wait for ever on a server that has fallen silent, and ignore
//! `HF_TOKEN` and `HF_HUB_OFFLINE`. Here a transfer runs on a thread of its own and hands over slices,
//! so that cancelling takes effect at once; what arrived stays beside its place under
//! `NAME.incomplete`, and the next attempt goes on from there.

mod partial;
mod transfer;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use hf_hub::{Cache, Repo, RepoType};
use ureq::http::{HeaderMap, StatusCode, header};

use super::find::{Caches, Origin, file_name, is_commit, is_plain};
use super::index;
use crate::{Error, ErrorKind, Result};
use partial::{Partial, link, unwritable};
use transfer::{agent, unreachable_at};

/// Where the hub is unless `HF_ENDPOINT` says otherwise.
const ENDPOINT: &str = "https://huggingface.co";

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

fn failed(url: &str, why: impl std::fmt::Display, remedy: impl Into<String>) -> Error {
    Error::new(
        ErrorKind::Weights,
        format!("cannot fetch “{url}”"),
        why,
        remedy,
    )
}
