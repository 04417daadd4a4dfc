//! Table, sidecar, figure and files of profiles.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use etascope::ErrorKind;
use etascope::encoders::Readout;
use etascope::figure::spec::{Dash, Guide, Ink, Scale};
use etascope::figure::{Figure, Series};
use etascope::geometry::directions::DirectionFamily;
use etascope::geometry::profile::{Basis, Cost};
use etascope::geometry::{Profile, ScaleEstimate, Summary};
use etascope::recipe::{ProfileRecipe, WeightsKind, grey_rms};
use etascope::report::{
    COLUMNS, Content, Export, ExportFormat, FigureOptions, ProfileRun, csv, figure, quartiles,
    sidecar, write,
};

const SIDE_PX: usize = 224;
const INPUT_LEN: usize = 3 * SIDE_PX * SIDE_PX;
const MEAN_JVP_SQ: f64 = 0.29;

/// A run whose r is `r(η)`, with odd numbers that do not survive careless rounding.
fn run(image: &str, encoder: &str, weights: WeightsKind, r: impl Fn(f64) -> f64) -> ProfileRun {
    let recipe = ProfileRecipe::interactive(encoder, weights, SIDE_PX);
    let scales: Vec<ScaleEstimate> = recipe
        .etas_l2
        .iter()
        .enumerate()
        .map(|(index, &eta_l2)| ScaleEstimate {
            eta_l2,
            eta_grey_rms: grey_rms(eta_l2, INPUT_LEN),
            r: r(eta_l2),
            r_se: r(eta_l2) / 77.0,
            displacement_sq: r(eta_l2) * eta_l2.powi(2) * MEAN_JVP_SQ,
            prediction_sq: eta_l2.powi(2) * MEAN_JVP_SQ,
            directions: 2 * (64 - index),
            reliable: index > 1,
            basis: Basis::Trace,
        })
        .collect();
    let singles = [0.9, 1.1].map(|factor| scales.iter().map(|s| factor * s.r).collect());
    let profile = Profile {
        singles: singles.into(),
        mean_jvp_sq: MEAN_JVP_SQ,
        mean_jvp_sq_se: 0.003,
        rounding_sq: 1e-13,
        feature_norm: 31.0,
        pairs: 64,
        cost: Cost {
            forwards: 2177,
            jvps: 96,
            vjps: 32,
        },
        fraction: 1.0,
        finished: true,
        summary: Summary::of(&scales),
        undefined: None,
        shown_direction: Arc::from([]),
        scales,
    };
    ProfileRun {
        image: image.to_owned(),
        image_sha256: format!("sha of {image}"),
        image_steps: vec![
            "rotated 90° by EXIF".to_owned(),
            "224 px, crop centre".to_owned(),
        ],
        encoder_title: format!("Title_of {encoder}"),
        weights_id: format!("{encoder} {}", weights.name()),
        device: "cpu".to_owned(),
        recipe,
        direction_steps: vec![],
        profile: Arc::new(profile),
        elapsed_secs: 3.5,
    }
}

fn bump(eta: f64) -> f64 {
    (1.0 + 2.5 * (-((eta / 2.5).log10() / 0.75).powi(2)).exp()) / (1.0 + (eta / 30.0).powi(2))
}

fn decay(eta: f64) -> f64 {
    1.0 / (1.0 + eta / 6.0)
}

fn pair() -> Vec<Arc<ProfileRun>> {
    vec![
        Arc::new(run("cat, \"Tom\".png", "lite", WeightsKind::Trained, bump)),
        Arc::new(run("cat, \"Tom\".png", "lite", WeightsKind::Random, decay)),
    ]
}

fn rows(text: &str) -> Vec<Vec<String>> {
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    let records = reader.records().map(|record| record.expect("a row"));
    records
        .map(|record| record.iter().map(str::to_owned).collect())
        .collect()
}

