//! Compute devices: list, choose, check.
//!
//! The compute device is not the window's: whatever befalls it, the window stays.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use burn::tensor::wgpu::WgpuBackend;
use burn::tensor::{Device, DeviceKind, Tensor};
use cubecl_environment::config::RuntimeConfig;
use cubecl_environment::persistence::CacheConfig;
use cubecl_runtime::config::CubeClRuntimeConfig;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::encoders::layers::Placement;
use crate::encoders::registry::{self, LoadedEncoder};
use crate::encoders::value::Value;
use crate::encoders::{Encoder, Readout};
use crate::{Error, ErrorKind, Result};

/// Name of the CPU among the devices.
pub const CPU: &str = "cpu";

/// Which compute device is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceChoice {
    /// The best hardware adapter, else the CPU; never a software adapter.
    #[default]
    Auto,
    /// The CPU through burn-flex.
    Cpu,
    /// The wgpu adapter with this name, see [`DeviceInfo::name`].
    Adapter(String),
}

/// What is known of a compute device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// Name for people and for [`DeviceChoice::Adapter`]; `cpu` for the CPU.
    pub name: String,
    /// Graphics API or compute library: `vulkan`, `metal`, `dx12`, `flex`.
    pub api: String,
    /// True for adapters that run on the CPU (lavapipe, WARP, SwiftShader).
    pub software: bool,
}

impl DeviceInfo {
    /// The CPU.
    pub fn cpu() -> Self {
        Self {
            name: CPU.to_owned(),
            api: "flex".to_owned(),
            software: false,
        }
    }
}

/// An opened compute device.
#[derive(Clone, Debug)]
pub struct ComputeDevice {
    /// What it is.
    pub info: DeviceInfo,
    /// Burn's handle.
    pub device: Device,
}

impl ComputeDevice {
    /// The CPU, which is always there.
    pub fn cpu() -> Self {
        Self {
            info: DeviceInfo::cpu(),
            device: Device::flex(),
        }
    }

    /// Whether it is the CPU.
    pub fn is_cpu(&self) -> bool {
        self.info.name == CPU
    }

    /// Runs work on the device. Burn panics where a device is lost or a kernel fails; such a panic
    /// becomes an error. `asked` says what was wanted, for example `cannot compute the logits`.
    ///
    /// # Errors
    ///
    /// Those of `work`; [`ErrorKind::Device`] for a panic on an adapter and [`ErrorKind::Internal`]
    /// for one on the CPU.
    pub fn guard<T>(&self, asked: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
            let error = Error::from_panic(asked, payload.as_ref());
            if self.is_cpu() {
                Err(error)
            } else {
                Err(self.lost(asked, &error.why))
            }
        })
    }

    fn lost(&self, asked: &str, why: &str) -> Error {
        Error::new(
            ErrorKind::Device,
            asked,
            format!("the device “{}” was lost or failed: {why}", self.info.name),
            "Choose the device “cpu”; to use this one again, restart the program",
        )
    }
}

/// An adapter as the graphics API lists it, and how Burn selects the same one.
#[derive(Clone)]
struct Adapter {
    info: DeviceInfo,
    kind: DeviceKind,
    api: WgpuBackend,
}

/// Graphics APIs in the order of preference.
const APIS: [(wgpu::Backend, WgpuBackend, &str); 3] = [
    (wgpu::Backend::Vulkan, WgpuBackend::Vulkan, "vulkan"),
    (wgpu::Backend::Metal, WgpuBackend::Metal, "metal"),
    (wgpu::Backend::Dx12, WgpuBackend::Dx12, "dx12"),
];

/// The machine's adapters with the instance that listed them, asked for once and kept for the life of
/// the program: drivers do not take it well when instances come and go while other threads use theirs.
static ADAPTERS: LazyLock<(wgpu::Instance, Vec<Adapter>)> = LazyLock::new(|| {
    let backends = APIS
        .iter()
        .map(|(backend, ..)| wgpu::Backends::from(*backend))
        .collect();
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends,
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    let adapters = named_adapters(&instance);
    (instance, adapters)
});

/// Adapters that were opened, by name: Burn registers each only once.
static OPENED: Mutex<Vec<(String, Device)>> = Mutex::new(Vec::new());

/// The compute devices of this machine: its adapters, best first, then the CPU. No device is created.
pub fn list() -> Vec<DeviceInfo> {
    let adapters = adapters().iter().map(|adapter| adapter.info.clone());
    adapters.chain([DeviceInfo::cpu()]).collect()
}

