//! The registry: the program's own rows against what their publishers say, a user's rows with good
//! errors, and weight files named on the spot.

mod tiny;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use etascope::device::ComputeDevice;
use etascope::encoders::registry::{self, Row};
use etascope::encoders::weights::checkpoint::{Checkpoint, sha256_of};
use etascope::encoders::weights::find::{Caches, Origin};
use etascope::encoders::{Readout, WeightsKind};
use etascope::images::ResizeFilter;
use etascope::{Error, ErrorKind};

fn row(name: &str) -> &'static Row {
    registry::row(name).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_bundled_encoders_stand_first_and_need_nothing() {
    let bundled: Vec<&str> = registry::bundled().map(|spec| &*spec.name).collect();
    assert_eq!(bundled, ["efficientnet_lite0", "squeezenet1_1"]);
    let first: Vec<&str> = registry::all().map(|spec| &*spec.name).take(2).collect();
    assert_eq!(first, bundled);
    for name in bundled {
        let status = row(name).status();
        assert!(
            status.installed && status.path.is_none() && !status.can_be_fetched,
            "{name}"
        );
        let report = row(name).report().expect("it is sound");
        assert!(report.is_complete(), "{}", report.faults());
    }
}

#[test]
fn parameters_are_those_that_the_publishers_count() {
    // `num_params` in torchvision's weights; for timm the counts of `timm/results/model_metadata-in1k.csv`
    // in millions, to two digits.
    for (name, parameters) in [
        ("resnet18.tv_in1k", 11_689_512),
        ("resnet34.tv_in1k", 21_797_672),
        ("resnet50.tv2_in1k", 25_557_032),
        ("resnet101.tv_in1k", 44_549_160),
        ("resnet152.tv2_in1k", 60_192_808),
        ("wide_resnet50_2.tv_in1k", 68_883_240),
        ("wide_resnet101_2.tv2_in1k", 126_886_696),
        ("vgg16.tv_in1k", 138_357_544),
        ("vgg16_bn.tv_in1k", 138_365_992),
        ("alexnet.tv_in1k", 61_100_840),
        ("squeezenet1_0.tv_in1k", 1_248_424),
        ("squeezenet1_1.tv_in1k", 1_235_496),
        ("convnext_tiny.tv_in1k", 28_589_128),
        ("convnext_small.tv_in1k", 50_223_688),
        ("convnext_base.tv_in1k", 88_591_464),
        ("convnext_large.tv_in1k", 197_767_336),
        ("vit_b_16.tv_in1k", 86_567_656),
    ] {
        assert_eq!(row(name).spec.parameters, parameters, "{name}");
    }
    for (name, millions) in [
        ("vit_small_patch16_224.augreg_in1k", 22.05),
        ("convnext_base.fb_in22k_ft_in1k", 88.59),
        ("swinv2_base_window12to24_192to384.ms_in22k_ft_in1k", 87.92),
        ("vit_base_patch16_dinov3.lvd1689m", 85.64),
        ("vit_small_patch14_dinov2.lvd142m", 22.06),
        ("tf_efficientnet_lite4.in1k", 13.01),
    ] {
        let found = row(name).spec.parameters as f64 / 1e6;
        assert!((found - millions).abs() <= 0.0051, "{name}: {found}");
    }
}

