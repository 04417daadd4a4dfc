//! Downloads against a server on this machine: whole, broken off and resumed, wrong, refused, slow,
//! and onto a full disk. Nothing here reaches the internet.
#![cfg(feature = "hub")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use etascope::encoders::weights::download::{Client, Progress};
use etascope::encoders::weights::find::{Caches, Origin};
use etascope::{Error, ErrorKind};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sha2::{Digest, Sha256};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// How the server treats the transfers of one file, the first in front; the last for ever.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mood {
    /// As it should.
    Whole,
    /// Closes the connection after this many bytes of the body.
    Drop(usize),
    /// Ignores ranges and sends all.
    NoRanges,
    /// Sends other bytes of the same length.
    Corrupt,
    /// Sends this many bytes and then nothing, holding the connection.
    Hang(usize),
    /// Answers with this status.
    Status(u16),
    /// Answers with this status and the hub's code.
    Code(u16, &'static str),
}

struct Shared {
    files: BTreeMap<String, Vec<u8>>,
    moods: Mutex<BTreeMap<String, Vec<Mood>>>,
    log: Mutex<Vec<Request>>,
}

/// Method, path, range and token.
type Request = (String, String, Option<String>, Option<String>);

/// A small hub, and a plain server besides.
struct Server {
    address: String,
    shared: Arc<Shared>,
}

impl Server {
    /// Files by path below the repository `me/net`; they are also at `/plain/PATH`.
    fn start(files: &[(&str, &[u8])]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let files = files
            .iter()
            .map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec()));
        let shared = Arc::new(Shared {
            files: files.collect(),
            moods: Mutex::default(),
            log: Mutex::default(),
        });
        let of_thread = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&of_thread);
                thread::spawn(move || shared.serve(stream));
            }
        });
        Self { address, shared }
    }

    fn moods(&self, file: &str, moods: &[Mood]) {
        self.shared
            .moods
            .lock()
            .expect("sound")
            .insert(file.to_owned(), moods.to_vec());
    }

    /// Ranges of the transfers so far.
    fn ranges(&self) -> Vec<Option<String>> {
        let log = self.shared.log.lock().expect("sound");
        log.iter()
            .filter(|(method, ..)| method == "GET")
            .map(|(_, _, range, _)| range.clone())
            .collect()
    }

    fn requests(&self) -> usize {
        self.shared.log.lock().expect("sound").len()
    }
}

impl Shared {
    fn mood(&self, file: &str) -> Mood {
        let mut moods = self.moods.lock().expect("sound");
        match moods.get_mut(file) {
            Some(moods) if moods.len() > 1 => moods.remove(0),
            Some(moods) => moods.first().copied().unwrap_or(Mood::Whole),
            None => Mood::Whole,
        }
    }

    /// Answers the requests of one connection.
    fn serve(&self, mut stream: TcpStream) {
        let mut lines = BufReader::new(stream.try_clone().expect("a copy")).lines();
        loop {
            let Some(Ok(first)) = lines.next() else {
                return;
            };
            let mut headers = BTreeMap::new();
            for line in lines
                .by_ref()
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
            {
                if let Some((name, value)) = line.split_once(':') {
                    headers.insert(name.to_lowercase(), value.trim().to_owned());
                }
            }
            let mut words = first.split(' ').map(str::to_owned);
            let (method, path) = (
                words.next().unwrap_or_default(),
                words.next().unwrap_or_default(),
            );
            let range = headers.get("range").cloned();
            let token = headers.get("authorization").cloned();
            let host = headers.get("host").cloned().unwrap_or_default();
            self.log.lock().expect("sound").push((
                method.clone(),
                path.clone(),
                range.clone(),
                token,
            ));
            let port = host.rsplit(':').next().unwrap_or_default();
            if self
                .answer(&mut stream, &method, &path, range.as_deref(), port)
                .is_none()
            {
                return;
            }
        }
    }