#[test]
fn the_table_has_the_promised_columns_and_every_number_exactly() {
    let runs = pair();
    let text = csv(&runs).expect("it can be written");
    assert_eq!(
        text.lines().next(),
        Some(
            "image,encoder,weights,eta_l2,eta_grey_rms,r,r_se,displacement_sq,prediction_sq,\
             directions,reliable"
        )
    );
    let rows = rows(&text);
    let scales: Vec<_> = runs
        .iter()
        .flat_map(|run| run.profile.scales.iter().map(move |s| (run, s)))
        .collect();
    assert_eq!(rows.len(), 34);
    for (row, (run, scale)) in rows.iter().zip(scales) {
        assert_eq!(row.len(), COLUMNS.len());
        assert_eq!(
            row[..3],
            [run.image.as_str(), "lite", run.recipe.weights.name()]
        );
        let numbers: Vec<f64> = row[3..9]
            .iter()
            .map(|n| n.parse().expect("a number"))
            .collect();
        let expected = [
            scale.eta_l2,
            scale.eta_grey_rms,
            scale.r,
            scale.r_se,
            scale.displacement_sq,
            scale.prediction_sq,
        ];
        assert_eq!(numbers, expected);
        assert_eq!(
            row[9..],
            [scale.directions.to_string(), scale.reliable.to_string()]
        );
    }
}

#[test]
fn undefined_numbers_are_empty_in_the_table_and_gaps_in_the_figure() {
    let runs = [Arc::new(run("a", "lite", WeightsKind::Trained, |eta| {
        if eta > 1.0 { f64::NAN } else { 1.0 }
    }))];
    let text = csv(&runs).expect("it can be written");
    for row in rows(&text) {
        let eta: f64 = row[3].parse().expect("a number");
        assert_eq!(row[5].is_empty(), eta > 1.0, "{row:?}");
    }
    let bold = bold(&figure(&runs, &FigureOptions::default()), 0).remove(0);
    assert!(
        bold.x
            .iter()
            .zip(&bold.y)
            .all(|(&eta, r)| r.is_nan() == (eta > 1.0))
    );
}

/// The bold curves of a panel: those with points and markers.
fn bold(figure: &Figure, panel: usize) -> Vec<Series> {
    let series = &figure.panels[panel].series;
    series
        .iter()
        .filter(|one| one.marker.is_some() && !one.x.is_empty())
        .cloned()
        .collect()
}

/// The others with points.
fn fine(figure: &Figure, panel: usize) -> Vec<Series> {
    let series = &figure.panels[panel].series;
    series
        .iter()
        .filter(|one| one.marker.is_none() && !one.x.is_empty())
        .cloned()
        .collect()
}

#[test]
fn the_figure_shows_the_numbers_of_the_table() {
    let runs = pair();
    let rows = rows(&csv(&runs).expect("it can be written"));
    let figure = figure(&runs, &FigureOptions::default());
    let column = |index: usize, weights: &str| -> Vec<f64> {
        let of_weights = rows.iter().filter(|row| row[2] == weights);
        of_weights
            .map(|row| row[index].parse().expect("a number"))
            .collect()
    };
    let panels = [(0, 5), (1, 7)];
    for (panel, value) in panels {
        for (series, weights) in bold(&figure, panel).iter().zip(["trained", "random"]) {
            assert_eq!(series.x, column(3, weights));
            assert_eq!(series.y, column(value, weights));
            assert_eq!(series.hollow[..4], [true, true, false, false]);
            let is_dashed = series.dash == Dash::Dashed;
            assert_eq!(is_dashed, weights == "random");
        }
    }
    for (series, weights) in bold(&figure, 0).iter().zip(["trained", "random"]) {
        let (r, r_se) = (column(5, weights), column(6, weights));
        let band = series.band.as_ref().expect("the standard error");
        for (index, r) in r.iter().enumerate() {
            assert_eq!(
                (band.low[index], band.high[index]),
                (r - r_se[index], r + r_se[index])
            );
        }
    }
    let predictions = fine(&figure, 1);
    assert_eq!(predictions[0].y, column(8, "trained"));
    // Two single directions of each run, and nothing else, are thin.
    assert_eq!(fine(&figure, 0).len(), 4);
    assert_eq!(fine(&figure, 0)[0].y, runs[0].profile.singles[0]);
    // r = 1 is always there.
    let guide = Guide::Horizontal {
        at: 1.0,
        label: "linear prediction".to_owned(),
    };
    assert_eq!(figure.panels[0].guides, [guide]);
    // The second axis agrees with the table's two columns.
    let secondary = figure.panels[0].x.secondary.as_ref().expect("grey levels");
    let (eta, grey) = (column(3, "trained"), column(4, "trained"));
    for (eta, grey) in eta.iter().zip(grey) {
        assert!((eta * secondary.factor / grey - 1.0).abs() < 1e-12);
    }
}