#[test]
fn every_row_is_whole() {
    let rows = registry::all_rows();
    let names: BTreeSet<&str> = rows.iter().map(|row| &*row.spec.name).collect();
    assert_eq!(names.len(), rows.len());
    // Another test adds some of a user.
    for row in rows
        .into_iter()
        .filter(|row| !row.spec.name.starts_with("mine."))
    {
        let spec = &row.spec;
        for text in [&spec.title, &spec.source, &spec.licence] {
            assert!(!text.is_empty(), "{}", spec.name);
        }
        assert!(!row.citation.is_empty(), "{}", spec.name);
        assert!(!spec.stages.is_empty(), "{}", spec.name);
        assert_eq!(spec.side_px, spec.preprocessing.crop_px);
        let shape = spec
            .readout_shape(&Readout::Pooled)
            .expect("every encoder has it");
        assert_eq!(shape, [spec.pooled_len, 1, 1]);
        // torchvision's files state the beginning of their SHA-256 in their names.
        if let Origin::Url(url) = &row.origin
            && url.contains("download.pytorch.org")
        {
            let digits = row.sha256.as_ref().expect("it is published");
            assert!(url.ends_with(&format!("-{digits}.pth")), "{url}");
            // PyTorch's files hold little besides f32 parameters and BatchNorm statistics.
            let (published, computed) =
                (row.size_bytes.expect("it is"), 4 * spec.parameters as u64);
            let more = published as f64 / computed as f64;
            // The first wide ResNets are stored in half precision.
            let is_half = spec.name.starts_with("wide_resnet") && spec.name.contains(".tv_");
            let range = if is_half { 0.5..0.52 } else { 1.0 - 2e-5..1.02 };
            assert!(range.contains(&more), "{}: {more}", spec.name);
        }
    }
}

#[test]
fn the_inputs_of_the_papers_encoders_are_those_of_their_libraries() {
    use ResizeFilter::{Bicubic, Bilinear};
    for (name, resize, crop, filter, mean) in [
        ("resnet50.tv2_in1k", 232, 224, Bilinear, 0.485),
        ("convnext_tiny.tv_in1k", 236, 224, Bilinear, 0.485),
        ("vit_small_patch16_224.augreg_in1k", 248, 224, Bicubic, 0.5),
        ("convnext_base.fb_in22k_ft_in1k", 256, 224, Bicubic, 0.485),
        (
            "convnext_base.fb_in22k_ft_in1k_288",
            288,
            288,
            Bicubic,
            0.485,
        ),
        (
            "swinv2_base_window12to24_192to384.ms_in22k_ft_in1k",
            384,
            384,
            Bicubic,
            0.485,
        ),
        ("dinov3_vitb16.lvd1689m", 224, 224, Bilinear, 0.485),
        ("resnet50.l2_eps3", 256, 224, Bilinear, 0.485),
        ("synclr_vit_b_16", 224, 224, Bicubic, 0.485),
    ] {
        let recipe = &row(name).spec.preprocessing;
        let found = (
            recipe.resize_px,
            recipe.crop_px,
            recipe.filter,
            recipe.mean[0],
        );
        assert_eq!(found, (resize, crop, filter, mean), "{name}");
    }
    // Feature maps of the edits paper: 256×36², 512×18², 1024×9² at 288 px; 512×24², 1024×12² at 384 px.
    let stages = |name: &str| -> Vec<[usize; 3]> {
        row(name)
            .spec
            .stages
            .iter()
            .map(|stage| stage.shape)
            .collect()
    };
    let convnext = stages("convnext_base.fb_in22k_ft_in1k_288");
    assert!(
        [[256, 36, 36], [512, 18, 18], [1024, 9, 9]]
            .iter()
            .all(|s| convnext.contains(s))
    );
    let swin = stages("swinv2_base_window12to24_192to384.ms_in22k_ft_in1k");
    assert!(
        [[512, 24, 24], [1024, 12, 12]]
            .iter()
            .all(|s| swin.contains(s))
    );
    assert!(stages("dinov3_vitb16.lvd1689m").contains(&[768, 14, 14]));
}

#[test]
fn gated_and_manual_weights_are_explained() {
    let gated = row("dinov3_vitb16.lvd1689m");
    assert!(gated.gated);
    let page = row("resnet50.imagenet_sd");
    assert!(matches!(&page.origin, Origin::Page(_)));
    let error = page
        .checkpoint()
        .expect_err("nobody has it under this name");
    assert_eq!(error.kind, ErrorKind::Weights);
    assert!(
        error.remedy.contains("europe.naverlabs.com") && error.remedy.contains("--weights"),
        "{error}"
    );
}

// ---- A user's rows ----------------------------------------------------------------------------

