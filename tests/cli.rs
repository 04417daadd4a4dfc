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
        // Neither the encoders of the person who runs the tests nor what was fetched for them.
        .env("XDG_CONFIG_HOME", "/nowhere")
        // No place for a cache: what is tested is computed.
        .env("XDG_CACHE_HOME", "/dev/null/none")
        .env("HF_HOME", "/nowhere")
        .env("TORCH_HOME", "/nowhere")
        .env_remove("HF_HUB_CACHE")
        .env_remove("HF_TOKEN")
        .env_remove("HF_HUB_OFFLINE")
        .env_remove("HF_ENDPOINT")
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
    for word in [
        "profile", "spectrum", "fit", "edit", "devices", "encoders", "IMAGE", "--device",
    ] {
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

/// The bundled SqueezeNet, as a file of somebody.
const SQUEEZENET_FILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/assets/encoders/squeezenet1_1.safetensors"
);

#[test]
fn the_list_says_what_is_here_and_under_which_licence() {
    let table = run(&["encoders", "list"]).stdout;
    assert_eq!(table, run(&["encoders"]).stdout);
    let line = |name: &str| {
        let found = table
            .lines()
            .find(|line| line.split("  ").next() == Some(name));
        let words = found
            .unwrap_or_else(|| panic!("no {name} in:\n{table}"))
            .split("  ");
        words
            .map(str::trim)
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let published = line("resnet50.tv2_in1k");
    assert_eq!(
        published[2..],
        ["224 px", "25.56 M", "102.5 MB", "no", "BSD-3-Clause"]
    );
    assert_eq!(line("squeezenet1_1")[5], "yes");
    let gated = line("dinov3_vitb16.lvd1689m");
    assert!(gated[6].contains("to be accepted first"), "{gated:?}");
}

#[test]
fn an_encoder_is_described() {
    let text = run(&["encoders", "show", "resnet50.tv2_in1k"]).stdout;
    for word in [
        "download.pytorch.org/models/resnet50-11ad3fa6.pth",
        "11ad3fa6…",
        "etascope encoders fetch resnet50.tv2_in1k",
        "shorter side to 232, bilinear; centre crop 224 × 224",
        "layer3 (1024×14×14)",
        "Deep Residual Learning",
        "102.2 MB in memory",
    ] {
        assert!(text.contains(word), "no “{word}” in:\n{text}");
    }
    let json = run(&["encoders", "show", "squeezenet1_1", "--json"]).stdout;
    let encoder: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        (&encoder["installed"], &encoder["gated"]),
        (&Value::Bool(true), &Value::Bool(false))
    );
    assert_fails(
        &run(&["encoders", "show", "resnet51"]),
        2,
        &["resnet51", "what to do"],
    );
}

#[test]
fn a_weight_file_is_checked() {
    let outcome = run(&["encoders", "check", SQUEEZENET_FILE]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    for word in [
        "safetensors, 2.5 MB",
        "52 F16",
        "squeezenet1_1, squeezenet1_1.tv_in1k: all 52 tensors are there in their shapes",
        "--encoder squeezenet1_1 --weights",
    ] {
        assert!(
            outcome.stdout.contains(word),
            "no “{word}” in:\n{}",
            outcome.stdout
        );
    }
    let hash: String = Sha256::digest(fs::read(SQUEEZENET_FILE).expect("it is committed"))
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert!(outcome.stdout.contains(&hash));

    let fits = run(&[
        "encoders",
        "check",
        SQUEEZENET_FILE,
        "--encoder",
        "squeezenet1_1.tv_in1k",
    ]);
    assert_eq!(fits.code, 0, "{}", fits.stderr);
    assert!(
        fits.stdout.contains("fits squeezenet1_1.tv_in1k"),
        "{}",
        fits.stdout
    );
    let other = run(&[
        "encoders",
        "check",
        SQUEEZENET_FILE,
        "--encoder",
        "alexnet.tv_in1k",
    ]);
    assert_eq!(other.code, 4);
    // All that differs on standard output, the sum of it on standard error.
    for line in [
        "  missing        classifier.6.weight",
        "  missing        features.3.weight (the file has features.3.squeeze.weight)",
        "  unknown        features.12.expand3x3.bias",
        "  another shape  features.0.weight is 64×3×3×3, not 64×3×11×11",
    ] {
        assert!(
            other.stdout.contains(line),
            "no “{line}” in:\n{}",
            other.stdout
        );
    }
    for word in [
        "12 tensors missing",
        "48 tensors unknown",
        "nothing was loaded",
    ] {
        assert!(
            other.stderr.contains(word),
            "no “{word}” in:\n{}",
            other.stderr
        );
    }
    let json = run(&["encoders", "check", SQUEEZENET_FILE, "--json"]).stdout;
    let found: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(found["proposals"][0]["encoders"][0], "squeezenet1_1");

    let fixture = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/golden/checkpoints/robustness.ckpt"
    );
    let unknown = run(&["encoders", "check", fixture]);
    assert_eq!(unknown.code, 4);
    assert!(
        unknown.stderr.contains("cannot tell what"),
        "{}",
        unknown.stderr
    );
    assert_fails(
        &run(&["encoders", "check", "/nowhere.pth"]),
        4,
        &["no such file"],
    );
}

