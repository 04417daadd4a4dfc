//! The laws of the house (ARCHITECTURE.md), read off the source: a module uses only its own floor
//! and those below, and each library of the outside is named only where it belongs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Modules below the crate's root with their floors.
const FLOORS: [(&str, u8); 17] = [
    ("app", 5),
    ("cli", 5),
    ("render", 5),
    ("recipe", 3),
    ("report", 4),
    ("worker", 4),
    ("geometry", 3),
    ("device", 2),
    ("encoders", 2),
    ("figure", 1),
    ("images", 1),
    ("metrics", 1),
    ("digits", 0),
    ("error", 0),
    ("features", 0),
    ("files", 0),
    ("lib", 6),
];

/// Libraries with the modules that may name them.
const LIBRARIES: [(&[&str], &[&str]); 4] = [
    (
        &[
            "burn",
            "burn_store",
            "cubecl",
            "cubecl_environment",
            "cubecl_runtime",
        ],
        &["device", "encoders", "geometry"],
    ),
    (
        &[
            "egui",
            "eframe",
            "egui_plot",
            "egui_wgpu",
            "egui_kittest",
            "winit",
            "rfd",
            "arboard",
        ],
        &["app", "render"],
    ),
    (&["clap", "indicatif", "env_logger"], &["cli"]),
    (&["wgpu"], &["app", "device", "render"]),
];

fn floor_of(module: &str) -> Option<u8> {
    FLOORS
        .iter()
        .find(|(name, _)| *name == module)
        .map(|(_, floor)| *floor)
}

/// Source files with the top-level module that each belongs to.
fn sources() -> Vec<(String, PathBuf, String)> {
    fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder of the source") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                walk(&path, files);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    walk(&root, &mut files);
    files
        .into_iter()
        .map(|path| {
            let inside = path
                .strip_prefix(&root)
                .expect("a path below src")
                .to_owned();
            let first = inside.iter().next().expect("a name").to_string_lossy();
            let module = first.trim_end_matches(".rs").to_owned();
            let text = fs::read_to_string(&path).expect("a source file");
            (module, inside, text)
        })
        .filter(|(module, ..)| module != "main")
        .collect()
}

/// The text without line comments; documentation may name anything.
fn code(text: &str) -> String {
    text.lines()
        .map(|line| line.split_once("//").map_or(line, |(code, _)| code))
        .flat_map(|line| [line, "\n"])
        .collect()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// First names of all paths `a::…` in the code, each with what stands after the `::`.
fn paths(code: &str) -> Vec<(&str, &str)> {
    code.match_indices("::")
        .filter_map(|(at, _)| {
            let before = &code[..at];
            let start = before.trim_end_matches(is_word).len();
            let inner = code[..start].ends_with("::");
            (start < at && !inner).then(|| (&code[start..at], &code[at + 2..]))
        })
        .collect()
}

/// The names directly below `crate::` where `rest` follows it: one, or those of a `{…}` list.
fn names_below_crate(rest: &str) -> Vec<&str> {
    let word = |text: &'_ str| text.find(|c| !is_word(c)).unwrap_or(text.len());
    let Some(list) = rest.strip_prefix('{') else {
        return vec![&rest[..word(rest)]];
    };
    let mut names = Vec::new();
    let mut depth = 0;
    let mut expected = true;
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => expected = true,
            c if expected && is_word(c) => {
                names.push(&list[at..at + word(&list[at..])]);
                expected = false;
            }
            _ => {}
        }
    }
    names
}

#[test]
fn the_reader_of_paths_finds_what_is_used() {
    let text = code(
        "use crate::{Error, geometry::{Field, Profile}, images::Photo}; // crate::app\n\
         fn f(x: &crate::worker::Event) -> burn::tensor::Shape { burn_store::x(\"burn-flex\") }",
    );
    let used = paths(&text);
    let firsts: Vec<&str> = used.iter().map(|(first, _)| *first).collect();
    assert_eq!(
        firsts,
        ["crate", "geometry", "images", "crate", "burn", "burn_store"]
    );
    let below: Vec<&str> = used
        .iter()
        .filter(|(first, _)| *first == "crate")
        .flat_map(|(_, rest)| names_below_crate(rest))
        .collect();
    assert_eq!(below, ["Error", "geometry", "images", "worker"]);
}

#[test]
fn every_module_has_its_floor() {
    for (module, path, _) in sources() {
        assert!(
            floor_of(&module).is_some(),
            "{} stands on no floor",
            path.display()
        );
    }
}

#[test]
fn modules_use_only_their_own_floor_and_those_below() {
    let mut wrong = Vec::new();
    for (module, path, text) in sources() {
        let own = floor_of(&module).unwrap_or(0);
        for (first, rest) in paths(&code(&text)) {
            if first != "crate" {
                continue;
            }
            for name in names_below_crate(rest) {
                if floor_of(name).is_some_and(|floor| floor > own) {
                    wrong.push(format!("{} uses {name}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn libraries_are_named_only_where_they_belong() {
    let mut wrong = Vec::new();
    for (module, path, text) in sources() {
        for (first, _) in paths(&code(&text)) {
            for (names, homes) in LIBRARIES {
                if names.contains(&first) && !homes.contains(&module.as_str()) {
                    wrong.push(format!("{} names {first}", path.display()));
                }
            }
        }
    }
    wrong.dedup();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn burn_and_egui_are_in_use_where_they_may_be() {
    let mut users: BTreeMap<String, usize> = BTreeMap::new();
    for (module, _, text) in sources() {
        for (first, _) in paths(&code(&text)) {
            if first == "burn" || first == "egui" {
                *users.entry(format!("{first} in {module}")).or_default() += 1;
            }
        }
    }
    // Were the reader of paths blind, the laws above would hold of anything.
    for expected in ["burn in encoders", "burn in device", "egui in app"] {
        assert!(
            users.contains_key(expected),
            "{expected} was not found among {users:?}"
        );
    }
}