/// A sound row, with lines replaced or added.
fn written(name: &str, more: &str) -> String {
    format!(
        "[[encoder]]\nname = \"{name}\"\narchitecture = \"resnet18\"\n{more}\n\
         input = {{ resize = 64, crop = 64, filter = \"bilinear\", mean = [0.5, 0.5, 0.5], std = [0.2, 0.2, 0.2] }}\n"
    )
}

fn read(text: &str) -> etascope::Result<()> {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("there.pth"), "").expect("it can be written");
    let path = folder.path().join("encoders.toml");
    fs::write(&path, text).expect("it can be written");
    registry::read_user_rows(&path)
}

#[test]
fn a_users_rows_stand_after_the_programs_own() {
    let text = written(
        "mine.one",
        "title = \"Mine\"\nfile = \"there.pth\"\nclasses = 10\nlicence = \"CC0\"",
    ) + &written("mine.two", "hub = \"me/my-net\"\nrevision = \"v1\"");
    read(&text).expect("they are sound");
    let one = row("mine.one");
    assert_eq!(
        (&*one.spec.title, &*one.spec.licence, one.spec.logits_len),
        ("Mine", "CC0", 10)
    );
    assert_eq!(one.spec.side_px, 64);
    let two = row("mine.two");
    let expected = Origin::Hub {
        repo: "me/my-net".into(),
        revision: "v1".into(),
        file: "model.safetensors".into(),
    };
    assert_eq!((&two.origin, &*two.spec.title), (&expected, "mine.two"));
    let names: Vec<&str> = registry::all().map(|spec| &*spec.name).collect();
    let place = |name: &str| {
        names
            .iter()
            .position(|known| *known == name)
            .expect("it is there")
    };
    assert!(place("mine.one") > place("alexnet.tv_in1k"));
}

#[test]
fn a_file_that_is_not_there_holds_no_rows() {
    registry::read_user_rows(Path::new("/nowhere/encoders.toml")).expect("nothing to read");
}

#[test]
fn faults_in_a_users_rows_are_told_with_their_line() {
    let refused = |text: &str| -> Error {
        let error = read(text).expect_err("it is wrong");
        assert_eq!(error.kind, ErrorKind::Request);
        assert!(
            error.what.contains("encoders.toml") && !error.remedy.is_empty(),
            "{error}"
        );
        error
    };
    let file = "file = \"there.pth\"";
    for (text, words) in [
        ("[[encoder]\n".to_owned(), &["line 1"][..]),
        (
            written("wrong.a", &format!("{file}\ncolour = 3")),
            &["line 5", "colour"],
        ),
        (
            written("wrong.b", &format!("{file}\nclasses = \"ten\"")),
            &["line 5", "expected usize"],
        ),
        (
            "[[encoder]]\nname = \"wrong.c\"\n".to_owned(),
            &["line 1", "architecture"],
        ),
        (
            written("wrong.d", "file = \"absent.pth\""),
            &["“wrong.d” (line 1)", "no file", "absent.pth"],
        ),
        (
            written("wrong.e", &format!("{file}\nsha256 = \"xyz\"")),
            &["“xyz” is not a SHA-256"],
        ),
        (
            written("wrong.e", &format!("{file}\nsha256 = \"abc\"")),
            &["“abc” is not a SHA-256"],
        ),
        (written("wrong.f", ""), &["where its weights are"]),
        (
            written("wrong.g", &format!("{file}\nurl = \"https://a/b.pth\"")),
            &["where its weights are"],
        ),
        (written("wrong.h", "url = \"ftp://a/b.pth\""), &["address"]),
        (
            written("wrong.i", "hub = \"../../etc\""),
            &["not a file of a repository"],
        ),
        (
            written("wrong.j", "hub = \"me/net\"\nhub_file = \"../x\""),
            &["not a file of a repository"],
        ),
        (written("wrong k", file), &["a name consists of"]),
        (written("squeezenet1_1", file), &["the name is taken"]),
        (
            written("wrong.l", file).replace("resnet18", "resnet_18"),
            &["no architecture “resnet_18”", "did you mean “resnet18”"],
        ),
        (
            written("wrong.m", file).replace("crop = 64", "crop = 65"),
            &["a crop of 65 px"],
        ),
        (
            written("wrong.n", file).replace("crop = 64, ", ""),
            &["its input lacks crop"],
        ),
        (
            written("wrong.o", file).replace("[0.2, 0.2, 0.2]", "[0.2, 0.0, 0.2]"),
            &["mean or std"],
        ),
        (
            written("wrong.p", file)
                .replace("resnet18", "alexnet")
                .replace("= 64", "= 32"),
            &["nothing would be left"],
        ),
        (
            written("wrong.q", file).replace("bilinear", "lanczos"),
            &["lanczos"],
        ),
        (
            written("wrong.r", &format!("{file}\nsize_mib = -1.0")),
            &["size_mib"],
        ),
        (
            written("wrong.s", "bundled = \"squeezenet1_1.safetensors\""),
            &["is not bundled"],
        ),
        (
            written("wrong.t", file).replace("resnet18", "vit_small_patch14_dinov2"),
            &["multiples of 14 px"],
        ),
    ] {
        let error = refused(&text);
        for word in words {
            assert!(error.why.contains(word), "no “{word}” in: {error}");
        }
    }
    // Nothing of a file with a fault is taken.
    let error = refused(&(written("half.a", file) + &written("half.b", "")));
    assert!(error.why.contains("“half.b” (line 6)"), "{error}");
    assert!(registry::find("half.a").is_err());
}

