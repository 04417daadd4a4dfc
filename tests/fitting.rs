//! Maps fitted from the command line to sets of photographs: what is kept between runs, crops, pairs from an outside editor,
//! and every kind of map.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use etascope::images::{Picture, bundled};
use serde_json::Value;

const SQUEEZENET_FILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/assets/encoders/squeezenet1_1.safetensors"
);

/// Folders of one person: configuration with the encoder `small` (the bundled SqueezeNet on 64 px), cache, output.
struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let config = folder.path().join("config/etascope");
        fs::create_dir_all(&config).expect("it can be made");
        let row = format!(
            "[[encoder]]\nname = \"small\"\ntitle = \"Small\"\narchitecture = \"squeezenet1_1\"\n\
             licence = \"BSD-3-Clause\"\nfile = {SQUEEZENET_FILE:?}\n\
             input = {{ resize = 64, crop = 64, filter = \"bilinear\", mean = [0.485, 0.456, 0.406], \
             std = [0.229, 0.224, 0.225] }}\n"
        );
        fs::write(config.join("encoders.toml"), row).expect("it can be written");
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_etascope"));
        command
            .args(args)
            .env_remove("DISPLAY")
            .env_remove("WAYLAND_DISPLAY")
            .env("XDG_RUNTIME_DIR", std::env::temp_dir())
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env("HF_HOME", "/nowhere")
            .env("TORCH_HOME", "/nowhere")
            .env_remove("HF_HUB_CACHE")
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs it and expects success.
    fn run(&self, args: &[&str]) -> String {
        let Output {
            status,
            stdout,
            stderr,
        } = self.command(args).output().expect("the binary starts");
        let stderr = String::from_utf8_lossy(&stderr);
        assert_eq!((status.code(), &*stderr), (Some(0), ""));
        String::from_utf8(stdout).expect("UTF-8")
    }

    /// The sidecar of a fit.
    fn fit(&self, stem: &str, more: &[&str]) -> Value {
        let out = self.path("out");
        self.run(&fit_args(text(&out), stem, more));
        json(&out.join(format!("{stem}.json")))["fit"].clone()
    }

    fn cached(&self) -> Vec<PathBuf> {
        let folder = self.path("cache/etascope/features");
        let entries = fs::read_dir(folder).into_iter().flatten();
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        paths
    }
}

/// Arguments of a fit at a stage of the small encoder, into the folder `out` under the name `stem`.
fn fit_args<'a>(out: &'a str, stem: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let args = [
        "fit",
        "--encoder",
        "small",
        "--stage",
        "features.4",
        "--device",
        "cpu",
        "--out",
        out,
        "--stem",
        stem,
    ];
    [&args[..], more].concat()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a temporary path in UTF-8")
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("a sidecar")).expect("JSON")
}

fn rows(path: &Path) -> Vec<Vec<String>> {
    let mut reader = csv::Reader::from_path(path).expect("a table");
    let rows = reader.records().map(|row| row.expect("a row"));
    rows.map(|row| row.iter().map(str::to_owned).collect())
        .collect()
}

/// What was encoded and what was found in the cache.
fn counts(fit: &Value) -> (u64, u64) {
    let number = |key: &str| fit[key].as_u64().expect("a count");
    (number("encoded"), number("found_in_cache"))
}

const HUE: [&str; 2] = ["--manipulation", "hue:60"];

