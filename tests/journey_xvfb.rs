//! A newcomer's first start in a real window: the program opens under a virtual X server, computes a
//! profile of the bundled photograph with the bundled encoder, and shows it.
#![cfg(all(feature = "gui", target_os = "linux"))]

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use etascope::app::theme::Palette;
use image::RgbImage;

/// A virtual X server of our own, ended with the test.
struct Display {
    server: Child,
    name: String,
}

impl Display {
    fn new() -> Self {
        let mut server = Command::new("Xvfb")
            .args([
                "-displayfd",
                "1",
                "-screen",
                "0",
                "1280x800x24",
                "-nolisten",
                "tcp",
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("Xvfb starts (Debian package xvfb)");
        // The server writes the number of the display once it accepts clients.
        let mut line = String::new();
        let output = server.stdout.take().expect("a pipe");
        BufReader::new(output)
            .read_line(&mut line)
            .expect("the number of the display");
        Self {
            server,
            name: format!(":{}", line.trim()),
        }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Runs the program under a virtual X server with nothing of the user's own.
fn start(home: &Path, arguments: &[&str]) -> Output {
    let display = Display::new();
    Command::new(env!("CARGO_BIN_EXE_etascope"))
        .args(arguments)
        .env("DISPLAY", &display.name)
        .env("HOME", home)
        .env("XDG_CONFIG_HOME", home.join("config"))
        .env("XDG_DATA_HOME", home.join("data"))
        .env("XDG_CACHE_HOME", home.join("cache"))
        .env_remove("WAYLAND_DISPLAY")
        .output()
        .expect("the program starts")
}

/// Pixels in the colour of failures and in that of text where the image panel shows its messages:
/// left, below its heading. In the theme, dark or light, that has more of the former.
fn failure_and_text(picture: &RgbImage) -> [usize; 2] {
    let count = |[r, g, b, _]: [u8; 4]| {
        // The renderer may round a colour otherwise.
        let is_near = |pixel: &[u8; 3]| {
            let pairs = pixel.iter().zip([r, g, b]);
            pairs.into_iter().all(|(&a, b)| a.abs_diff(b) <= 2)
        };
        (0..400)
            .flat_map(|x| (60..300).map(move |y| (x, y)))
            .filter(|&(x, y)| is_near(&picture.get_pixel(x, y).0))
            .count()
    };
    [true, false]
        .map(Palette::of)
        .map(|palette| [palette.error, palette.text].map(|colour| count(colour.to_array())))
        .into_iter()
        .max()
        .unwrap_or_default()
}

#[test]
fn the_first_start_shows_a_finished_profile() {
    let home = tempfile::tempdir().expect("a folder");
    let picture = home.path().join("window.png");
    let path = picture.to_str().expect("a name in UTF-8");
    let output = start(home.path(), &["--device", "cpu", "--screenshot", path]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}\n{errors}", output.status);

    let image = image::open(&picture).expect("a PNG").into_rgb8();
    assert_eq!(image.dimensions(), (1280, 800));
    // A window without the photograph has a few hundred colours: text is smoothed, the rest is flat.
    let colours: HashSet<[u8; 3]> = image.pixels().map(|pixel| pixel.0).collect();
    assert!(colours.len() > 3000, "{} colours", colours.len());
    // The photograph stands at the left, the curves in the middle: there are their own pixels.
    let photograph: HashSet<[u8; 3]> = (40..300)
        .flat_map(|x| (80..300).map(move |y| (x, y)))
        .map(|(x, y)| image.get_pixel(x, y).0)
        .collect();
    assert!(
        photograph.len() > 2000,
        "{} colours in the photograph",
        photograph.len()
    );
    let [failure, _] = failure_and_text(&image);
    assert!(failure < 100, "{failure} pixels in the colour of failures");
}

#[test]
fn a_photograph_that_cannot_be_opened_is_told_in_the_window_and_the_program_goes_on() {
    let home = tempfile::tempdir().expect("a folder");
    let picture = home.path().join("window.png");
    let path = picture.to_str().expect("a name in UTF-8");
    let output = start(
        home.path(),
        &["--device", "cpu", "--screenshot", path, "no such file.png"],
    );
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let image = image::open(&picture).expect("a PNG").into_rgb8();
    assert_eq!(image.dimensions(), (1280, 800));
    // The card is edged in the colour of failures, some 300 by 100 points; so is its first line. The
    // reason and the way out are text.
    let [failure, text] = failure_and_text(&image);
    assert!(failure > 400, "{failure} pixels in the colour of failures");
    assert!(text > 100, "{text} pixels in the colour of text");
}
