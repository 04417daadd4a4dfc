//! The program as a user of the command line meets it: the built binary, its two streams, its exit
//! codes and the files that it writes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use sha2::{Digest, Sha256};

const SCALES: usize = 17;

/// The binary without a display and without settings of the person who runs the tests.
fn etascope(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_etascope"));
    command
        .args(args)
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .env_remove("WAYLAND_SOCKET")
        // Without it the Wayland library, which Vulkan drivers ask for screens, complains.
        .env("XDG_RUNTIME_DIR", std::env::temp_dir())
        .env_remove("RUST_LOG");
    command
}

struct Outcome {
    code: i32,
    stdout: String,
    stderr: String,
}

fn run(args: &[&str]) -> Outcome {
    let Output {
        status,
        stdout,
        stderr,
    } = etascope(args).output().expect("the binary starts");
    Outcome {
        code: status.code().expect("it ends by itself"),
        stdout: String::from_utf8(stdout).expect("UTF-8"),
        stderr: String::from_utf8(stderr).expect("UTF-8"),
    }
}

/// Asserts a failure told in full on standard error, with nothing on standard output.
fn assert_fails(outcome: &Outcome, code: i32, words: &[&str]) {
    let Outcome { stdout, stderr, .. } = outcome;
    assert_eq!(outcome.code, code, "{stderr}");
    assert_eq!(stdout, "");
    for word in words {
        assert!(stderr.contains(word), "no “{word}” in:\n{stderr}");
    }
    for part in ["error: ", "\n  why: "] {
        assert!(stderr.contains(part), "no “{part}” in:\n{stderr}");
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a temporary path in UTF-8")
}

/// Options of the cheapest profile that still is one: few pairs, a small sketch of the trace.
const CHEAP: [&str; 8] = [
    "--encoder",
    "squeezenet1_1",
    "--device",
    "cpu",
    "--pairs",
    "2",
    "--trace",
    "hutch++:2:2",
];

fn profile(images: &[&str], more: &[&str], out: &Path) -> Outcome {
    let args = [&["profile"], images, &CHEAP, &["--out", text(out)], more].concat();
    run(&args)
}

/// Rows of a CSV file as maps would be, in the order of the file.
fn rows(path: &Path) -> (Vec<String>, Vec<Vec<String>>) {
    let mut reader = csv::Reader::from_path(path).expect("a table");
    let cells = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect();
    let heading = cells(reader.headers().expect("a heading"));
    let rows = reader
        .records()
        .map(|row| cells(&row.expect("a row")))
        .collect();
    (heading, rows)
}

#[test]
fn help_names_every_subcommand_and_goes_to_standard_output() {
    let outcome = run(&["--help"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    for word in ["profile", "devices", "encoders", "IMAGE", "--device"] {
        assert!(outcome.stdout.contains(word), "{word}");
    }
    let outcome = run(&["profile", "--help"]);
    assert_eq!(outcome.code, 0);
    for word in [
        "--readout",
        "--family",
        "--preset",
        "--no-twin",
        "--background",
        "bundled:NAME",
    ] {
        assert!(outcome.stdout.contains(word), "{word}");
    }
}

#[test]
fn the_version_is_the_packages() {
    let outcome = run(&["--version"]);
    assert_eq!(
        outcome.stdout,
        concat!("etascope ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn wrong_usage_ends_with_2_on_standard_error() {
    for args in [
        &["profile"] as &[&str],
        &["profile", "a.png", "--encoder", "squeezenet1_1"],
        &[
            "profile",
            "a.png",
            "--encoder",
            "squeezenet1_1",
            "--out",
            "x",
            "--pairs",
            "0",
        ],
        &[
            "profile",
            "a.png",
            "--encoder",
            "squeezenet1_1",
            "--out",
            "x",
            "--family",
            "pink",
        ],
        &["--no-such-option"],
    ] {
        let outcome = run(args);
        assert_eq!(outcome.code, 2, "{args:?}");
        assert_eq!(outcome.stdout, "", "{args:?}");
        assert!(
            outcome.stderr.contains("error:"),
            "{args:?}: {}",
            outcome.stderr
        );
    }
}

#[test]
fn devices_list_the_processor_and_name_software_adapters() {
    let outcome = run(&["devices", "--json"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    let devices: Vec<Value> = serde_json::from_str(&outcome.stdout).expect("JSON");
    assert!(
        devices
            .iter()
            .any(|device| device["name"] == "cpu" && device["software"] == false)
    );
    for device in &devices {
        let name = device["name"].as_str().expect("a name");
        // Mesa's name for its rasteriser on the processor.
        if name.contains("llvmpipe") {
            assert_eq!(device["software"], true, "{name}");
        }
    }
    let table = run(&["devices"]).stdout;
    for device in &devices {
        assert!(
            table.contains(device["name"].as_str().expect("a name")),
            "{table}"
        );
    }
}

#[test]
fn encoders_are_described() {
    let outcome = run(&["encoders", "--json"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    let encoders: Vec<Value> = serde_json::from_str(&outcome.stdout).expect("JSON");
    // Published sizes: 4.65 million parameters in the Lite0 model card, 1.24 million in torchvision's
    // documentation of SqueezeNet 1.1.
    for (name, millions) in [("efficientnet_lite0", 4.65), ("squeezenet1_1", 1.24)] {
        let encoder = encoders
            .iter()
            .find(|e| e["name"] == name)
            .expect("a bundled encoder");
        let parameters = encoder["parameters"].as_f64().expect("a count");
        assert!(
            (parameters / 1e6 - millions).abs() < 0.005,
            "{name}: {parameters}"
        );
    }
    let table = run(&["encoders"]).stdout;
    assert!(
        table.contains("EfficientNet-Lite0") && table.contains("SqueezeNet 1.1"),
        "{table}"
    );
}

#[test]
fn without_a_display_the_window_names_the_headless_command() {
    assert_fails(&run(&[]), 2, &["window", "etascope profile"]);
    assert_fails(
        &run(&["bundled:chelsea", "--device", "cpu"]),
        2,
        &["etascope profile"],
    );
}

#[test]
fn an_unknown_encoder_is_answered_with_the_known_ones() {
    let out = tempfile::tempdir().expect("a folder");
    let args = [
        "profile",
        "bundled:chelsea",
        "--encoder",
        "squeezenet",
        "--out",
        text(out.path()),
    ];
    assert_fails(&run(&args), 2, &["squeezenet", "squeezenet1_1"]);
    assert_fails(
        &run(&["--encoder", "resnet"]),
        2,
        &["resnet", "efficientnet_lite0"],
    );
}

#[test]
fn an_unknown_stage_is_answered_with_the_known_ones() {
    let out = tempfile::tempdir().expect("a folder");
    let outcome = profile(
        &["bundled:chelsea"],
        &["--readout", "stage:nowhere"],
        out.path(),
    );
    assert_fails(&outcome, 2, &["nowhere", "features."]);
}

#[test]
fn an_unknown_device_is_refused_with_a_way_out() {
    let out = tempfile::tempdir().expect("a folder");
    let args = [
        "profile",
        "bundled:chelsea",
        "--encoder",
        "squeezenet1_1",
        "--out",
        text(out.path()),
        "--device",
        "an adapter that nobody built",
    ];
    assert_fails(
        &run(&args),
        5,
        &["an adapter that nobody built", "what to do"],
    );
    assert_eq!(fs::read_dir(out.path()).expect("the folder").count(), 0);
}

#[test]
fn a_folder_that_cannot_be_written_is_refused_before_any_work() {
    let home = tempfile::tempdir().expect("a folder");
    let file = home.path().join("file");
    fs::write(&file, "").expect("a file");
    // Not even the photograph has to exist for this to be said.
    let outcome = profile(&["absent.png"], &[], &file.join("out"));
    assert_fails(&outcome, 6, &["file/out", "--out"]);
}

#[test]
fn a_profile_is_written_as_table_sidecar_and_figures() {
    let home = tempfile::tempdir().expect("a folder");
    let out = home.path().join("made by the program");
    let outcome = profile(&["bundled:chelsea"], &["--seed", "3"], &out);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    // The summary: a heading, the encoder, its twin.
    assert_eq!(outcome.stdout.lines().count(), 3, "{}", outcome.stdout);

    let (heading, rows) = rows(&out.join("profile.csv"));
    assert_eq!(
        heading.join(","),
        "image,encoder,weights,eta_l2,eta_grey_rms,r,r_se,displacement_sq,prediction_sq,directions,\
         reliable"
    );
    assert_eq!(rows.len(), 2 * SCALES);
    let number = |row: &[String], column: usize| -> f64 { row[column].parse().expect("a number") };
    for (weights, rows) in ["trained", "random"].iter().zip(rows.chunks(SCALES)) {
        for row in rows {
            assert_eq!(row[2], *weights);
            assert_eq!(row[9], "4", "two pairs are four directions");
            // The definition of r for the estimator without correction holds to its own error.
            let ratio = number(row, 7) / number(row, 8);
            assert!(ratio.is_finite() && number(row, 5).is_finite());
        }
        let etas: Vec<f64> = rows.iter().map(|row| number(row, 3)).collect();
        assert!(etas.is_sorted());
        // The paper's ladder spans four decades and keeps the amplitude of a pixel: η / √d is the
        // same at every input side, 66 grey levels at its end.
        assert!((etas[SCALES - 1] / etas[0] - 1e4).abs() < 1e-6);
        assert!((number(&rows[SCALES - 1], 4) - 65.7).abs() < 0.2);
        // Small perturbations are linear: the plateau is 1 to within the error of two pairs, which
        // the control variate makes small there.
        assert!(
            (number(&rows[0], 5) - 1.0).abs() < 0.1,
            "{weights}: r = {}",
            rows[0][5]
        );
    }

    let sidecar = fs::read_to_string(out.join("profile.json")).expect("a sidecar");
    let _: Value = serde_json::from_str(&sidecar).expect("JSON");
    let photo = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/photos/chelsea.png");
    let digest = Sha256::digest(fs::read(photo).expect("the photograph"));
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    for word in [
        digest.as_str(),
        env!("CARGO_PKG_VERSION"),
        "squeezenet1_1",
        "\"seed\": 3",
        "cpu",
    ] {
        assert!(sidecar.contains(word), "no {word} in the sidecar");
    }

    let svg = fs::read_to_string(out.join("profile.svg")).expect("a figure");
    let tree = resvg::usvg::Tree::from_str(&svg, &resvg::usvg::Options::default()).expect("SVG");
    let png = image::open(out.join("profile.png")).expect("a figure");
    let (aspect_svg, aspect_png) = (
        f64::from(tree.size().width() / tree.size().height()),
        f64::from(png.width()) / f64::from(png.height()),
    );
    // Both are the same figure; sides of the PNG are whole pixels.
    assert!((aspect_svg / aspect_png - 1.0).abs() < 0.01);
    let pixels = png.to_luma8();
    assert!(pixels.pixels().any(|p| p.0[0] < 64) && pixels.pixels().any(|p| p.0[0] > 240));
}

#[test]
fn the_same_seed_gives_the_same_table() {
    let out = tempfile::tempdir().expect("a folder");
    let more = |stem: &'static str, seed: &'static str| {
        [
            "--etas",
            "0.5,5",
            "--no-twin",
            "--formats",
            "csv",
            "--stem",
            stem,
            "--seed",
            seed,
        ]
    };
    for (stem, seed) in [("a", "7"), ("b", "7"), ("c", "8")] {
        assert_eq!(
            profile(&["bundled:coffee"], &more(stem, seed), out.path()).code,
            0
        );
    }
    let read = |stem: &str| fs::read(out.path().join(format!("{stem}.csv"))).expect("a table");
    assert_eq!(read("a"), read("b"));
    assert_ne!(read("a"), read("c"));
    // Only what was asked for is written.
    assert_eq!(fs::read_dir(out.path()).expect("the folder").count(), 3);
}

#[test]
fn a_photograph_that_fails_is_reported_and_the_others_go_on() {
    let home = tempfile::tempdir().expect("a folder");
    let broken = home.path().join("broken.png");
    fs::write(&broken, "no picture").expect("a file");
    let out = home.path().join("out");
    let outcome = profile(
        &[
            "bundled:chelsea",
            text(&broken),
            "absent.png",
            "bundled:coffee",
        ],
        &["--etas", "0.5,5", "--no-twin"],
        &out,
    );
    // The code of a photograph that cannot be read.
    assert_eq!(outcome.code, 3, "{}", outcome.stderr);
    for word in ["broken.png", "absent.png", "2 requests failed"] {
        assert!(
            outcome.stderr.contains(word),
            "no “{word}” in:\n{}",
            outcome.stderr
        );
    }
    let (_, rows) = rows(&out.join("profile.csv"));
    assert_eq!(rows.len(), 4);
    assert!(
        rows[0][0].contains("chelsea") && rows[3][0].contains("coffee"),
        "{rows:?}"
    );
    assert!(out.join("profile.svg").exists() && out.join("profile.png").exists());
}

#[test]
fn a_twin_that_fails_leaves_the_trained_profile() {
    let out = tempfile::tempdir().expect("a folder");
    // Far out both networks are linear and the twin's slope is some hundred times larger: at this η
    // its features exceed the largest f32, those of the trained network do not.
    let more = ["--etas", "1,1e36", "--formats", "csv,json"];
    let outcome = profile(&["bundled:chelsea"], &more, out.path());
    assert_eq!(outcome.code, 7, "{}", outcome.stderr);
    for word in [
        "chelsea, squeezenet1_1 (random)",
        "not a finite number",
        "the files lack some profiles",
    ] {
        assert!(
            outcome.stderr.contains(word),
            "no “{word}” in:\n{}",
            outcome.stderr
        );
    }
    let (_, rows) = rows(&out.path().join("profile.csv"));
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row[2] == "trained"), "{rows:?}");
}

#[test]
fn photographs_of_the_same_name_are_told_apart_by_their_folders() {
    let home = tempfile::tempdir().expect("a folder");
    let photos = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/photos");
    let paths = [("a", "chelsea"), ("b", "coffee")].map(|(folder, photo)| {
        let folder = home.path().join(folder);
        fs::create_dir(&folder).expect("a folder");
        let path = folder.join("cat.png");
        fs::copy(photos.join(format!("{photo}.png")), &path).expect("a copy");
        path
    });
    let out = home.path().join("out");
    let more = ["--etas", "1", "--no-twin", "--formats", "csv,json"];
    let outcome = profile(&paths.each_ref().map(|path| text(path)), &more, &out);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let (_, rows) = rows(&out.join("profile.csv"));
    let names: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
    let expected = [
        Path::new("a").join("cat.png"),
        Path::new("b").join("cat.png"),
    ];
    assert_eq!(names, expected.each_ref().map(|path| text(path)));
    let sidecar = fs::read_to_string(out.join("profile.json")).expect("a sidecar");
    let sidecar: Value = serde_json::from_str(&sidecar).expect("JSON");
    assert_eq!(sidecar["runs"][1]["image"]["name"], names[1]);
    // The terminal's table as well.
    assert!(outcome.stdout.contains(names[0]), "{}", outcome.stdout);
}

#[test]
fn nothing_is_written_where_every_photograph_fails() {
    let home = tempfile::tempdir().expect("a folder");
    let out = home.path().join("out");
    let outcome = profile(&["absent.png"], &[], &out);
    assert_fails(&outcome, 3, &["absent.png", "nothing was written"]);
    assert!(!out.exists());
}

#[test]
fn quiet_means_no_output_at_all() {
    let out = tempfile::tempdir().expect("a folder");
    let more = ["--etas", "1", "--no-twin", "--formats", "csv", "--quiet"];
    let outcome = profile(&["bundled:chelsea"], &more, out.path());
    assert_eq!(
        (
            outcome.code,
            outcome.stdout.as_str(),
            outcome.stderr.as_str()
        ),
        (0, "", "")
    );
}