#[test]
fn a_file_gives_an_encoder_its_weights() {
    let out = tempfile::tempdir().expect("a folder");
    let args = [
        "profile",
        "bundled:chelsea",
        "--weights",
        SQUEEZENET_FILE,
        "--out",
        text(out.path()),
    ];
    let several = run(&args);
    assert_fails(
        &several,
        2,
        &["several encoders", "squeezenet1_1.tv_in1k", "--encoder"],
    );

    let outcome = run(&[
        "profile",
        "bundled:chelsea",
        "--encoder",
        "squeezenet1_1",
        "--weights",
        SQUEEZENET_FILE,
        "--device",
        "cpu",
        "--pairs",
        "2",
        "--trace",
        "hutch++:2:2",
        "--no-twin",
        "--formats",
        "csv,json",
        "--etas",
        "0.01,1",
        "--out",
        text(out.path()),
    ]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    // The same weights under another name give the same numbers.
    let own = tempfile::tempdir().expect("a folder");
    let more = ["--no-twin", "--formats", "csv", "--etas", "0.01,1"];
    assert_eq!(profile(&["bundled:chelsea"], &more, own.path()).code, 0);
    let r = |folder: &Path| -> Vec<String> {
        let (heading, rows) = rows(&folder.join("profile.csv"));
        let column = heading
            .iter()
            .position(|name| name == "r")
            .expect("a column");
        rows.iter().map(|row| row[column].clone()).collect()
    };
    assert_eq!(r(out.path()), r(own.path()));
    let sidecar = fs::read_to_string(out.path().join("profile.json")).expect("a sidecar");
    assert!(
        sidecar.contains(&format!("squeezenet1_1@{SQUEEZENET_FILE}")),
        "{sidecar}"
    );
}

/// Serves one file, whatever is asked for; answers the address.
fn serve(content: Vec<u8>) -> String {
    use std::io::{BufRead, BufReader, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let lines = BufReader::new(stream.try_clone().expect("a copy")).lines();
            let request: Vec<String> = lines
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
                .collect();
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                content.len()
            );
            if request.first().is_some_and(|line| line.starts_with("GET")) {
                let _ = stream.write_all(&content);
            }
        }
    });
    format!("http://{address}")
}