// ---- Weight files named on the spot -----------------------------------------------------------

/// A SqueezeNet 1.1 of seven classes, wrapped as training scripts wrap it.
fn fine_tuned(folder: &Path) -> String {
    use etascope::encoders::squeezenet::SqueezeNetConfig;
    use etascope::encoders::weights::Weights;
    let config = SqueezeNetConfig {
        classes: 7,
        ..SqueezeNetConfig::v1_1()
    };
    let parameters = config.parameters();
    let mut drawn = Weights::random(&parameters, 3);
    let tensors: Vec<(String, Vec<usize>, Vec<u8>)> = parameters
        .iter()
        .map(|parameter| {
            let values = drawn.take(&parameter.name).expect("drawn");
            let bytes = values
                .iter()
                .flat_map(|v| (*v as f32).to_le_bytes())
                .collect();
            (
                format!("module.{}", parameter.name),
                parameter.shape.clone(),
                bytes,
            )
        })
        .collect();
    let views = tensors.iter().map(|(name, shape, bytes)| {
        let view =
            safetensors::tensor::TensorView::new(safetensors::Dtype::F32, shape.clone(), bytes);
        (name.as_str(), view.expect("a tensor"))
    });
    let path = folder.join("fine,tuned @ home.safetensors");
    fs::write(
        &path,
        safetensors::serialize(views, None).expect("it can be"),
    )
    .expect("it can be");
    path.display().to_string()
}

#[test]
fn a_known_encoder_takes_weights_from_any_file_with_the_files_classes() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = fine_tuned(folder.path());
    let name = registry::local_name("squeezenet1_1.tv_in1k", &file);
    let spec = registry::find(&name).expect("it fits");
    assert_eq!((&*spec.name, spec.logits_len), (name.as_str(), 7));
    assert_eq!(
        spec.preprocessing,
        row("squeezenet1_1.tv_in1k").spec.preprocessing
    );
    assert!(
        registry::all().all(|known| known.name != spec.name),
        "it is not offered to others"
    );

    let cpu = ComputeDevice::cpu();
    let loaded = registry::load(&name, WeightsKind::Trained, 0, &cpu).expect("it loads");
    assert_eq!(
        loaded.weights_id,
        sha256_of(Path::new(&file)).expect("it is there")
    );
    // The twin with the file's seed is the same network.
    let at = |readout: &Readout, encoder: &dyn etascope::encoders::Encoder| {
        let input = burn::tensor::Tensor::<4>::ones([1, 3, 224, 224], loaded.placement.options());
        let value = etascope::encoders::value::Value::plain(input);
        tiny::values(
            encoder
                .forward(value, readout)
                .expect("it runs")
                .into_primal(),
        )
    };
    let twin = registry::load(&name, WeightsKind::Random, 3, &cpu).expect("it loads");
    let [trained, random] = [&loaded, &twin].map(|one| at(&Readout::Logits, one.encoder.as_ref()));
    assert_eq!((trained.len(), trained), (7, random));
    // Seven classes are not ImageNet's.
    let top = registry::top5(&[0.0, 3.0, 1.0, 0.0, 0.0, 0.0, 2.0]);
    assert_eq!(top[0].0, "class 1");
}