#[test]
fn encoders_differ_in_hue_and_sign_and_names_are_shown_as_they_are() {
    let runs = [
        Arc::new(run("a", "lite", WeightsKind::Trained, bump)),
        Arc::new(run("a", "squeeze", WeightsKind::Trained, bump)),
        Arc::new(run("a", "lite", WeightsKind::Random, decay)),
    ];
    let series = bold(&figure(&runs, &FigureOptions::default()), 0);
    let inks: Vec<Ink> = series.iter().map(|one| one.ink).collect();
    assert_eq!(inks, [Ink::Hue(0), Ink::Hue(1), Ink::Hue(0)]);
    assert_eq!(series[0].marker, series[2].marker);
    assert_ne!(series[0].marker, series[1].marker);
    let label = series[0]
        .label
        .as_deref()
        .map(etascope::figure::label::plain);
    assert_eq!(label.as_deref(), Some("Title_of lite, trained"));
}

#[test]
fn other_readouts_and_direction_families_are_named_and_not_mixed_in() {
    let mut others = [(); 3].map(|()| run("a", "lite", WeightsKind::Trained, bump));
    others[1].recipe.readout = Readout::Logits;
    others[2].recipe.family = DirectionFamily::LowPass { sigma_px: 2.0 };
    let runs = others.map(Arc::new);
    let series = bold(&figure(&runs, &FigureOptions::default()), 0);
    let inks: Vec<Ink> = series.iter().map(|one| one.ink).collect();
    assert_eq!(inks, [Ink::Hue(0), Ink::Hue(1), Ink::Hue(2)]);
    let labels: Vec<_> = series
        .iter()
        .filter_map(|one| one.label.as_deref())
        .collect();
    assert_eq!(
        labels
            .iter()
            .map(|l| etascope::figure::label::plain(l))
            .collect::<Vec<_>>(),
        [
            "Title_of lite, trained",
            "Title_of lite, trained, logits",
            "Title_of lite, trained, low-pass Gaussian, σ 2 px"
        ]
    );
}

#[test]
fn a_stage_is_named_as_in_the_original_code() {
    let mut known = run("a", "efficientnet_lite0", WeightsKind::Trained, bump);
    known.recipe.readout = Readout::Stage(2);
    let mut unknown = run("a", "lite", WeightsKind::Trained, bump);
    unknown.recipe.readout = Readout::Stage(2);
    let pooled = run("b", "lite", WeightsKind::Trained, bump);
    let runs = [known, unknown, pooled].map(Arc::new);
    let names = [Some("blocks.1"), Some("2"), None];

    for (series, name) in bold(&figure(&runs, &FigureOptions::default()), 0)
        .iter()
        .zip(names)
    {
        let label = series.label.as_deref().map(etascope::figure::label::plain);
        let label = label.expect("a label");
        match name {
            Some(name) => assert!(label.ends_with(&format!(", stage {name}")), "{label}"),
            None => assert!(!label.contains("stage"), "{label}"),
        }
    }
    let sidecar = sidecar(&runs);
    for (index, name) in names.iter().enumerate() {
        assert_eq!(sidecar["runs"][index]["stage"].as_str(), *name);
    }
}