#[test]
#[cfg(feature = "hub")]
fn a_users_encoder_is_fetched_and_used() {
    let home = tempfile::tempdir().expect("a folder");
    let config = home.path().join("etascope");
    fs::create_dir_all(&config).expect("it can be made");
    let weights = fs::read(SQUEEZENET_FILE).expect("it is committed");
    let hash: String = Sha256::digest(&weights)
        .iter()
        .take(4)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let address = serve(weights);
    let rows = format!(
        "[[encoder]]\nname = \"mine\"\ntitle = \"My net\"\narchitecture = \"squeezenet1_1\"\n\
         licence = \"CC0-1.0\"\nurl = \"{address}/mine-{hash}.safetensors\"\nsha256 = \"{hash}\"\n\
         input = {{ resize = 64, crop = 64, filter = \"bilinear\", mean = [0.5, 0.5, 0.5], std = [0.2, 0.2, 0.2] }}\n"
    );
    fs::write(config.join("encoders.toml"), &rows).expect("it can be written");
    let run = |args: &[&str], offline: bool| -> Outcome {
        let mut command = etascope(args);
        command
            .env("XDG_CONFIG_HOME", home.path())
            .env("TORCH_HOME", home.path().join("torch"));
        if offline {
            command.env("HF_HUB_OFFLINE", "1");
        }
        let Output {
            status,
            stdout,
            stderr,
        } = command.output().expect("the binary starts");
        Outcome {
            code: status.code().expect("it ends by itself"),
            stdout: String::from_utf8(stdout).expect("UTF-8"),
            stderr: String::from_utf8(stderr).expect("UTF-8"),
        }
    };
    let out = home.path().join("out");
    let cheap = [
        "profile",
        "bundled:chelsea",
        "--encoder",
        "mine",
        "--device",
        "cpu",
        "--pairs",
        "2",
        "--trace",
        "hutch++:2:2",
        "--no-twin",
        "--formats",
        "csv",
        "--etas",
        "0.1",
        "--out",
        text(&out),
    ];
    let absent = run(&cheap, false);
    assert_eq!(absent.code, 4, "{}", absent.stderr);
    assert!(
        absent.stderr.contains("etascope encoders fetch mine"),
        "{}",
        absent.stderr
    );
    assert_fails(
        &run(&["encoders", "fetch", "mine"], true),
        4,
        &["HF_HUB_OFFLINE"],
    );

    let dry = run(&["encoders", "fetch", "mine", "--dry-run"], false);
    assert_eq!((dry.code, dry.stdout.as_str()), (0, ""));
    for word in [
        "My net: 2.5 MB",
        "licence: CC0-1.0",
        "torch/hub/checkpoints/mine-",
    ] {
        assert!(dry.stderr.contains(word), "no “{word}” in:\n{}", dry.stderr);
    }
    let fetched = run(&["encoders", "fetch", "mine"], false);
    assert_eq!(fetched.code, 0, "{}", fetched.stderr);
    assert!(
        Path::new(fetched.stdout.trim()).is_file(),
        "{}",
        fetched.stdout
    );
    let again = run(&["encoders", "fetch", "mine"], true);
    assert!(
        again.code == 0 && again.stderr.contains("here already"),
        "{}",
        again.stderr
    );
    let used = run(&cheap, true);
    assert_eq!(used.code, 0, "{}", used.stderr);

    // A damaged file is found out when it is used.
    let path = Path::new(fetched.stdout.trim());
    let mut damaged = fs::read(path).expect("it is there");
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    fs::write(path, damaged).expect("it can be written");
    assert_fails(&run(&cheap, true), 4, &["SHA-256", &hash]);

    fs::write(
        config.join("encoders.toml"),
        rows.replace("licence", "license"),
    )
    .expect("it can be");
    assert_fails(
        &run(&["encoders"], false),
        2,
        &["encoders.toml", "line 5", "license"],
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

/// A configuration folder with the encoder `small`: the bundled SqueezeNet on inputs of 64 px, where a full
/// Jacobian is a matter of seconds.
fn with_small_encoder() -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a folder");
    let config = home.path().join("etascope");
    fs::create_dir_all(&config).expect("it can be made");
    let row = format!(
        "[[encoder]]\nname = \"small\"\ntitle = \"Small\"\narchitecture = \"squeezenet1_1\"\n\
         licence = \"BSD-3-Clause\"\nfile = {SQUEEZENET_FILE:?}\n\
         input = {{ resize = 64, crop = 64, filter = \"bilinear\", mean = [0.485, 0.456, 0.406], \
         std = [0.229, 0.224, 0.225] }}\n"
    );
    fs::write(config.join("encoders.toml"), row).expect("it can be written");
    home
}

/// The program with the encoders of a configuration folder.
fn run_at(home: &Path, args: &[&str]) -> Outcome {
    let Output {
        status,
        stdout,
        stderr,
    } = etascope(args)
        .env("XDG_CONFIG_HOME", home)
        .output()
        .expect("the binary starts");
    Outcome {
        code: status.code().expect("it ends by itself"),
        stdout: String::from_utf8(stdout).expect("UTF-8"),
        stderr: String::from_utf8(stderr).expect("UTF-8"),
    }
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("a sidecar")).expect("JSON")
}