    /// Writes an answer; `None` where the connection ends with it.
    fn answer(
        &self,
        stream: &mut TcpStream,
        method: &str,
        path: &str,
        range: Option<&str>,
        port: &str,
    ) -> Option<()> {
        let path = path.split('?').next()?;
        let say = |stream: &mut TcpStream, head: &str, more: &str| {
            write!(stream, "HTTP/1.1 {head}\r\n{more}\r\n").ok()
        };
        let in_hub = path.strip_prefix("/me/net/resolve/main/");
        // The hub keeps large files elsewhere, and repositories are renamed.
        let elsewhere = path.strip_prefix("/cdn/");
        if let Some(file) = path.strip_prefix("/old/name/resolve/main/") {
            let more = format!("Location: /me/net/resolve/main/{file}\r\nContent-Length: 0\r\n");
            return say(stream, "307 Temporary Redirect", &more);
        }
        let file = in_hub.or(elsewhere).or(path.strip_prefix("/plain/"))?;
        let mood = if method == "GET" && in_hub.is_some() && self.is_large(file) {
            Mood::Whole
        } else {
            self.mood(file)
        };
        match mood {
            Mood::Status(status) => {
                return say(stream, &format!("{status} No"), "Content-Length: 0\r\n");
            }
            Mood::Code(status, code) => {
                let more = format!(
                    "X-Error-Code: {code}\r\nX-Error-Message: Access is restricted.\r\nContent-Length: 0\r\n"
                );
                return say(stream, &format!("{status} No"), &more);
            }
            _ => {}
        }
        let Some(bytes) = self.files.get(file) else {
            let more = "X-Error-Code: EntryNotFound\r\nContent-Length: 0\r\n";
            return say(stream, "404 Not Found", more);
        };
        let digest = hex(&Sha256::digest(bytes));
        let tag = if self.is_large(file) {
            digest
        } else {
            "5".repeat(40)
        };
        if in_hub.is_some() && self.is_large(file) {
            let more = format!(
                "X-Repo-Commit: {COMMIT}\r\nX-Linked-Etag: \"{tag}\"\r\nX-Linked-Size: {}\r\n\
                 ETag: \"of-the-redirection\"\r\nLocation: http://localhost:{port}/cdn/{file}?signed=1\r\nContent-Length: 9\r\n",
                bytes.len()
            );
            say(stream, "302 Found", &more)?;
            return if method == "HEAD" {
                Some(())
            } else {
                stream.write_all(b"elsewhere").ok()
            };
        }
        let from = range.and_then(|range| {
            range
                .strip_prefix("bytes=")?
                .strip_suffix('-')?
                .parse()
                .ok()
        });
        let from: usize = from.filter(|_| mood != Mood::NoRanges).unwrap_or(0);
        if from > bytes.len() {
            return say(stream, "416 Range Not Satisfiable", "Content-Length: 0\r\n");
        }
        let mut body = bytes[from..].to_vec();
        if mood == Mood::Corrupt {
            body.iter_mut().for_each(|byte| *byte ^= 1);
        }
        let of_hub = if in_hub.is_some() {
            format!("X-Repo-Commit: {COMMIT}\r\nETag: \"{tag}\"\r\n")
        } else {
            String::new()
        };
        let more = format!(
            "{of_hub}Content-Length: {}\r\n\
             Content-Range: bytes {from}-{}/{}\r\n",
            body.len(),
            bytes.len().saturating_sub(1),
            bytes.len()
        );
        let head = if from > 0 {
            "206 Partial Content"
        } else {
            "200 OK"
        };
        say(stream, head, &more)?;
        if method == "HEAD" {
            return Some(());
        }
        match mood {
            Mood::Drop(len) => {
                let _ = stream.write_all(&body[..len.min(body.len())]);
                let _ = stream.shutdown(std::net::Shutdown::Both);
                None
            }
            Mood::Hang(len) => {
                let _ = stream.write_all(&body[..len.min(body.len())]);
                let _ = stream.flush();
                thread::sleep(Duration::from_secs(60));
                None
            }
            _ => stream.write_all(&body).ok(),
        }
    }

