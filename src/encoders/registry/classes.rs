//! The classes of ImageNet, by which logits are read.

use std::sync::LazyLock;

/// Names of the 1,000 ImageNet classes in the order of the logits.
static CLASSES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    include_str!("../../../assets/encoders/imagenet_classes.txt")
        .lines()
        .collect()
});

/// Name of an ImageNet class; `class N` beyond the thousand.
pub fn class_name(index: usize) -> String {
    CLASSES
        .get(index)
        .map_or_else(|| format!("class {index}"), |name| (*name).to_owned())
}

/// The five largest probabilities (softmax of the logits), largest first, with their class names where
/// there are a thousand classes.
pub fn top5(logits: &[f64]) -> Vec<(String, f32)> {
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = logits.iter().map(|logit| (logit - largest).exp()).sum();
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
    // The names are those of the thousand classes, and of no others.
    let name = |index: usize| match logits.len() {
        1000 => class_name(index),
        _ => format!("class {index}"),
    };
    let probability = |index: usize| ((logits[index] - largest).exp() / total) as f32;
    order
        .into_iter()
        .take(5)
        .map(|index| (name(index), probability(index)))
        .collect()
}