#[test]
fn several_photographs_give_thin_lines_and_the_median_of_the_reliable() {
    // Heights 1 to 5; scales 0 and 1 are unreliable everywhere.
    let mut runs: Vec<Arc<ProfileRun>> = (1..=5)
        .map(|height| {
            let r = move |eta: f64| if eta > 1.0 { f64::from(height) } else { 1.0 };
            Arc::new(run(&format!("{height}"), "lite", WeightsKind::Trained, r))
        })
        .collect();
    // The highest photograph is unreliable at the last scale too, and falls out of the median.
    let last = 16;
    let mut changed = ProfileRun::clone(&runs[4]);
    Arc::make_mut(&mut changed.profile).scales[last].reliable = false;
    runs[4] = Arc::new(changed);
    let figure = figure(&runs, &FigureOptions::default());
    let median = bold(&figure, 0).remove(0);
    assert_eq!(
        median.label.as_deref(),
        Some("Title\\_of lite, trained, median of 5")
    );
    assert_eq!((median.y[last - 1], median.y[last]), (3.0, 2.5));
    let band = median.band.expect("quartiles from four photographs on");
    assert_eq!((band.low[last - 1], band.high[last - 1]), (2.0, 4.0));
    assert_eq!(median.hollow[..3], [true, true, false]);
    assert!(!median.hollow[last]);
    let thin = fine(&figure, 0);
    assert_eq!(thin.len(), 5);
    for (series, run) in thin.iter().zip(&runs) {
        assert_eq!(
            series.y,
            run.profile.scales.iter().map(|s| s.r).collect::<Vec<_>>()
        );
    }
    // The third panel quantity is the median displacement.
    let eta = median.x[last - 1];
    let expected = 3.0 * eta.powi(2) * MEAN_JVP_SQ;
    assert!((bold(&figure, 1)[0].y[last - 1] / expected - 1.0).abs() < 1e-12);
}

#[test]
fn a_steep_rise_is_drawn_on_a_log_axis_unless_told_otherwise() {
    let rise = [Arc::new(run("a", "squeeze", WeightsKind::Random, |eta| {
        1.0 + eta
    }))];
    let scale = |runs: &[Arc<ProfileRun>], r_scale| {
        let options = FigureOptions {
            r_scale,
            ..FigureOptions::default()
        };
        figure(runs, &options).panels[0].y.scale
    };
    assert_eq!(scale(&rise, None), Scale::Log10);
    assert_eq!(scale(&pair(), None), Scale::Linear);
    assert_eq!(scale(&rise, Some(Scale::Linear)), Scale::Linear);
    assert_eq!(scale(&pair(), Some(Scale::Log10)), Scale::Log10);
}

#[test]
fn encoders_with_other_input_sizes_have_no_common_grey_axis() {
    let mut small = run("a", "tiny", WeightsKind::Trained, bump);
    for scale in &mut Arc::make_mut(&mut small.profile).scales {
        scale.eta_grey_rms = grey_rms(scale.eta_l2, 3 * 32 * 32);
    }
    let runs = [pair()[0].clone(), Arc::new(small)];
    assert!(
        figure(&runs, &FigureOptions::default()).panels[0]
            .x
            .secondary
            .is_none()
    );
}

#[test]
fn the_sidecar_holds_what_is_needed_to_make_the_numbers_again() {
    let runs = pair();
    let sidecar = sidecar(&runs);
    // Versions as the lock file has them, read here by a TOML parser.
    let lock: toml::Table = include_str!("../Cargo.lock").parse().expect("a lock file");
    for library in ["burn", "wgpu"] {
        let packages = lock["package"].as_array().expect("packages");
        let package = packages
            .iter()
            .find(|package| package["name"].as_str() == Some(library));
        let version = package.and_then(|package| package["version"].as_str());
        assert_eq!(sidecar["libraries"][library].as_str(), version);
        assert!(version.is_some(), "{library}");
    }
    assert_eq!(sidecar["version"], env!("CARGO_PKG_VERSION"));
    let entries = sidecar["runs"].as_array().expect("a list");
    assert_eq!(entries.len(), runs.len());
    for (entry, run) in entries.iter().zip(&runs) {
        // The recipe alone makes the same request again.
        let recipe: ProfileRecipe =
            serde_json::from_value(entry["recipe"].clone()).expect("a recipe");
        assert_eq!(recipe, run.recipe);
        assert_eq!(entry["image"]["sha256"], run.image_sha256);
        assert_eq!(entry["image"]["steps"][0], "rotated 90° by EXIF");
        assert_eq!(entry["weights"]["id"], run.weights_id);
        assert_eq!(entry["weights"]["kind"], run.recipe.weights.name());
        assert_eq!(entry["device"], "cpu");
        assert_eq!(entry["elapsed_secs"], 3.5);
        assert_eq!(entry["input_len"], INPUT_LEN as f64);
        assert_eq!(entry["trace_jtj"], MEAN_JVP_SQ * INPUT_LEN as f64);
        assert_eq!(entry["trace_jtj_se"], 0.003 * INPUT_LEN as f64);
        let summary: Summary = serde_json::from_value(entry["summary"].clone()).expect("a summary");
        assert_eq!(summary, run.profile.summary);
    }
}

