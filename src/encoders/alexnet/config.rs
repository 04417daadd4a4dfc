//! Sizes of the network, and the layers that follow from them.

use serde::{Deserialize, Serialize};

use super::super::chain::{ChainLayer, ChainOperation, ChainPlan};
use super::super::host_pool::PoolConfig;
use super::super::layers::{ConvConfig, Padding};
use super::super::plans::{ConvPlan, LinearPlan, torch_default};

/// A network with AlexNet's layout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlexNetConfig {
    /// Output channels of the five convolutions.
    pub channels: [usize; 5],
    /// Side of the grid to which the last map is averaged.
    pub grid: usize,
    /// Length of each of the two hidden vectors.
    pub hidden: usize,
    /// Number of classes.
    pub classes: usize,
}

/// Kernel, stride and padding of the convolutions.
const KERNELS: [(usize, usize, usize); 5] =
    [(11, 4, 2), (5, 1, 2), (3, 1, 1), (3, 1, 1), (3, 1, 1)];

/// The convolutions with pooling after them.
const POOLED: [usize; 3] = [0, 1, 4];

const POOL: PoolConfig = PoolConfig::inside(3, 2);

impl AlexNetConfig {
    /// torchvision's `alexnet`.
    pub fn alexnet() -> Self {
        Self {
            channels: [64, 192, 384, 256, 256],
            grid: 6,
            hidden: 4096,
            classes: 1000,
        }
    }

    /// The layers with torchvision's names. Weights and biases begin as PyTorch's layers do by
    /// themselves. The stages are the five ReLUs and the last pooling.
    pub fn plan(&self) -> ChainPlan {
        let mut layers: Vec<ChainLayer> = Vec::new();
        let mut inputs = 3;
        let mut place = 0;
        for (i, (&outputs, (kernel, stride, padding))) in
            self.channels.iter().zip(KERNELS).enumerate()
        {
            let config = ConvConfig {
                inputs,
                outputs,
                kernel,
                stride,
                padding: Padding::Symmetric(padding),
                groups: 1,
            };
            let init = torch_default(config.fan_in());
            layers.push(ChainLayer {
                name: format!("features.{}", place + 1),
                exposed: true,
                operation: ChainOperation::Conv(ConvPlan {
                    key: format!("features.{place}"),
                    config,
                    init,
                    bias: Some(init),
                    norm: None,
                }),
            });
            place += 2;
            if POOLED.contains(&i) {
                layers.push(ChainLayer {
                    name: format!("features.{place}"),
                    exposed: i + 1 == self.channels.len(),
                    operation: ChainOperation::Pool(POOL),
                });
                place += 1;
            }
            inputs = outputs;
        }
        let linear = |place: usize, inputs: usize, outputs: usize| LinearPlan {
            key: format!("classifier.{place}"),
            shape: [inputs, outputs],
            init: torch_default(inputs),
            bias: torch_default(inputs),
        };
        ChainPlan {
            layers,
            grid: self.grid,
            hidden: vec![
                linear(1, inputs * self.grid * self.grid, self.hidden),
                linear(4, self.hidden, self.hidden),
            ],
            classifier: linear(6, self.hidden, self.classes),
        }
    }
}