#[test]
fn a_spectrum_is_written_as_table_sidecar_and_figures() {
    let home = with_small_encoder();
    let out = home.path().join("out");
    let at = ["--encoder", "small", "--device", "cpu", "--out", text(&out)];
    let exact = [&["spectrum", "bundled:chelsea"], &at[..]].concat();
    let outcome = run_at(home.path(), &exact);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    // A heading, the encoder, its twin.
    assert_eq!(outcome.stdout.lines().count(), 3, "{}", outcome.stdout);

    let (heading, table) = rows(&out.join("spectrum.csv"));
    assert_eq!(
        heading.join(","),
        "image,encoder,weights,readout,index,sigma,error"
    );
    // The pooled feature of SqueezeNet has 512 values.
    assert_eq!(table.len(), 2 * 512);
    let sidecar = json(&out.join("spectrum.json"));
    let sigmas = |table: &[Vec<String>]| -> Vec<f64> {
        let numbers = table.iter().map(|row| row[5].parse().expect("a number"));
        numbers.collect()
    };
    let mut traces = Vec::new();
    for (at, (weights, table)) in ["trained", "random"]
        .iter()
        .zip(table.chunks(512))
        .enumerate()
    {
        for (i, row) in table.iter().enumerate() {
            assert_eq!(
                row[..5],
                ["chelsea", "small", weights, "pooled", &(i + 1).to_string()]
            );
            assert_eq!(row[6], "", "an exact value has no bound");
        }
        let sigma = sigmas(table);
        assert!(sigma.is_sorted_by(|a, b| a >= b) && sigma[0] > 0.0);
        let energy: f64 = sigma.iter().map(|s| s * s).sum();
        traces.push(energy);
        // The sidecar's read-outs by their definitions, from the table.
        let entry = &sidecar["spectra"][at];
        let read = &entry["readouts"];
        let share = |count: usize| sigma[..count].iter().map(|s| s * s).sum::<f64>() / energy;
        let entropy: f64 = sigma
            .iter()
            .map(|s| s * s / energy)
            .filter(|&p| p > 0.0)
            .map(|p| -p * p.ln())
            .sum();
        for (key, expected) in [
            ("entropy_nats", entropy),
            ("effective_rank", entropy.exp()),
            ("stable_rank", energy / (sigma[0] * sigma[0])),
            ("energy_top_1", share(1)),
            ("energy_top_5", share(5)),
            ("energy_top_10", share(10)),
        ] {
            let found = read[key].as_f64().expect(key);
            assert!(
                (found / expected - 1.0).abs() < 1e-9,
                "{key}: {found} against {expected}"
            );
        }
        assert_eq!(entry["weights"]["kind"], *weights);
        assert_eq!(entry["cost"]["vjps"], 512);
        assert_eq!(entry["exact"], true);
    }
    let svg = fs::read_to_string(out.join("spectrum.svg")).expect("a figure");
    resvg::usvg::Tree::from_str(&svg, &resvg::usvg::Options::default()).expect("SVG");
    assert!(svg.contains("stroke-dasharray"), "the twin is dashed");
    image::open(out.join("spectrum.png")).expect("a figure");

    // Σσ² = tr(JᵀJ), which a profile finds from sums of squares without any spectrum.
    let profile = [
        &[
            "profile",
            "bundled:chelsea",
            "--trace",
            "exact",
            "--pairs",
            "8",
            "--etas",
            "0.1",
            "--formats",
            "json",
        ],
        &at[..],
    ]
    .concat();
    assert_eq!(run_at(home.path(), &profile).code, 0);
    let profile = json(&out.join("profile.json"));
    for (i, energy) in traces.iter().enumerate() {
        let trace = profile["runs"][i]["trace_jtj"].as_f64().expect("a trace");
        // Rows are kept in f32.
        assert!((energy / trace - 1.0).abs() < 1e-5, "{energy} and {trace}");
    }

    // The leading part agrees within its own bounds, and is not read as if it were the whole.
    let leading = [
        &exact[..],
        &["--leading", "4", "--no-twin", "--stem", "part"],
    ]
    .concat();
    let outcome = run_at(home.path(), &leading);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let (_, part) = rows(&out.join("part.csv"));
    assert_eq!(part.len(), 4);
    let whole = sigmas(&table[..4]);
    for ((row, found), whole) in part.iter().zip(sigmas(&part)).zip(&whole) {
        let bound: f64 = row[6].parse().expect("a bound");
        assert!(
            (found - whole).abs() <= bound + 1e-6 * whole,
            "{found} is not within {bound} of {whole}"
        );
        assert!(bound < 0.2 * whole, "the bound {bound} says little");
    }
    assert_eq!(
        json(&out.join("part.json"))["spectra"][0]["readouts"],
        Value::Null
    );
}