#[test]
fn no_trace_is_told_where_none_was_made() {
    let mut paper = run("a", "lite", WeightsKind::Trained, bump);
    for scale in &mut Arc::make_mut(&mut paper.profile).scales {
        scale.basis = Basis::FirstDirections;
    }
    let sidecar = sidecar(&[Arc::new(paper)]);
    assert!(sidecar["runs"][0]["trace_jtj"].is_null());
    assert_eq!(sidecar["runs"][0]["mean_jvp_sq"], MEAN_JVP_SQ);
    assert_eq!(sidecar["runs"][0]["basis"][16], "first_directions");
}

#[test]
fn quartiles_interpolate_between_order_statistics() {
    // numpy.percentile([4, 1, 3, 2], [25, 50, 75]).
    assert_eq!(
        quartiles([4.0, 1.0, f64::NAN, 3.0, 2.0]),
        Some([1.75, 2.5, 3.25])
    );
    assert_eq!(quartiles([7.0]), Some([7.0; 3]));
    assert_eq!(quartiles([f64::NAN]), None);
    assert_eq!(
        quartiles([f64::INFINITY, f64::INFINITY]),
        Some([f64::INFINITY; 3])
    );
}

// ---- Files ----

const ALL: [ExportFormat; 4] = [
    ExportFormat::Csv,
    ExportFormat::Json,
    ExportFormat::Svg,
    ExportFormat::Png,
];