#[test]
fn a_second_fit_encodes_nothing_and_finds_the_same_map() {
    let home = Home::new();
    // Four photographs and their edits.
    let first = home.fit("first", &HUE);
    assert_eq!(counts(&first), (8, 0));
    let second = home.fit("second", &HUE);
    assert_eq!(counts(&second), (0, 8));
    let file = |name: &str| fs::read(home.path("out").join(name)).expect("a file");
    assert!(file("first.safetensors") == file("second.safetensors"));
    assert_eq!(file("first.csv"), file("second.csv"));
    // Another edit shares the unedited photographs; another stage shares nothing.
    let other = home.fit("other", &["--manipulation", "grayscale"]);
    assert_eq!(counts(&other), (4, 4));
    // So does the same name with another recipe for its input.
    let rows = home.path("config/etascope/encoders.toml");
    let text_of_rows = fs::read_to_string(&rows).expect("rows");
    fs::write(&rows, text_of_rows.replace("0.229", "0.230")).expect("rows");
    assert_eq!(counts(&home.fit("recipe", &HUE)), (8, 0));
    fs::write(&rows, text_of_rows).expect("rows");
    let none = home.fit("none", &[&HUE[..], &["--no-cache"]].concat());
    assert_eq!(counts(&none), (8, 0));
    assert_eq!(file("first.csv"), file("none.csv"));
    // The sweep of a photograph of the fit finds both its pictures.
    let out = home.path("out");
    let map = out.join("first.safetensors");
    home.run(&[
        "edit",
        "bundled:coffee",
        "--map",
        text(&map),
        "--device",
        "cpu",
        "--out",
        text(&out),
    ]);
    let sweep = &json(&out.join("edit.json"))["edit"];
    assert_eq!(counts(sweep), (0, 2));
}

#[test]
fn damaged_files_of_the_cache_are_encoded_again_and_mended() {
    let home = Home::new();
    home.fit("first", &HUE);
    let files = home.cached();
    assert_eq!(files.len(), 8);
    let whole = fs::read(&files[0]).expect("a file");
    fs::write(&files[0], &whole[..whole.len() / 2]).expect("a file");
    fs::write(&files[1], "no features").expect("a file");
    // The values of another picture under this name, and one value changed.
    fs::copy(&files[3], &files[2]).expect("a file");
    let mut changed = fs::read(&files[4]).expect("a file");
    *changed.last_mut().expect("a byte") ^= 0x40;
    fs::write(&files[4], changed).expect("a file");
    fs::remove_file(&files[5]).expect("a file");
    let second = home.fit("second", &HUE);
    assert_eq!(counts(&second), (5, 3));
    let table = |name: &str| fs::read(home.path("out").join(name)).expect("a table");
    assert_eq!(table("first.csv"), table("second.csv"));
    assert!(fs::read(&files[0]).expect("a file") == whole);
    assert_eq!(counts(&home.fit("third", &HUE)), (0, 8));
}

#[test]
fn two_processes_fill_one_cache_at_once_and_one_that_is_killed_does_no_harm() {
    let home = Home::new();
    let out = home.path("out");
    let more = [&HUE[..], &["--crops", "60", "--map", "additive", "--quiet"]].concat();
    let start = |stem: &str| -> Child {
        let args = fit_args(text(&out), stem, &more);
        home.command(&args).spawn().expect("the binary starts")
    };
    let mut killed = start("killed");
    // Into the middle of the crops.
    while home.cached().len() < 20 {
        assert!(killed.try_wait().expect("a process").is_none(), "too fast");
        sleep(Duration::from_millis(2));
    }
    killed.kill().expect("SIGKILL");
    killed.wait().expect("an end");
    assert!(!out.join("killed.csv").exists());

    let both = [start("one"), start("two")];
    for process in both {
        let output = process.wait_with_output().expect("an end");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*stderr), (Some(0), ""));
    }
    // Two training photographs of 60 crops and four whole ones, with their edits.
    let pictures = 2 * (2 * 60 + 4);
    assert_eq!(counts(&home.fit("third", &more)), (0, pictures));
    let alone = home.fit("alone", &[&more[..], &["--no-cache"]].concat());
    assert_eq!(counts(&alone), (pictures, 0));
    let file = |stem: &str| fs::read(out.join(format!("{stem}.csv"))).expect("a table");
    for stem in ["one", "two", "third"] {
        assert_eq!(file(stem), file("alone"), "{stem}");
    }
}

#[test]
fn a_small_budget_is_kept_to() {
    let home = Home::new();
    // A map of 128 channels at 15² positions takes 115 kB.
    home.fit(
        "small",
        &[&HUE[..], &["--crops", "30", "--cache-budget", "1"]].concat(),
    );
    let sizes = home
        .cached()
        .iter()
        .map(|path| path.metadata().expect("a file").len())
        .collect::<Vec<_>>();
    let total: u64 = sizes.iter().sum();
    assert!(sizes.len() > 2 && total <= 1 << 20, "{total}: {sizes:?}");
}