    fn is_large(&self, file: &str) -> bool {
        self.files.get(file).is_some_and(|bytes| bytes.len() > 1000)
    }
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(len: usize) -> Vec<u8> {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    (0..len).map(|_| rng.random()).collect()
}

struct Scene {
    server: Server,
    client: Client,
    folder: tempfile::TempDir,
}

const FILE: &str = "model.safetensors";

/// A repository with one large file, its content, and an empty cache.
fn scene(len: usize) -> (Scene, Vec<u8>) {
    let content = bytes(len);
    let server = Server::start(&[
        (FILE, &content),
        ("config.json", b"{}"),
        ("net-1.pth", &content),
    ]);
    let folder = tempfile::tempdir().expect("a folder");
    let client = Client {
        caches: Caches {
            hub: folder.path().join("hub"),
            torch: folder.path().join("torch"),
        },
        endpoint: server.address.clone(),
        token: None,
        offline: false,
    };
    let scene = Scene {
        server,
        client,
        folder,
    };
    (scene, content)
}

fn hub(file: &str) -> Origin {
    Origin::Hub {
        repo: "me/net".into(),
        revision: "main".into(),
        file: file.into(),
    }
}

impl Scene {
    fn plain(&self) -> Origin {
        Origin::Url(format!("{}/plain/net-1.pth", self.server.address))
    }

    fn fetch(&self, origin: &Origin, sha256: Option<&str>) -> etascope::Result<PathBuf> {
        self.client
            .fetch(origin, sha256, &mut |_| ControlFlow::Continue(()))
    }

    fn refused(&self, origin: &Origin, sha256: Option<&str>) -> Error {
        let error = self
            .fetch(origin, sha256)
            .expect_err("it cannot be fetched");
        assert!(!error.why.is_empty(), "{error}");
        assert!(
            error.kind == ErrorKind::Cancelled || !error.remedy.is_empty(),
            "{error}"
        );
        error
    }

    /// Files in the cache, with their lengths.
    fn kept(&self) -> Vec<(PathBuf, u64)> {
        fn walk(folder: &Path, found: &mut Vec<(PathBuf, u64)>) {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let kind = entry.file_type().expect("a type");
                if kind.is_dir() {
                    walk(&entry.path(), found);
                } else if kind.is_file() {
                    found.push((entry.path(), entry.metadata().expect("it is there").len()));
                }
            }
        }
        let mut found = Vec::new();
        walk(self.folder.path(), &mut found);
        found
    }

    fn incomplete(&self) -> Vec<u64> {
        let kept = self.kept().into_iter();
        kept.filter(|(path, _)| path.extension().is_some_and(|end| end == "incomplete"))
            .map(|(_, len)| len)
            .collect()
    }
}

#[test]
fn a_file_of_the_hub_comes_into_the_cache_as_the_hubs_own_tools_keep_it() {
    let (scene, content) = scene(3 << 20);
    let remote = scene.client.look(&hub(FILE)).expect("it is published");
    assert_eq!(remote.size_bytes, Some(3 << 20));
    let digest = hex(&Sha256::digest(&content));
    assert_eq!(remote.sha256.as_deref(), Some(digest.as_str()));
    assert!(scene.kept().is_empty(), "looking fetches nothing");

    let mut seen = Vec::new();
    let path = scene
        .client
        .fetch(&hub(FILE), Some(&digest[..8]), &mut |progress: Progress| {
            assert_eq!(progress.total_bytes, Some(3 << 20));
            seen.push(progress.done_bytes);
            ControlFlow::Continue(())
        })
        .expect("it comes");
    assert!(seen.is_sorted() && seen.first() == Some(&0) && seen.last() == Some(&(3 << 20)));
    assert_eq!(fs::read(&path).expect("it is there"), content);
    let repo = scene.folder.path().join("hub/models--me--net");
    assert_eq!(path, repo.join("snapshots").join(COMMIT).join(FILE));
    assert_eq!(
        fs::read_to_string(repo.join("refs/main")).expect("it is there"),
        COMMIT
    );
    assert_eq!(
        fs::read(repo.join("blobs").join(&digest)).expect("it is there"),
        content
    );
    #[cfg(unix)]
    {
        let target = fs::read_link(&path).expect("a link");
        assert_eq!(target, Path::new("../../blobs").join(&digest));
    }
    assert!(scene.incomplete().is_empty());

    // A second time nothing is asked for.
    let requests = scene.server.requests();
    assert_eq!(scene.fetch(&hub(FILE), None).expect("it is here"), path);
    assert_eq!(scene.server.requests(), requests);
    // Nor when offline.
    let offline = Client {
        offline: true,
        ..scene.client.clone()
    };
    let found = offline.fetch(&hub(FILE), None, &mut |_| ControlFlow::Continue(()));
    assert_eq!(found.expect("it is here"), path);
    let error = offline.look(&hub("config.json")).expect_err("that is not");
    assert!(error.why.contains("HF_HUB_OFFLINE"), "{error}");
}