fn export(folder: &Path, stem: &str) -> Export {
    Export {
        folder: folder.to_owned(),
        stem: stem.to_owned(),
        formats: ALL.to_vec(),
        content: Content::Profiles(pair()),
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry"));
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn files_are_written_whole_and_replace_older_ones() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let folder = home.path().join("made/as needed");
    for _ in 0..2 {
        let files = write(&export(&folder, "profil é.1")).expect("it can be written");
        let expected =
            ["csv", "json", "svg", "png"].map(|e| folder.join(format!("profil é.1.{e}")));
        assert_eq!(files, expected);
    }
    assert_eq!(
        names(&folder),
        ["csv", "json", "png", "svg"].map(|e| format!("profil é.1.{e}"))
    );
    let read = |extension: &str| {
        fs::read(folder.join(format!("profil é.1.{extension}"))).expect("it is there")
    };
    assert_eq!(read("csv"), csv(&pair()).expect("a table").into_bytes());
    let json = format!("{:#}\n", sidecar(&pair()));
    assert_eq!(read("json"), json.into_bytes());
    assert!(
        String::from_utf8(read("svg"))
            .expect("text")
            .starts_with("<svg")
    );
    assert!(read("png").starts_with(b"\x89PNG"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The same rights as any new file of this user.
        let plain = home.path().join("plain");
        fs::write(&plain, "").expect("it can be written");
        let mode = |path: &Path| {
            fs::metadata(path)
                .expect("it is there")
                .permissions()
                .mode()
        };
        assert_eq!(mode(&folder.join("profil é.1.csv")), mode(&plain));
    }
}

#[test]
fn failures_say_why_and_leave_nothing_behind() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let file = home.path().join("a file");
    fs::write(&file, "mine").expect("it can be written");

    let error = write(&export(&file, "p")).expect_err("a file has this name");
    assert_eq!(error.kind, ErrorKind::Output);
    assert!(
        error.to_string().contains("a file has this name"),
        "{error}"
    );

    let error = write(&export(&file.join("below"), "p")).expect_err("a file is in the way");
    assert_eq!(error.kind, ErrorKind::Output);
    assert!(error.to_string().contains("below”"), "{error}");
    assert_eq!(fs::read(&file).expect("it is there"), b"mine");

    // A folder stands where the second file should go.
    let folder = home.path().join("folder");
    fs::create_dir_all(folder.join("p.json")).expect("it can be made");
    let error = write(&export(&folder, "p")).expect_err("a folder has this name");
    assert_eq!(error.kind, ErrorKind::Output);
    assert!(
        error.what.contains("p.json") && error.why.contains("folder"),
        "{error}"
    );
    let left = names(&folder);
    assert!(
        left.iter().all(|name| name == "p.json" || name == "p.csv"),
        "{left:?}"
    );

    for stem in ["", "..", "a/b", "/"] {
        let error = write(&export(home.path(), stem)).expect_err("no file name");
        assert_eq!(error.kind, ErrorKind::Request, "{stem}");
    }
    let nothing = Export {
        content: Content::Profiles(vec![]),
        ..export(home.path(), "p")
    };
    assert_eq!(
        write(&nothing).expect_err("nothing to write").kind,
        ErrorKind::Request
    );
    assert_eq!(names(home.path()), ["a file", "folder"]);
}

/// `/proc` takes no folders and `/dev/full` is not a folder, whoever asks: tests may run as root,
/// whom permissions do not stop.
#[cfg(target_os = "linux")]
#[test]
fn folders_that_cannot_be_written_are_named() {
    for folder in ["/proc/etascope", "/proc"] {
        let error = write(&export(Path::new(folder), "p")).expect_err("it cannot be written");
        assert_eq!(error.kind, ErrorKind::Output);
        assert!(error.to_string().contains(folder), "{error}");
        // In words, not as the system numbers it.
        assert!(!error.why.contains("os error"), "{error}");
    }
}

#[test]
fn the_median_spectrum_ends_with_the_shortest() {
    use etascope::geometry::spectrum::{Bounds, JacobianSpectrum, SpectrumMethod};
    use etascope::recipe::SpectrumRecipe;
    use etascope::report::{SpectrumRun, spectrum_figure};

    let run = |image: &str, values: &[f64]| SpectrumRun {
        image: image.to_owned(),
        image_sha256: String::new(),
        image_steps: Vec::new(),
        encoder_title: "Encoder".to_owned(),
        weights_id: String::new(),
        device: "cpu".to_owned(),
        recipe: SpectrumRecipe {
            encoder: "encoder".to_owned(),
            weights: etascope::encoders::WeightsKind::Trained,
            readout: etascope::encoders::Readout::Pooled,
            method: SpectrumMethod::Exact { vectors: 0 },
            seed: 0,
            dither_seed: None,
        },
        readout: "pooled".to_owned(),
        feature_len: values.len(),
        input_len: 12,
        spectrum: JacobianSpectrum {
            values: values.to_vec(),
            bounds: Bounds::Exact,
            top: Vec::new(),
            bottom: Vec::new(),
        },
        cost: etascope::geometry::Cost::default(),
        elapsed_secs: 0.0,
    };
    // Of the second, the last two are rounding in single precision.
    let runs = [
        run("a", &[8.0, 6.0, 4.0, 2.0]),
        run("b", &[4.0, 2.0, 1e-7, 0.0]),
    ];
    let figure = spectrum_figure(&runs);
    let drawn: Vec<&[f64]> = figure.panels[0]
        .series
        .iter()
        .map(|series| &*series.y)
        .collect();
    assert_eq!(
        drawn,
        [&[8.0, 6.0, 4.0, 2.0] as &[f64], &[4.0, 2.0], &[6.0, 4.0]]
    );
    assert_eq!(
        figure.panels[0].series[2].label.as_deref(),
        Some("Encoder, trained, median of 2")
    );
}
