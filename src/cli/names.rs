//! Names by which the photographs of one export are told apart.

use std::path::{Path, PathBuf};

use super::values::write_image;
use crate::worker::ImageSource;

/// A name for each photograph: its file name, or, where another photograph has the same, the fewest
/// last parts of its path that no other path ends in; the argument as given where there are none.
pub fn distinct(images: &[ImageSource]) -> Vec<String> {
    let longest = |image: &ImageSource| match image {
        ImageSource::Path(path) => path.components().count(),
        _ => 2,
    };
    let is_alone = |index: usize, parts: usize| {
        let name = ending(&images[index], parts);
        (images.iter().enumerate()).all(|(other, image)| {
            other == index
                || ending(image, parts) != name
                || write_image(image) == write_image(&images[index])
        })
    };
    (0..images.len())
        .map(|index| {
            let parts = (1..longest(&images[index])).find(|&parts| is_alone(index, parts));
            match parts {
                Some(parts) => ending(&images[index], parts),
                None => write_image(&images[index]).unwrap_or_default(),
            }
        })
        .collect()
}

/// The last `parts` parts of a photograph's path; `bundled:` counts as one.
fn ending(image: &ImageSource, parts: usize) -> String {
    match image {
        ImageSource::Path(path) => last(path, parts).to_string_lossy().into_owned(),
        ImageSource::Bundled(name) if parts == 1 => name.clone(),
        _ => write_image(image).unwrap_or_default(),
    }
}

fn last(path: &Path, parts: usize) -> PathBuf {
    let count = path.components().count();
    path.components()
        .skip(count.saturating_sub(parts))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::values::parse_image;
    use super::*;

    fn names(arguments: &[&str]) -> Vec<String> {
        let images: Vec<ImageSource> = arguments
            .iter()
            .map(|text| parse_image(text).expect("any text names an image"))
            .collect();
        distinct(&images)
    }

    #[test]
    fn paths_are_as_long_as_it_takes_to_tell_them_apart() {
        assert_eq!(names(&["x/cat.png", "x/dog.png"]), ["cat.png", "dog.png"]);
        assert_eq!(
            names(&["x/a/cat.png", "x/b/cat.png", "x/a/dog.png"]),
            ["a/cat.png", "b/cat.png", "dog.png"]
        );
        assert_eq!(
            names(&["/x/a/cat.png", "/y/a/cat.png", "cat.png"]),
            ["x/a/cat.png", "y/a/cat.png", "cat.png"]
        );
        assert_eq!(
            names(&["bundled:cat", "a/cat"]),
            ["bundled:cat", "a/cat"],
            "a bundled photograph beside a file of its name"
        );
        // The same photograph twice stays the same.
        assert_eq!(names(&["a/cat.png", "a/cat.png"]), ["cat.png", "cat.png"]);
    }

    #[test]
    fn one_photograph_has_its_file_name() {
        assert_eq!(names(&["/some/folder/cat.png"]), ["cat.png"]);
        assert_eq!(names(&["cat.png"]), ["cat.png"]);
        assert_eq!(names(&["bundled:coffee"]), ["coffee"]);
    }
}