#[test]
fn a_plain_address_and_a_small_file_and_a_renamed_repository_come_too() {
    let (scene, content) = scene(5000);
    let digest = hex(&Sha256::digest(&content));
    let path = scene
        .fetch(&scene.plain(), Some(&digest[..8]))
        .expect("it comes");
    assert_eq!(path, scene.folder.path().join("torch/net-1.pth"));
    assert_eq!(fs::read(path).expect("it is there"), content);
    let path = scene.fetch(&hub("config.json"), None).expect("it comes");
    assert_eq!(fs::read(path).expect("it is there"), b"{}");
    let old = Origin::Hub {
        repo: "old/name".into(),
        revision: "main".into(),
        file: FILE.into(),
    };
    let path = scene.fetch(&old, None).expect("it comes");
    assert_eq!(fs::read(path).expect("it is there"), content);
}

#[test]
fn a_connection_that_drops_is_taken_up_where_it_ended() {
    let (scene, content) = scene(2 << 20);
    scene.server.moods(
        FILE,
        &[
            Mood::Whole,
            Mood::Drop(700_000),
            Mood::Drop(500_000),
            Mood::Whole,
        ],
    );
    let path = scene.fetch(&hub(FILE), None).expect("it comes in the end");
    assert_eq!(fs::read(path).expect("it is there"), content);
    let ranges: Vec<String> = scene.server.ranges().into_iter().flatten().collect();
    // Each of the two resumptions asks the hub, and then the place that it names.
    assert!(
        !ranges.is_empty() && ranges.iter().all(|range| range != "bytes=0-"),
        "{ranges:?}"
    );
}

#[test]
fn what_arrived_before_a_failure_is_kept_for_the_next_attempt() {
    let (scene, content) = scene(2 << 20);
    scene
        .server
        .moods(FILE, &[Mood::Whole, Mood::Drop(900_000), Mood::Status(503)]);
    let error = scene.refused(&hub(FILE), None);
    assert!(error.why.contains("503"), "{error}");
    let kept = scene.incomplete();
    assert!(
        matches!(kept[..], [len] if len > 0 && len <= 900_000),
        "{kept:?}"
    );
    scene.server.moods(FILE, &[Mood::Whole]);
    let path = scene.fetch(&hub(FILE), None).expect("it comes");
    assert_eq!(fs::read(path).expect("it is there"), content);
    let last = scene.server.ranges().into_iter().flatten().next_back();
    assert_eq!(last, Some(format!("bytes={}-", kept[0])));
}

#[test]
fn a_server_without_ranges_sends_all_again() {
    let (scene, content) = scene(1 << 20);
    scene
        .server
        .moods(FILE, &[Mood::Whole, Mood::Drop(400_000), Mood::NoRanges]);
    let path = scene.fetch(&hub(FILE), None).expect("it comes");
    assert_eq!(fs::read(path).expect("it is there"), content);
}

#[test]
fn without_a_hash_two_halves_are_not_put_together() {
    let (scene, content) = scene(1 << 20);
    fs::create_dir_all(scene.folder.path().join("torch")).expect("it can be made");
    let stale = scene.folder.path().join("torch/net-1.pth.incomplete");
    fs::write(&stale, vec![1; 300_000]).expect("it can be written");
    let path = scene.fetch(&scene.plain(), None).expect("it comes");
    assert_eq!(fs::read(path).expect("it is there"), content);
    assert_eq!(scene.server.ranges(), [None]);
}