#[test]
fn a_spectrum_that_cannot_be_had_is_refused_before_any_work() {
    let out = tempfile::tempdir().expect("a folder");
    let spectrum = |more: &[&str]| {
        let args = [
            "spectrum",
            "absent.png",
            "--encoder",
            "squeezenet1_1",
            "--device",
            "cpu",
            "--out",
            text(out.path()),
        ];
        run(&[&args[..], more].concat())
    };
    // 64 × 111² values of the first stage are no rows of a matrix that fits.
    assert_fails(
        &spectrum(&["--readout", "stage:features.0"]),
        2,
        &["whole singular spectrum", "leading"],
    );
    assert_fails(&spectrum(&["--readout", "stage:nowhere"]), 2, &["nowhere"]);
    assert_fails(&spectrum(&["--stem", "a/b"]), 2, &["a/b"]);
    assert_fails(&spectrum(&[]), 3, &["absent.png", "nothing was written"]);
    let both = spectrum(&["--exact", "--leading", "3"]);
    assert_eq!(both.code, 2);
    assert!(both.stderr.contains("cannot be used with"));
    assert_eq!(fs::read_dir(out.path()).expect("the folder").count(), 0);
}

/// Number in a column of the row that `is_it` finds.
fn found(table: &[Vec<String>], is_it: impl Fn(&[String]) -> bool, column: usize) -> f64 {
    let row = table.iter().find(|row| is_it(row)).expect("such a row");
    row[column].parse().expect("a number")
}