fn adapters() -> &'static [Adapter] {
    &ADAPTERS.1
}

/// Adapters with a name of their own each, discrete before integrated before virtual before software.
fn named_adapters(instance: &wgpu::Instance) -> Vec<Adapter> {
    let mut adapters: Vec<Adapter> = Vec::new();
    for (backend, api, api_name) in APIS {
        let found = block_on(instance.enumerate_adapters(backend.into()));
        // Burn counts each kind of adapter on its own, in this order.
        let (mut discrete, mut integrated, mut virtual_) = (0.., 0.., 0..);
        let mut software_seen = false;
        for found in found.iter().map(wgpu::Adapter::get_info) {
            let kind = match found.device_type {
                wgpu::DeviceType::DiscreteGpu => discrete.next().map(DeviceKind::DiscreteGpu),
                wgpu::DeviceType::IntegratedGpu => integrated.next().map(DeviceKind::IntegratedGpu),
                wgpu::DeviceType::VirtualGpu => virtual_.next().map(DeviceKind::VirtualGpu),
                // Burn can select the first software adapter only.
                wgpu::DeviceType::Cpu if !software_seen => Some(DeviceKind::Cpu),
                wgpu::DeviceType::Cpu | wgpu::DeviceType::Other => None,
            };
            let Some(kind) = kind else { continue };
            let software = kind == DeviceKind::Cpu;
            software_seen |= software;
            let taken = |name: &str| adapters.iter().any(|adapter| adapter.info.name == name);
            let mut name = found.name.clone();
            if taken(&name) {
                name = format!("{} ({api_name})", found.name);
            }
            let mut number = 2;
            while taken(&name) {
                name = format!("{} ({api_name}) #{number}", found.name);
                number += 1;
            }
            let info = DeviceInfo {
                name,
                api: api_name.to_owned(),
                software,
            };
            adapters.push(Adapter { info, kind, api });
        }
    }
    adapters.sort_by_key(|adapter| match adapter.kind {
        DeviceKind::DiscreteGpu(_) => 0,
        DeviceKind::IntegratedGpu(_) => 1,
        DeviceKind::VirtualGpu(_) => 2,
        _ => 3,
    });
    adapters
}

/// Opens a compute device. [`DeviceChoice::Auto`] takes the best hardware adapter that opens, else the
/// CPU.
///
/// # Errors
///
/// [`ErrorKind::Device`] where no adapter has the name, or it cannot be opened.
pub fn open(choice: &DeviceChoice) -> Result<ComputeDevice> {
    match choice {
        DeviceChoice::Cpu => Ok(ComputeDevice::cpu()),
        DeviceChoice::Auto => {
            let hardware = adapters().iter().filter(|adapter| !adapter.info.software);
            let opened = hardware
                .map(open_adapter)
                .find_map(|device| device.inspect_err(|error| log::warn!("{error}")).ok());
            Ok(opened.unwrap_or_else(ComputeDevice::cpu))
        }
        DeviceChoice::Adapter(name) if name == CPU => Ok(ComputeDevice::cpu()),
        DeviceChoice::Adapter(name) => adapters()
            .iter()
            .find(|adapter| adapter.info.name == *name)
            .map_or_else(|| Err(unknown(name)), open_adapter),
    }
}

fn unknown(name: &str) -> Error {
    let names: Vec<String> = list().into_iter().map(|device| device.name).collect();
    Error::new(
        ErrorKind::Device,
        format!("cannot open the device “{name}”"),
        "this machine has no graphics adapter of that name",
        format!("Choose one of: {}", names.join(", ")),
    )
}

fn open_adapter(adapter: &Adapter) -> Result<ComputeDevice> {
    let Adapter { info, kind, api } = adapter.clone();
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, device)) = opened.iter().find(|(name, _)| *name == info.name) {
        let device = device.clone();
        return Ok(ComputeDevice { info, device });
    }
    let refused = |why: String| {
        Error::new(
            ErrorKind::Device,
            format!("cannot open the device “{}”", info.name),
            why,
            "Choose the device “cpu”, or update the graphics driver",
        )
    };
    let options = Device::wgpu_options().device_kind(kind).graphics_api(api);
    let device = catch_unwind(AssertUnwindSafe(|| options.init()))
        .map_err(|payload| refused(Error::from_panic("", payload.as_ref()).why))?
        .map_err(|error| refused(error.to_string()))?;
    opened.push((info.name.clone(), device.clone()));
    Ok(ComputeDevice { info, device })
}