#[test]
fn another_content_than_published_is_refused_and_removed() {
    let (scene, content) = scene(1 << 20);
    scene.server.moods(FILE, &[Mood::Whole, Mood::Corrupt]);
    let error = scene.refused(&hub(FILE), None);
    assert_eq!(error.kind, ErrorKind::Weights);
    let digest = hex(&Sha256::digest(&content));
    assert!(
        error.why.contains(&digest) && error.why.contains("SHA-256"),
        "{error}"
    );
    assert!(scene.kept().is_empty(), "{:?}", scene.kept());
    // What was left of another file is found out at the end, too, and the next attempt is clean.
    scene.server.moods(FILE, &[Mood::Whole]);
    let blobs = scene.folder.path().join("hub/models--me--net/blobs");
    fs::create_dir_all(&blobs).expect("it can be made");
    fs::write(blobs.join(format!("{digest}.incomplete")), vec![0; 1000]).expect("it can be");
    scene.refused(&hub(FILE), None);
    let path = scene.fetch(&hub(FILE), None).expect("it comes");
    assert_eq!(fs::read(path).expect("it is there"), content);
    // The row's own hash counts as well.
    let error = scene.refused(&scene.plain(), Some("00000000"));
    assert!(error.why.contains("not 00000000"), "{error}");
}

#[test]
fn refusals_are_explained() {
    let (mut scene, _) = scene(5000);
    scene.server.moods(FILE, &[Mood::Code(401, "GatedRepo")]);
    let error = scene.refused(&hub(FILE), None);
    for word in ["licence", "Access is restricted.", "HF_TOKEN", "/me/net"] {
        assert!(error.to_string().contains(word), "no {word} in {error}");
    }
    scene.client.token = Some("hf_secret".into());
    let error = scene.refused(&hub(FILE), None);
    assert!(!error.to_string().contains("hf_secret"), "{error}");
    assert!(error.remedy.contains("account of your token"), "{error}");
    let log = scene.server.shared.log.lock().expect("sound").clone();
    let tokens: Vec<&Option<String>> = log.iter().map(|(.., token)| token).collect();
    assert_eq!(tokens, [&None, &Some("Bearer hf_secret".to_owned())]);

    scene.server.moods(FILE, &[Mood::Code(403, "GatedRepo")]);
    assert!(scene.refused(&hub(FILE), None).why.contains("licence"));
    scene.server.moods(FILE, &[Mood::Code(401, "RepoNotFound")]);
    assert!(
        scene
            .refused(&hub(FILE), None)
            .why
            .contains("private, or there is none")
    );
    let error = scene.refused(&hub("absent.bin"), None);
    assert!(error.why.contains("no such file"), "{error}");
    scene.server.moods("net-1.pth", &[Mood::Status(403)]);
    let error = scene.refused(&scene.plain(), None);
    assert!(error.remedy.contains("--weights"), "{error}");
    scene.server.moods("net-1.pth", &[Mood::Status(500)]);
    assert!(scene.refused(&scene.plain(), None).why.contains("500"));
    assert!(scene.kept().is_empty());
    // Nobody listens there.
    let nobody = TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr()
        .expect("an address");
    scene.client.endpoint = format!("http://{nobody}");
    let error = scene.refused(&hub(FILE), None);
    assert!(error.why.contains("connection failed"), "{error}");
}

#[test]
fn a_token_is_given_to_the_hub_and_to_nobody_else() {
    let (mut scene, _) = scene(5000);
    scene.client.token = Some("hf_secret".into());
    scene.fetch(&scene.plain(), None).expect("it comes");
    scene.fetch(&hub(FILE), None).expect("it comes");
    let log = scene.server.shared.log.lock().expect("sound").clone();
    let mut to_hub = 0;
    for (_, path, _, token) in log {
        let expected = path
            .starts_with("/me/net/")
            .then(|| "Bearer hf_secret".to_owned());
        to_hub += usize::from(expected.is_some());
        assert_eq!(token, expected, "{path}");
    }
    assert_eq!(to_hub, 2);
}