#[test]
fn no_crop_of_a_photograph_that_was_held_out_is_fitted_to() {
    let home = Home::new();
    let more = [
        "--crops", "3", "--map", "ridge", "--gamma", "1", "--seed", "5",
    ];
    let split = home.fit("split", &[&HUE[..], &more].concat());
    let of_part = |part: &str| -> Vec<String> {
        let photographs = split["photographs"].as_array().expect("photographs");
        let these = photographs.iter().filter(|photo| photo["part"] == part);
        these
            .map(|photo| format!("bundled:{}", photo["name"].as_str().expect("a name")))
            .collect()
    };
    let train = of_part("train");
    assert_eq!((train.len(), of_part("held-out").len()), (2, 1));
    assert_eq!(split["crops"]["count"], 3);
    // Two photographs with three crops each, at 15² positions.
    let positions = 15 * 15;
    assert_eq!(split["train_vectors"], 8 * positions);
    // The training photographs alone, nothing held out: the same map to the last bit, and so no trace of the others.
    let names: Vec<&str> = train.iter().map(String::as_str).collect();
    let whole = ["--validation", "0", "--held-out", "0"];
    let alone = home.fit("alone", &[&names[..], &HUE, &more, &whole].concat());
    assert_eq!(alone["data_sha256"], split["data_sha256"]);
    let file =
        |stem: &str| fs::read(home.path("out").join(format!("{stem}.safetensors"))).expect("a map");
    assert!(file("alone") == file("split"));
    // All four, as a leak would: another map.
    home.fit("leak", &[&HUE[..], &more, &whole].concat());
    assert!(file("leak") != file("split"));
    // Held out by name instead of by lot: the same map again, and never one that is fitted to as well.
    let last = of_part("held-out").remove(0);
    let named = ["--validation", "0", "--hold-out", &last];
    let named = home.fit("named", &[&names[..], &HUE, &more, &named].concat());
    assert!(file("named") == file("split"));
    assert_eq!(named["photographs"][2]["part"], "held-out");
    let out = home.path("out");
    let both = [&names[..], &HUE, &more, &["--hold-out", names[0]]].concat();
    let refused = home.command(&fit_args(text(&out), "both", &both)).output();
    assert_eq!(refused.expect("the binary starts").status.code(), Some(2));
    // Number and range of the crops are those asked for.
    let [count, scale] = [["--crops", "4"], ["--crop-scale", "0.9,1"]];
    let other = [&names[..], &HUE, &more[2..], &whole, &count, &scale].concat();
    let other = home.fit("other", &other);
    assert_eq!(other["crops"]["scale"], serde_json::json!([0.9, 1.0]));
    assert_eq!(other["train_vectors"], 10 * positions);
}

