//! Which weights are in memory, and which give way when others come.

use crate::recipe::{ProfileRecipe, WeightsKind};

/// Memory that weights may take unless the window says otherwise, in bytes: some five encoders of the
/// size of ViT-B.
pub const DEFAULT_BUDGET_BYTES: u64 = 2_000_000_000;

/// The weights in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// What they may take together, in bytes. Encoders in use stay, even beyond it.
    pub budget_bytes: u64,
    /// Least recently used first.
    pub loaded: Vec<LoadedWeights>,
    /// The encoders of the newest request for profiles.
    pub in_use: Vec<(String, WeightsKind)>,
}

/// The weights of one encoder in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedWeights {
    /// Registry name.
    pub encoder: String,
    /// Trained or random.
    pub weights: WeightsKind,
    /// What they take, in bytes.
    pub bytes: u64,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            budget_bytes: DEFAULT_BUDGET_BYTES,
            loaded: Vec::new(),
            in_use: Vec::new(),
        }
    }
}

impl Memory {
    /// What the loaded weights take together, in bytes.
    pub fn used_bytes(&self) -> u64 {
        self.loaded.iter().map(|loaded| loaded.bytes).sum()
    }

    /// Whether the newest request for profiles needs these weights.
    pub fn is_in_use(&self, encoder: &str, weights: WeightsKind) -> bool {
        (self.in_use.iter()).any(|(name, kind)| name == encoder && *kind == weights)
    }

    /// From now on the encoders of `recipes` are those in use.
    pub(super) fn use_for(&mut self, recipes: &[ProfileRecipe]) {
        self.in_use = (recipes.iter())
            .map(|recipe| (recipe.encoder.clone(), recipe.weights))
            .collect();
    }

    /// Makes weights the most recently used ones; false where they are not loaded.
    pub(super) fn touch(&mut self, encoder: &str, weights: WeightsKind) -> bool {
        let is_it = |known: &LoadedWeights| known.encoder == encoder && known.weights == weights;
        let Some(position) = self.loaded.iter().position(is_it) else {
            return false;
        };
        let known = self.loaded.remove(position);
        self.loaded.push(known);
        true
    }

    /// Takes out what has to go for another `bytes` to fit: the least recently used first, and
    /// nothing that is in use.
    pub(super) fn give_way(&mut self, bytes: u64) -> Vec<LoadedWeights> {
        let mut gone = Vec::new();
        while self.used_bytes().saturating_add(bytes) > self.budget_bytes {
            let idle = |known: &LoadedWeights| !self.is_in_use(&known.encoder, known.weights);
            let Some(position) = self.loaded.iter().position(idle) else {
                break;
            };
            gone.push(self.loaded.remove(position));
        }
        gone
    }
}