#[test]
fn cancelling_takes_effect_though_the_server_has_fallen_silent() {
    let (scene, content) = scene(2 << 20);
    scene
        .server
        .moods(FILE, &[Mood::Whole, Mood::Hang(600_000)]);
    let mut quiet = 0;
    let mut last = 0;
    let error = scene
        .client
        .fetch(&hub(FILE), None, &mut |progress: Progress| {
            quiet = if progress.done_bytes == last && last > 0 {
                quiet + 1
            } else {
                0
            };
            last = progress.done_bytes;
            // Five looks without a byte, a quarter of a second: the reader presses Cancel.
            if quiet >= 5 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })
        .expect_err("it was cancelled");
    assert_eq!(error.kind, ErrorKind::Cancelled);
    let kept = scene.incomplete();
    assert!(matches!(kept[..], [len] if len > 0), "{kept:?}");
    scene.server.moods(FILE, &[Mood::Whole]);
    let path = scene.fetch(&hub(FILE), None).expect("it comes");
    assert_eq!(fs::read(path).expect("it is there"), content);
}

#[test]
fn two_programs_do_not_write_one_file() {
    let (scene, _) = scene(5000);
    fs::create_dir_all(scene.folder.path().join("torch")).expect("it can be made");
    let theirs = fs::File::create(scene.folder.path().join("torch/net-1.pth.incomplete"));
    let theirs = theirs.expect("it can be made");
    theirs.lock().expect("nobody else has it");
    let error = scene.refused(&scene.plain(), None);
    assert_eq!(error.kind, ErrorKind::Output);
    assert!(error.why.contains("another program"), "{error}");
}

/// `/dev/full` refuses every byte as a full disk does.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_called_one() {
    let (scene, _) = scene(5000);
    fs::create_dir_all(scene.folder.path().join("torch")).expect("it can be made");
    let partial = scene.folder.path().join("torch/net-1.pth.incomplete");
    std::os::unix::fs::symlink("/dev/full", partial).expect("it can be linked");
    let error = scene.refused(&scene.plain(), None);
    assert_eq!(error.kind, ErrorKind::Output);
    assert!(error.why.contains("disk is full"), "{error}");
    assert!(error.remedy.contains("TORCH_HOME"), "{error}");
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let (mut scene, _) = scene(5000);
    let file = scene.folder.path().join("file");
    fs::write(&file, "").expect("it can be written");
    scene.client.caches.torch = file.join("checkpoints");
    let error = scene.refused(&scene.plain(), None);
    assert_eq!(error.kind, ErrorKind::Output);
    assert!(error.what.contains("checkpoints"), "{error}");
}

#[test]
fn shards_come_with_their_index() {
    let index = br#"{"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}"#;
    let server = Server::start(&[
        ("model.safetensors.index.json", index),
        ("model-1.safetensors", &bytes(2000)),
        ("model-2.safetensors", &bytes(3000)),
    ]);
    let (mut scene, _) = scene(10);
    scene.client.endpoint.clone_from(&server.address);
    let path = scene
        .fetch(&hub("model.safetensors.index.json"), None)
        .expect("it comes");
    for (shard, len) in [("model-1.safetensors", 2000), ("model-2.safetensors", 3000)] {
        let shard = path.with_file_name(shard);
        assert_eq!(fs::read(shard).expect("it is there"), bytes(len));
    }
}

#[test]
fn a_server_that_is_no_hub_is_found_out() {
    let (mut scene, _) = scene(5000);
    // The plain server answers without commit and hash where the hub would state them.
    scene.client.endpoint = format!("{}/plain", scene.server.address);
    let error = scene.refused(&hub(FILE), None);
    assert!(error.why.contains("no such file"), "{error}");
    let page = Origin::Page("https://example.org/weights".into());
    let error = scene.client.look(&page).expect_err("a page is no file");
    assert!(
        error.remedy.contains("https://example.org/weights"),
        "{error}"
    );
}