/// A photograph of the program's own as a PNG file.
fn write_photo(path: &Path, name: &str, change: impl Fn(&mut [u8])) {
    let photo = bundled::open(name).expect("a photograph");
    let mut picture = Picture::from(&photo).rgb().to_vec();
    change(&mut picture);
    let file = fs::File::create(path).expect("a file");
    let mut encoder = png::Encoder::new(file, photo.width, photo.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().expect("a header");
    writer.write_image_data(&picture).expect("pixels");
}

#[test]
fn pairs_of_an_outside_editor_are_fitted_to_like_the_same_edit_made_here() {
    let home = Home::new();
    let (originals, edits) = (home.path("originals"), home.path("edits"));
    for folder in [&originals, &edits] {
        fs::create_dir_all(folder).expect("a folder");
    }
    let darken = |values: &mut [u8]| values.iter_mut().for_each(|value| *value /= 2);
    for name in ["astronaut", "chelsea", "coffee"] {
        let file = format!("{name}.png");
        write_photo(&originals.join(&file), name, |_| ());
        write_photo(&edits.join(&file), name, darken);
    }
    write_photo(&originals.join("alone.png"), "rocket", |_| ());
    fs::write(originals.join("notes.txt"), "").expect("a file");
    let pairs = ["--pairs", text(&originals), "--edits", text(&edits)];
    let closed = ["--map", "additive", "--crops", "2", "--seed", "1"];
    let fit = home.fit("pairs", &[&pairs[..], &closed].concat());
    assert_eq!(fit["pairs"]["found"].as_array().map(Vec::len), Some(3));
    assert_eq!(fit["pairs"]["originals_alone"][0], "alone.png");
    assert_eq!(fit["pairs"]["other_files"][0], "notes.txt");
    assert_eq!(fit["manipulations"], serde_json::json!([]));
    // Half of each grey level is brightness 0.5 up to rounding. Here it is done before the resize, there after it: that is a
    // grey level or so.
    let originals: Vec<PathBuf> = ["astronaut", "chelsea", "coffee"]
        .map(|name| originals.join(format!("{name}.png")))
        .to_vec();
    let photos: Vec<&str> = originals.iter().map(|path| text(path)).collect();
    let edit = ["--manipulation", "brightness:0.5"];
    home.fit("made", &[&photos[..], &edit, &closed].concat());
    let score = |stem: &str, method: &str| -> Vec<f64> {
        let table = rows(&home.path("out").join(format!("{stem}.csv")));
        let these = table.iter().filter(|row| row[2] == method);
        these.map(|row| row[3].parse().expect("a number")).collect()
    };
    for method in ["identity", "map"] {
        let (paired, made) = (score("pairs", method), score("made", method));
        assert_eq!(paired.len(), 3);
        for (paired, made) in paired.iter().zip(&made) {
            assert!(
                (paired - made).abs() < 0.01,
                "{method}: {paired} and {made}"
            );
        }
    }
    // Cut to ranks at a pair: the edit is given, as the map cannot make it.
    home.fit(
        "ranks",
        &[&pairs[..], &["--map", "ridge", "--gamma", "1"]].concat(),
    );
    let out = home.path("out");
    let map = out.join("ranks.safetensors");
    let edited = edits.join("coffee.png");
    let sweep = [
        "edit",
        photos[2],
        "--map",
        text(&map),
        "--ranks",
        "0,128",
        "--device",
        "cpu",
        "--out",
        text(&out),
    ];
    let refused = home.command(&sweep).output().expect("the binary starts");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--edited"));
    home.run(&[&sweep[..], &["--edited", text(&edited)]].concat());
    let table = rows(&out.join("edit.csv"));
    let names: Vec<&str> = table.iter().map(|row| row[1].as_str()).collect();
    assert_eq!(names, ["edit", "edit", "identity", "reorder", "map"]);
}

#[test]
fn every_kind_of_map_is_fitted_and_scored() {
    let home = Home::new();
    let out = home.path("out");
    for (word, name) in [
        ("per-position", "per_position"),
        ("trained-linear", "trained"),
        ("mlp", "trained"),
        ("cnn", "trained"),
        ("transformer", "trained"),
        ("transformer-positions", "trained"),
    ] {
        let more = ["--map", word, "--epochs", "2", "--loss", "mse"];
        let fit = home.fit(word, &[&HUE[..], &more].concat());
        assert_eq!(fit["map"]["name"], name, "{word}");
        assert_eq!(rows(&out.join(format!("{word}.csv"))).len(), 12, "{word}");
        if name == "trained" {
            let history = fit["training"]["history"].as_array().expect("epochs");
            assert_eq!(history.len(), 2, "{word}");
        }
    }
    // A matrix for each position fits each training vector of few photographs, as one for all cannot.
    let linear = home.fit(
        "linear",
        &[&HUE[..], &["--map", "ridge", "--gamma", "1"]].concat(),
    );
    let position = json(&out.join("per-position.json"))["fit"].clone();
    let error = |fit: &Value| {
        let scores = fit["mean_scores"].as_array().expect("scores");
        let found = scores
            .iter()
            .find(|s| s["part"] == "train" && s["method"] == "map");
        found.and_then(|s| s["mse"].as_f64()).expect("an error")
    };
    assert!(error(&position) < 0.1 * error(&linear));
}
