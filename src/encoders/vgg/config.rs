//! Sizes of the family, and the layers that follow from them.

use serde::{Deserialize, Serialize};

use super::super::chain::{ChainLayer, ChainOperation, ChainPlan};
use super::super::host_pool::PoolConfig;
use super::super::layers::{BatchNorm, ConvConfig, Padding};
use super::super::plans::{ConvPlan, LinearPlan, he_fan_out, torch_default};
use super::super::weights::Init;

/// What follows the convolutions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VggHead {
    /// torchvision's: means over a grid, two hidden layers, the classifier.
    Hidden {
        /// Side of the grid to which the last map is averaged.
        grid: usize,
        /// Length of each of the two hidden vectors.
        width: usize,
    },
    /// The mean over positions and the classifier.
    Mean,
}

/// A network of the family.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VggConfig {
    /// Output channels of the convolutions, in groups that end with pooling.
    pub groups: Vec<Vec<usize>>,
    /// Whether a BatchNorm follows each convolution.
    pub norm: bool,
    /// What follows the convolutions.
    pub head: VggHead,
    /// Number of classes.
    pub classes: usize,
}

const POOL: PoolConfig = PoolConfig::inside(2, 2);

impl VggConfig {
    /// The thirteen convolutions of configuration D.
    fn d(norm: bool, head: VggHead, classes: usize) -> Self {
        let groups = [(2, 64), (2, 128), (3, 256), (3, 512), (3, 512)];
        Self {
            groups: groups.map(|(count, width)| vec![width; count]).to_vec(),
            norm,
            head,
            classes,
        }
    }

    /// torchvision's `vgg16`.
    pub fn vgg16() -> Self {
        Self::d(false, Self::IMAGENET_HEAD, 1000)
    }

    /// torchvision's `vgg16_bn`.
    pub fn vgg16_bn() -> Self {
        Self::d(true, Self::IMAGENET_HEAD, 1000)
    }

    /// VGG-16 for CIFAR-10: BatchNorm, and one fully connected layer.
    pub fn vgg16_cifar() -> Self {
        Self::d(true, VggHead::Mean, 10)
    }

    const IMAGENET_HEAD: VggHead = VggHead::Hidden {
        grid: 7,
        width: 4096,
    };

    /// The layers with their names. The stages are the last ReLU of each group and the last pooling.
    ///
    /// With torchvision's head the network begins as torchvision's: convolutions normal with variance
    /// 2 / fan-out, fully connected layers normal with standard deviation 0.01, biases 0. With the CIFAR
    /// head it begins as PyTorch's layers do by themselves.
    pub fn plan(&self) -> ChainPlan {
        let torchvision = matches!(self.head, VggHead::Hidden { .. });
        let mut layers = Vec::new();
        let mut inputs = 3;
        let mut place = 0;
        for (g, group) in self.groups.iter().enumerate() {
            for (i, &outputs) in group.iter().enumerate() {
                let config = ConvConfig {
                    inputs,
                    outputs,
                    kernel: 3,
                    stride: 1,
                    padding: Padding::Symmetric(1),
                    groups: 1,
                };
                let (init, bias) = if torchvision {
                    (he_fan_out(&config), Init::Constant(0.0))
                } else {
                    let init = torch_default(config.fan_in());
                    (init, init)
                };
                let norm = self.norm.then(|| {
                    let key = format!("features.{}", place + 1);
                    BatchNorm::new(key, outputs, BatchNorm::TORCH_EPSILON)
                });
                let relu = place + 1 + usize::from(self.norm);
                layers.push(ChainLayer {
                    name: format!("features.{relu}"),
                    exposed: i + 1 == group.len(),
                    operation: ChainOperation::Conv(ConvPlan {
                        key: format!("features.{place}"),
                        config,
                        init,
                        bias: Some(bias),
                        norm,
                    }),
                });
                place = relu + 1;
                inputs = outputs;
            }
            layers.push(ChainLayer {
                name: format!("features.{place}"),
                exposed: g + 1 == self.groups.len(),
                operation: ChainOperation::Pool(POOL),
            });
            place += 1;
        }
        let linear = |key: &str, inputs: usize, outputs: usize| {
            let (init, bias) = if torchvision {
                (Init::Normal { std: 0.01 }, Init::Constant(0.0))
            } else {
                (torch_default(inputs), torch_default(inputs))
            };
            LinearPlan {
                key: key.to_owned(),
                shape: [inputs, outputs],
                init,
                bias,
            }
        };
        match self.head {
            VggHead::Hidden { grid, width } => ChainPlan {
                layers,
                grid,
                hidden: vec![
                    linear("classifier.0", inputs * grid * grid, width),
                    linear("classifier.3", width, width),
                ],
                classifier: linear("classifier.6", width, self.classes),
            },
            VggHead::Mean => ChainPlan {
                layers,
                grid: 1,
                hidden: Vec::new(),
                classifier: linear("classifier", inputs, self.classes),
            },
        }
    }
}
