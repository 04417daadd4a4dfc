//! Where weights are: in the program, in a file, or published and perhaps already in the cache of a
//! library that fetched them before.

use std::path::{Component, Path, PathBuf};

/// Where the weights of an encoder come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// In the program itself: file name and bytes.
    Bundled(&'static str, &'static [u8]),
    /// A file or folder on this machine.
    File(PathBuf),
    /// A file of a repository on the Hugging Face hub.
    Hub {
        /// Owner and name, for example `timm/vit_small_patch16_224.augreg_in1k`.
        repo: String,
        /// Branch, tag or commit.
        revision: String,
        /// Path of the file in the repository.
        file: String,
    },
    /// A file at a plain address.
    Url(String),
    /// A page where people fetch the file themselves.
    Page(String),
}

impl Origin {
    /// The place in a few words: a file, a repository, an address.
    pub fn describe(&self) -> String {
        match self {
            Self::Bundled(..) => "bundled".to_owned(),
            Self::File(path) => path.display().to_string(),
            Self::Hub { repo, file, .. } => format!("hub {repo}, {file}"),
            Self::Url(url) | Self::Page(url) => url.clone(),
        }
    }

    /// Whether the program can fetch it.
    pub fn is_fetched(&self) -> bool {
        matches!(self, Self::Hub { .. } | Self::Url(_))
    }
}

/// The folders in which libraries of Python keep what they fetched; the program shares them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caches {
    /// Of the Hugging Face hub: `models--OWNER--NAME` folders.
    pub hub: PathBuf,
    /// Of `torch.hub`: files by name.
    pub torch: PathBuf,
}

impl Caches {
    /// The folders that the environment names: `HF_HUB_CACHE`, `HF_HOME` and `TORCH_HOME`, or those
    /// below `XDG_CACHE_HOME` or `~/.cache`. `None` where there is no home folder either.
    pub fn from_env() -> Option<Self> {
        let folder = |name: &str| {
            let value = std::env::var_os(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        // Python's libraries use ~/.cache on every system.
        let cache = || {
            folder("XDG_CACHE_HOME").or_else(|| {
                let home = directories::BaseDirs::new()?.home_dir().join(".cache");
                Some(home)
            })
        };
        let hub = folder("HF_HUB_CACHE")
            .or_else(|| Some(folder("HF_HOME")?.join("hub")))
            .or_else(|| Some(cache()?.join("huggingface/hub")))?;
        let torch = folder("TORCH_HOME").or_else(|| Some(cache()?.join("torch")))?;
        Some(Self {
            hub,
            torch: torch.join("hub/checkpoints"),
        })
    }

    /// The file of this origin if it is on this machine and whole; bundled weights have none.
    pub fn find(&self, origin: &Origin) -> Option<PathBuf> {
        match origin {
            Origin::Bundled(..) | Origin::Page(_) => None,
            Origin::File(path) => path.exists().then(|| path.clone()),
            Origin::Hub {
                repo,
                revision,
                file,
            } => self.find_in_hub(repo, revision, file),
            Origin::Url(url) => {
                let path = self.torch.join(file_name(url)?);
                path.is_file().then_some(path)
            }
        }
    }

    /// The file in the snapshot of its revision, or, where the revision is a name that was not
    /// fetched, in the newest snapshot that holds it.
    fn find_in_hub(&self, repo: &str, revision: &str, file: &str) -> Option<PathBuf> {
        let folder = self
            .hub
            .join(format!("models--{}", repo.replace('/', "--")));
        let snapshots = folder.join("snapshots");
        let named = std::fs::read_to_string(folder.join("refs").join(revision));
        let commit = named.as_deref().unwrap_or(revision).trim();
        let path = snapshots.join(commit).join(file);
        if is_plain(Path::new(commit)) && path.is_file() {
            return Some(path);
        }
        if is_commit(revision) {
            return None;
        }
        let snapshots = std::fs::read_dir(snapshots).ok()?.flatten();
        let held = snapshots
            .map(|snapshot| snapshot.path().join(file))
            .filter_map(|path| Some((path.metadata().ok()?.modified().ok()?, path)));
        held.max().map(|(_, path)| path)
    }
}

/// Whether a revision is a commit, which never changes, rather than a branch or tag.
pub fn is_commit(revision: &str) -> bool {
    revision.len() == 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a path stays where it is put: names alone, no root and no way up.
pub fn is_plain(path: &Path) -> bool {
    let mut parts = path.components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// The file name at the end of an address, without what a `?` or `#` adds.
pub fn file_name(url: &str) -> Option<&str> {
    let path = url.split(['?', '#']).next()?;
    let (_, rest) = path.split_once("://")?;
    let (_, name) = rest.rsplit_once('/')?;
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
    (!name.starts_with('.') && !name.is_empty() && name.chars().all(is_safe)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_gives_a_file_name_that_cannot_lead_elsewhere() {
        let name = file_name("https://download.pytorch.org/models/resnet50-11ad3fa6.pth");
        assert_eq!(name, Some("resnet50-11ad3fa6.pth"));
        assert_eq!(
            file_name("https://host/a/b.pth?rlkey=x&dl=1"),
            Some("b.pth")
        );
        for bad in [
            "https://host/",
            "https://host",
            "host/a.pth",
            "https://host/..",
            "https://host/a%2Fb",
            "https://host/.hidden",
        ] {
            assert_eq!(file_name(bad), None, "{bad}");
        }
    }

    #[test]
    fn paths_in_repositories_stay_inside() {
        assert!(is_plain(Path::new("a/b.safetensors")));
        for bad in ["", "/a", "../a", "a/../../b"] {
            assert!(!is_plain(Path::new(bad)), "{bad}");
        }
    }
}
