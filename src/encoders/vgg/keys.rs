//! What the tensors are called in other libraries.

use super::super::renaming::Renaming;

/// Names of timm, which keeps the fully connected layers as convolutions over the last map.
pub fn from_timm(name: &str) -> Option<Renaming> {
    let layers = [
        ("pre_logits.fc1.", "classifier.0"),
        ("pre_logits.fc2.", "classifier.3"),
        ("head.fc.", "classifier.6"),
    ];
    let layer = layers
        .into_iter()
        .find_map(|(timm, ours)| Some(Renaming::whole(ours, name.strip_prefix(timm)?)));
    layer.or_else(|| {
        name.starts_with("features.")
            .then(|| Renaming::Whole(name.to_owned()))
    })
}