/// The result of a future that needs no reactor, as those of native wgpu.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::yield_now(),
        }
    }
}

/// Keeps stray `burn.toml` and `cubecl.toml` files in the current folder and above it from changing
/// how kernels run, and directs whatever the compute library stores to the user's cache folder.
///
/// To be called before anything else; later calls change nothing.
pub fn isolate_environment() {
    let mut kernels = CubeClRuntimeConfig::default();
    kernels.environment.path = CacheConfig::Global;
    CubeClRuntimeConfig::try_set(kernels.override_from_env());
    burn::BurnConfig::try_set(burn::BurnConfig::default().override_from_env());
}

/// Comparison of a device with the CPU on a fixed input, made when an encoder is loaded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SelfCheck {
    /// Largest relative L2 difference over stages, pooled feature and logits.
    pub largest_relative_difference: f64,
    /// Bound above which the device is not to be trusted, [`SELF_CHECK_BOUND`].
    pub bound: f64,
}

/// Largest relative difference from the CPU that rounding in another order explains: single f32
/// operations differ by up to 1e-6 of their range, and some fifty follow each other.
pub const SELF_CHECK_BOUND: f64 = 1e-3;

impl SelfCheck {
    /// Whether the device agrees with the CPU.
    pub fn passed(&self) -> bool {
        self.largest_relative_difference <= self.bound
    }
}

/// Compares a loaded encoder with the same one on the CPU, at a fixed input; `None` on the CPU
/// itself.
///
/// # Errors
///
/// Those of loading and of the device.
pub fn self_check(loaded: &LoadedEncoder) -> Result<Option<SelfCheck>> {
    if loaded.device.is_cpu() {
        return Ok(None);
    }
    let cpu = ComputeDevice::cpu();
    let reference = registry::load(&loaded.spec().name, loaded.weights, loaded.seed, &cpu)?;
    let on_device = (loaded.encoder.as_ref(), &loaded.device, &loaded.placement);
    let on_cpu = (
        reference.encoder.as_ref(),
        &reference.device,
        &reference.placement,
    );
    compare(on_device, on_cpu).map(Some)
}

/// Largest relative L2 difference of two copies of an encoder over stages, pooled feature and logits,
/// at a fixed input: uniform noise in [0, 1], which excites every channel.
///
/// # Errors
///
/// Those of the devices.
pub fn compare(
    checked: (&dyn Encoder, &ComputeDevice, &Placement),
    reference: (&dyn Encoder, &ComputeDevice, &Placement),
) -> Result<SelfCheck> {
    let [checked, reference] = [checked, reference].map(|(encoder, device, placement)| {
        let asked = format!("cannot check the device “{}”", device.info.name);
        device.guard(&asked, || outputs(encoder, placement))
    });
    let differences = checked?
        .into_iter()
        .zip(reference?)
        .map(|(checked, reference)| {
            let square = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>();
            let difference = square(&mut checked.iter().zip(&reference).map(|(a, b)| a - b));
            (difference / square(&mut reference.iter().copied())).sqrt()
        });
    // NaN must not pass for agreement, as f64::max would have it.
    let largest = differences.fold(0.0, |a: f64, b| if b > a || b.is_nan() { b } else { a });
    Ok(SelfCheck {
        largest_relative_difference: largest,
        bound: SELF_CHECK_BOUND,
    })
}

/// All stages, the pooled feature and the logits at the fixed input.
fn outputs(encoder: &dyn Encoder, placement: &Placement) -> Result<Vec<Vec<f64>>> {
    let side = encoder.spec().side_px;
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let pixels = (0..3 * side * side)
        .map(|_| f64::from(rng.random::<f32>()))
        .collect();
    let pixels = encoder.normalised(Value::plain(placement.tensor(pixels, [1, 3, side, side])));
    let mut tensors: Vec<Tensor<4>> = Vec::new();
    let _ = encoder.visit(pixels, &mut |_: Readout, value: &Value| {
        tensors.push(value.primal().clone());
        ControlFlow::Continue(())
    });
    tensors.into_iter().map(read).collect()
}

/// A tensor's values on the host, row after row.
///
/// # Errors
///
/// [`ErrorKind::Device`] where the device cannot give them.
pub fn read(tensor: Tensor<4>) -> Result<Vec<f64>> {
    let data = tensor.try_into_data().map_err(|error| {
        Error::new(
            ErrorKind::Device,
            "cannot read a result from the compute device",
            error,
            "Choose the device “cpu”, or try again",
        )
    })?;
    Ok(data.iter::<f64>().collect())
}
