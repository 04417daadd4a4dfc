//! Parameters by name.

use burn::tensor::{Gradients, Tensor, TensorData};

use super::AdamW;
use crate::Result;
use crate::device::read;
use crate::encoders::layers::Placement;
use crate::encoders::weights::{Parameter, Weights};

/// The parameters of a network: flat tensors with names and shapes.
#[derive(Clone, Debug)]
pub struct Parameters {
    declared: Vec<Parameter>,
    values: Vec<Tensor<1>>,
}

impl Parameters {
    /// The values of `weights`, each of which is taken.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Weights`] where a value is not finite.
    pub fn load(
        declared: Vec<Parameter>,
        weights: &mut Weights<'_>,
        at: &Placement,
    ) -> Result<Self> {
        let values = declared
            .iter()
            .map(|parameter| {
                let values = weights.take(&parameter.name)?;
                Ok(at.tensor(values, [parameter.len()]))
            })
            .collect::<Result<_>>()?;
        Ok(Self { declared, values })
    }

    /// From values as flat arrays in the order of declaration, each as long as declared.
    pub fn from_values(declared: Vec<Parameter>, values: Vec<Vec<f32>>, at: &Placement) -> Self {
        let values = values.into_iter().map(|values| {
            let shape = [values.len()];
            Tensor::from_data(TensorData::new(values, shape), at.options())
        });
        Self {
            values: values.collect(),
            declared,
        }
    }

    /// The values as flat arrays in the order of declaration.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Device`] where the device cannot give them.
    pub fn read(&self) -> Result<Vec<Vec<f32>>> {
        self.values.iter().map(read_flat).collect()
    }

    /// Untrained values.
    ///
    /// # Errors
    /// None in practice: drawn values are finite.
    pub fn random(declared: Vec<Parameter>, seed: u64, at: &Placement) -> Result<Self> {
        let mut weights = Weights::random(&declared, seed);
        Self::load(declared, &mut weights, at)
    }

    /// What the parameters are.
    pub fn declared(&self) -> &[Parameter] {
        &self.declared
    }

    /// Their values, flat, in the same order.
    pub fn values(&self) -> &[Tensor<1>] {
        &self.values
    }

    /// The parameters for a pass without derivatives.
    pub fn live(&self) -> Live<'_> {
        Live {
            declared: &self.declared,
            values: self.values.clone(),
        }
    }

    /// The parameters for a pass whose derivatives with respect to them are wanted.
    pub fn tracked(&self) -> Live<'_> {
        let values = self.values.iter().zip(&self.declared);
        let values = values.map(|(value, parameter)| {
            let value = value.clone().autodiff();
            if parameter.trained {
                value.require_grad()
            } else {
                value
            }
        });
        Live {
            declared: &self.declared,
            values: values.collect(),
        }
    }

    /// Moves each trained parameter along its gradient; those that had no part in the loss stay. `live` are the values
    /// of [`Live::into_values`] of the pass that gave the gradients.
    pub fn descend(
        &mut self,
        live: &[Tensor<1>],
        gradients: &mut Gradients,
        optimiser: &mut AdamW,
        rate: f64,
    ) {
        for (index, value) in self.values.iter_mut().enumerate() {
            let gradient = live.get(index).and_then(|live| live.grad_remove(gradients));
            if let Some(gradient) = gradient {
                *value = optimiser.step(index, value.clone(), gradient, rate);
            }
        }
    }

    /// Replaces the value of a parameter by name, such as a running statistic; unknown names change nothing.
    pub fn replace(&mut self, name: &str, value: Tensor<1>) {
        let at = self.declared.iter().position(|p| p.name == name);
        if let Some(at) = at {
            self.values[at] = value;
        }
    }
}

/// A flat tensor on the host.
///
/// # Errors
/// [`crate::ErrorKind::Device`] where the device cannot give it.
pub fn read_flat(tensor: &Tensor<1>) -> Result<Vec<f32>> {
    let len = tensor.dims()[0];
    let values = read(tensor.clone().reshape([1, 1, 1, len]))?;
    Ok(values.into_iter().map(|value| value as f32).collect())
}

/// Parameters in one pass.
#[derive(Debug)]
pub struct Live<'a> {
    declared: &'a [Parameter],
    values: Vec<Tensor<1>>,
}

impl Live<'_> {
    /// A parameter in its shape, which has `D` axes.
    ///
    /// # Panics
    /// Where the network did not declare it, which is a fault of the network.
    pub fn get<const D: usize>(&self, name: &str) -> Tensor<D> {
        let at = self
            .declared
            .iter()
            .position(|p| p.name == name)
            .expect("a network uses the parameters that it declares");
        let shape: [usize; D] = self.declared[at]
            .shape
            .clone()
            .try_into()
            .expect("a parameter is used with as many axes as it was declared");
        self.values[at].clone().reshape(shape)
    }

    /// The values, flat, in the order of declaration.
    pub fn into_values(self) -> Vec<Tensor<1>> {
        self.values
    }
}