#[test]
fn a_map_is_fitted_scored_and_cut_to_ranks() {
    let home = with_small_encoder();
    let out = home.path().join("out");
    let at = ["--device", "cpu", "--out", text(&out)];
    let fit = |more: &[&str]| {
        let args = [
            "fit",
            "--encoder",
            "small",
            "--stage",
            "features.4",
            "--manipulation",
            "hue:60",
            "--seed",
            "5",
        ];
        run_at(home.path(), &[&args[..], &at[..], more].concat())
    };
    let outcome = fit(&["--map", "linear", "--raw"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    let (heading, table) = rows(&out.join("map.csv"));
    assert_eq!(
        heading.join(","),
        "photograph,part,method,mdncs_features,mean_cosine,mse"
    );
    // Four bundled photographs, three methods.
    assert_eq!(table.len(), 12);
    let count = |part: &str| table.iter().filter(|row| row[1] == part).count() / 3;
    assert_eq!(
        [count("train"), count("validation"), count("held-out")],
        [2, 1, 1]
    );
    let sum = |table: &[Vec<String>], part: &str, method: &str| -> f64 {
        let rows = table
            .iter()
            .filter(|row| row[1] == part && row[2] == method);
        rows.map(|row| row[5].parse::<f64>().expect("a number"))
            .sum()
    };
    // Least squares: no affine map, such as the identity, has a smaller error on the training vectors.
    let (mapped, unmapped) = (
        sum(&table, "train", "map"),
        sum(&table, "train", "identity"),
    );
    assert!(mapped < 0.5 * unmapped, "{mapped} and {unmapped}");
    // A change of hue turns nothing.
    for rows in table.chunks(3) {
        assert_eq!(rows[0][3..], rows[1][3..]);
    }
    let sidecar = json(&out.join("map.json"));
    let fitted = &sidecar["fit"];
    assert_eq!(
        (&fitted["manipulations"][0], &fitted["seed"]),
        (&Value::from("hue:60"), &Value::from(5))
    );
    for matrix in ["w", "edit"] {
        let values = fitted["spectra"][matrix]["values"]
            .as_array()
            .expect("values");
        let values: Vec<f64> = values
            .iter()
            .map(|value| value.as_f64().expect("σ"))
            .collect();
        assert_eq!(values.len(), 128, "{matrix}");
        let energy: f64 = values.iter().map(|v| v * v).sum();
        let stable = fitted["spectra"][matrix]["readouts"]["stable_rank"]
            .as_f64()
            .expect("a rank");
        assert!((stable * values[0] * values[0] / energy - 1.0).abs() < 1e-9);
    }
    assert!(out.join("map.svg").exists() && out.join("map.png").exists());

    // The map at every rank, on the photograph that was held out.
    let held_out = &table.iter().find(|row| row[1] == "held-out").expect("one")[0];
    let photo = format!("bundled:{held_out}");
    let map = out.join("map.safetensors");
    let edit = |map: &Path, more: &[&str]| {
        let args = ["edit", &photo, "--map", text(map)];
        run_at(home.path(), &[&args[..], &at[..], more].concat())
    };
    let outcome = edit(&map, &["--ranks", "0,1,8,128,8", "--cut", "edit,w"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    let (heading, sweep) = rows(&out.join("edit.csv"));
    assert_eq!(
        heading.join(","),
        "image,cut,rank,mdncs_features,mdncs_features_masked,energy_kept,mse_features,mse_picture,ssim,lpips"
    );
    let ranks: Vec<String> = sweep
        .iter()
        .map(|row| format!("{} {}", row[1], row[2]))
        .collect();
    assert_eq!(
        ranks.join(","),
        "edit 0,edit 1,edit 8,edit 128,w 0,w 1,w 8,w 128,identity ,reorder ,map "
    );
    let full = found(&sweep, |row| row[1] == "map", 3);
    for cut in ["edit", "w"] {
        let at = |rank: &str, column| found(&sweep, |row| row[1] == cut && row[2] == rank, column);
        // At full rank nothing is cut; features are rounded to f32.
        assert!((at("128", 3) - full).abs() < 1e-5, "{cut}");
        assert!((at("128", 5) - 1.0).abs() < 1e-12 && at("0", 5) == 0.0);
        assert!(at("1", 5) < at("8", 5));
    }
    // The same comparisons as the fit made there.
    for (method, name) in [("map", "map"), ("identity", "identity")] {
        let scored = found(&table, |row| row[1] == "held-out" && row[2] == method, 3);
        let swept = found(&sweep, |row| row[1] == name, 3);
        assert!((scored - swept).abs() < 1e-6, "{method}");
    }
    let hash: String = Sha256::digest(fs::read(&map).expect("a map"))
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(json(&out.join("edit.json"))["edit"]["map"]["sha256"], hash);
    assert!(out.join("edit.svg").exists() && out.join("edit.png").exists());
    let beyond = edit(&map, &["--ranks", "129"]);
    assert_fails(&beyond, 2, &["rank 129", "128 × 128"]);

    // γ chosen on the validation photograph has the least error there.
    let outcome = fit(&["--stem", "ridge", "--formats", "json"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let fitted = &json(&out.join("ridge.json"))["fit"];
    let list = |key: &str| -> Vec<f64> {
        let values = fitted["gamma_choice"][key].as_array().expect("a list");
        values
            .iter()
            .map(|value| value.as_f64().expect("γ"))
            .collect()
    };
    let (candidates, errors) = (list("candidates"), list("validation_mse"));
    let chosen = fitted["map"]["gamma"].as_f64().expect("γ");
    let place = candidates.iter().position(|&gamma| gamma == chosen);
    let place = place.expect("one of those that were tried");
    assert!(errors.iter().all(|&error| error >= errors[place]));

    // A map without a matrix has neither spectra nor ranks.
    assert_eq!(fit(&["--stem", "shift", "--map", "additive"]).code, 0);
    assert!(out.join("shift.csv").exists() && !out.join("shift.svg").exists());
    // The edit operator cut to rank 0 moves every vector by the mean displacement, as the additive map does.
    let (_, shifted) = rows(&out.join("shift.csv"));
    let shift = found(&shifted, |row| row[1] == "held-out" && row[2] == "map", 3);
    let none = found(&sweep, |row| row[1] == "edit" && row[2] == "0", 3);
    assert!((shift - none).abs() < 1e-5, "{shift} and {none}");
    let shift = out.join("shift.safetensors");
    assert_fails(
        &edit(&shift, &["--ranks", "1"]),
        2,
        &["additive", "no matrix"],
    );
    // What it makes of a photograph is compared all the same.
    assert_eq!(edit(&shift, &["--stem", "shifted"]).code, 0);
    assert_eq!(rows(&out.join("shifted.csv")).1.len(), 3);
    // This encoder has no decoder.
    let grid = out.join("grid.png");
    assert_fails(
        &edit(&map, &["--grid", text(&grid)]),
        2,
        &["no decoder", "blocks.2"],
    );
}

#[test]
fn a_mirrored_photograph_is_followed_by_the_reorder() {
    let home = with_small_encoder();
    let out = home.path().join("out");
    let fit = |edits: &[&str]| {
        let args = [
            "fit",
            "bundled:chelsea",
            "bundled:coffee",
            "bundled:astronaut",
            "--encoder",
            "small",
            "--stage",
            "features.4",
            "--map",
            "identity",
            "--device",
            "cpu",
            "--out",
            text(&out),
        ];
        let outcome = run_at(home.path(), &[&args[..], edits].concat());
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
        rows(&out.join("map.csv")).1
    };
    let mirror = ["--manipulation", "mirror:horizontal"];
    let table = fit(&mirror);
    let sum = |method: &str| -> f64 {
        let rows = table.iter().filter(|row| row[2] == method);
        rows.map(|row| row[3].parse::<f64>().expect("a number"))
            .sum()
    };
    // No network is quite the same from both sides: the reorder helps on the whole, and not everywhere.
    assert!(sum("reorder") > sum("identity") + 0.1, "{table:?}");
    for rows in table.chunks(3) {
        // The identity of a fit is applied after the reorder.
        assert_eq!(rows[1][3..], rows[2][3..]);
    }
    // Two mirrors undo each other, in the picture and on the grid.
    for row in fit(&[mirror, mirror].concat()) {
        let score: f64 = row[3].parse().expect("a number");
        assert!((score - 1.0).abs() < 1e-12 && row[5] == "0.0", "{row:?}");
    }
}

#[test]
fn a_fit_that_cannot_be_made_is_refused() {
    let home = tempfile::tempdir().expect("a folder");
    let empty = home.path().join("empty");
    fs::create_dir(&empty).expect("a folder");
    let out = home.path().join("out");
    let fit = |more: &[&str]| {
        let args = [
            "fit",
            "--encoder",
            "squeezenet1_1",
            "--manipulation",
            "hue:60",
            "--device",
            "cpu",
            "--out",
            text(&out),
        ];
        run(&[&args[..], more].concat())
    };
    assert_fails(&fit(&["--stage", "nowhere"]), 2, &["nowhere", "features."]);
    let stage = ["--stage", "features.4"];
    let with = |more: &[&str]| fit(&[&stage[..], more].concat());
    assert_fails(
        &with(&["--map", "linear", "--gamma", "1"]),
        2,
        &["--gamma", "no penalty"],
    );
    assert_fails(&with(&[text(&empty)]), 3, &["no picture"]);
    assert_fails(&with(&["bundled:chelsea"]), 2, &["split the photographs"]);
    assert_fails(&with(&["absent.png"]), 3, &["absent.png"]);
    assert!(!out.exists());
    let missing = home.path().join("none.safetensors");
    let edit = [
        "edit",
        "bundled:chelsea",
        "--map",
        text(&missing),
        "--out",
        text(&out),
    ];
    assert_fails(&run(&edit), 4, &["none.safetensors"]);
}

#[test]
fn a_bug_report_names_version_devices_and_places_without_touching_anything() {
    let outcome = run(&["info"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    for part in [
        env!("CARGO_PKG_VERSION"),
        "cpu (flex)",
        "/nowhere",
        "settings.json",
        "encoders.toml",
    ] {
        assert!(outcome.stdout.contains(part), "{part}: {}", outcome.stdout);
    }
    let outcome = run(&["info", "--json"]);
    let info: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    assert_eq!(info["version"], env!("CARGO_PKG_VERSION"));
    assert!(
        info["devices"]
            .as_array()
            .is_some_and(|devices| !devices.is_empty())
    );
}

#[test]
fn completions_and_manual_pages_know_every_subcommand() {
    let subcommands = [
        "profile", "spectrum", "fit", "edit", "devices", "encoders", "info",
    ];
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let outcome = run(&["completions", shell]);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        for subcommand in subcommands {
            assert!(outcome.stdout.contains(subcommand), "{shell}: {subcommand}");
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let pages = folder.path().join("new/man1");
    let outcome = run(&["man", &pages.display().to_string()]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let page = |name: &str| std::fs::read_to_string(pages.join(name)).expect("a page");
    let main = page("etascope.1");
    assert!(
        main.starts_with(".ie") && main.contains(".TH etascope 1"),
        "{main}"
    );
    for subcommand in subcommands {
        assert!(page(&format!("etascope-{subcommand}.1")).contains(subcommand));
    }
    assert_fails(
        &run(&["man", "/dev/null/below"]),
        6,
        &["manual pages", "/dev/null/below"],
    );
}