#[test]
fn a_file_of_another_network_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = fine_tuned(folder.path());
    let error = registry::find(&registry::local_name("alexnet.tv_in1k", &file)).expect_err("it is");
    assert_eq!(error.kind, ErrorKind::Weights);
    assert!(
        error.why.contains("missing") && error.remedy.contains("encoders check"),
        "{error}"
    );
    let error =
        registry::find(&registry::local_name("alexnt", &file)).expect_err("no such encoder");
    assert_eq!(error.kind, ErrorKind::Request);
    let error = registry::find(&registry::local_name("alexnet.tv_in1k", "/nowhere.pth"))
        .expect_err("no file");
    assert!(error.why.contains("no such file"), "{error}");
}

#[test]
fn the_encoders_that_a_file_may_be_of_are_proposed() {
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoint = Checkpoint::open(Path::new(&fine_tuned(folder.path()))).expect("it opens");
    let proposals = registry::propose(&checkpoint, None).expect("one copy");
    assert_eq!(proposals.len(), 1);
    let encoders = &proposals[0].encoders;
    assert_eq!(encoders[..], ["squeezenet1_1", "squeezenet1_1.tv_in1k"]);
    assert_eq!(proposals[0].architecture.logits_len(), 7);
    assert_eq!(proposals[0].report.prefix, "module.");
    let tiny = Checkpoint::open(&tiny::golden_path(
        "tiny_efficientnet_lite.weights.safetensors",
    ));
    let proposals = registry::propose(&tiny.expect("it opens"), None).expect("one copy");
    assert!(proposals.iter().all(|proposal| !proposal.is_complete()));
}

// ---- Caches -----------------------------------------------------------------------------------

#[test]
fn what_other_libraries_fetched_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let caches = Caches {
        hub: folder.path().join("hub"),
        torch: folder.path().join("torch"),
    };
    let url = Origin::Url("https://host/models/net-0123.pth?x=1".into());
    let hub = |revision: &str| Origin::Hub {
        repo: "me/net".into(),
        revision: revision.into(),
        file: "model.safetensors".into(),
    };
    assert_eq!(caches.find(&url), None);
    assert_eq!(caches.find(&hub("main")), None);

    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        fs::write(path, text).expect("it can be written");
    };
    write("torch/net-0123.pth", "x");
    assert_eq!(
        caches.find(&url),
        Some(folder.path().join("torch/net-0123.pth"))
    );

    let commits = ["a".repeat(40), "b".repeat(40)];
    for commit in &commits {
        write(
            &format!("hub/models--me--net/snapshots/{commit}/model.safetensors"),
            "x",
        );
    }
    let snapshot = |commit: &str| {
        let path = format!("hub/models--me--net/snapshots/{commit}/model.safetensors");
        Some(folder.path().join(path))
    };
    // A name that was never resolved: any snapshot will do. A commit: that one and no other.
    assert!(caches.find(&hub("main")).is_some());
    assert_eq!(caches.find(&hub(&commits[0])), snapshot(&commits[0]));
    assert_eq!(caches.find(&hub(&"c".repeat(40))), None);
    write(
        "hub/models--me--net/refs/main",
        &format!("{}\n", commits[0]),
    );
    assert_eq!(caches.find(&hub("main")), snapshot(&commits[0]));
    write("hub/models--me--net/refs/main", "../../../../outside");
    assert_ne!(
        caches.find(&hub("main")),
        None,
        "a ref that leads elsewhere is not followed"
    );
}
