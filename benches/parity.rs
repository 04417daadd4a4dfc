//! What Etascope computes of one request, for `scripts/parity` to hold against PyTorch:
//!
//! `parity compute ENCODER DEVICE PRECISION REQUEST ANSWER` loads an encoder by its registry name or as `NAME@FILE`. REQUEST is a
//! safetensors file with `pixels` and `tangent` (1, 3, side, side) and `cotangent.pooled` (1, length), in f32, all in raw
//! [0, 1] RGB pixels. ANSWER holds in f64 `stage.<i>.<name>`, `pooled`, `logits`, `jvp.pooled` and `vjp.pooled`, and in its
//! metadata how the weights were recognised. PRECISION is `f32` or `f64`.
//!
//! `parity prepare PHOTOGRAPH ANSWER ENCODER…` writes the photograph as each encoder sees it, in f32 under its name.
//!
//! `parity devices` lists the names of the compute devices.
//!
//! It is built as a benchmark because nothing else needs it: neither users nor `cargo test` wait for it.

use std::error::Error;
use std::ops::ControlFlow;
use std::path::Path;

use burn::tensor::Tensor;
use etascope::device::{self, DeviceChoice};
use etascope::encoders::layers::Placement;
use etascope::encoders::value::Value;
use etascope::encoders::{Readout, WeightsKind, registry};
use etascope::images::{self, Background};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

type Done<T = ()> = Result<T, Box<dyn Error>>;

/// A tensor of the answer: name, shape, bytes.
type Named = (String, Vec<usize>, Vec<u8>);

fn main() -> Done {
    device::isolate_environment();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["compute", encoder, device, precision, request, answer] => {
            compute(encoder, device, precision, request, answer)
        }
        ["prepare", photograph, answer, encoders @ ..] => prepare(photograph, answer, encoders),
        ["devices"] => {
            device::list()
                .iter()
                .for_each(|device| println!("{}", device.name));
            Ok(())
        }
        _ => {
            println!("parity has nothing to measure by itself; scripts/parity runs it");
            Ok(())
        }
    }
}

fn compute(name: &str, device: &str, precision: &str, request: &str, answer: &str) -> Done {
    let device = device::open(&DeviceChoice::Adapter(device.to_owned()))?;
    let at = match precision {
        "f64" => Placement::f64(&device.device),
        _ => Placement::f32(&device.device),
    };
    let row = registry::row(name)?;
    let report = row.report()?;
    let loaded = registry::load_at(name, WeightsKind::Trained, 0, &device, at.clone())?;
    let encoder = &loaded.encoder;

    let bytes = std::fs::read(request)?;
    let request = SafeTensors::deserialize(&bytes)?;
    let given = |name: &str| -> Done<Tensor<4>> {
        let view = request.tensor(name)?;
        let values = view.data().chunks_exact(4);
        let values = values.map(|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]])));
        let mut shape = [1; 4];
        shape[..view.shape().len()].copy_from_slice(view.shape());
        Ok(at.tensor(values.collect(), shape))
    };
    let mut found: Vec<Named> = Vec::new();
    let mut keep = |name: String, tensor: Tensor<4>| -> Done {
        let shape = tensor.dims().to_vec();
        let values = device::read(tensor)?;
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        found.push((name, shape, bytes.collect()));
        Ok(())
    };
    let mut derivative = None;
    let mut failed = None;
    let x = encoder.normalised(Value::traced(given("pixels")?));
    let _ = encoder.visit(x, &mut |place, value| {
        let name = match place {
            Readout::Stage(i) => format!("stage.{i}.{}", encoder.spec().stages[i].name),
            Readout::Pooled => {
                derivative = value.linearised();
                "pooled".to_owned()
            }
            Readout::Logits => "logits".to_owned(),
        };
        match keep(name, value.primal().clone()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    });
    if let Some(error) = failed {
        return Err(error);
    }
    let derivative = derivative.ok_or("the encoder shows a pooled feature of a traced input")?;
    keep("jvp.pooled".into(), derivative.jvp(given("tangent")?))?;
    let v = given("cotangent.pooled")?;
    let [batch, length, ..] = v.dims();
    let v = v.reshape([batch, length, 1, 1]);
    keep("vjp.pooled".into(), derivative.vjp(v))?;

    let metadata = [
        ("naming", report.naming.to_owned()),
        ("prefix", report.prefix.clone()),
        ("format", report.format.clone()),
        ("parameters", row.spec.parameters.to_string()),
        ("classes", row.spec.logits_len.to_string()),
        ("device", device.info.name.clone()),
    ];
    let metadata = metadata.map(|(key, value)| (key.to_owned(), value));
    write(answer, &found, Dtype::F64, metadata.into())
}

fn prepare(photograph: &str, answer: &str, encoders: &[&str]) -> Done {
    let photograph = images::open(Path::new(photograph), Background::default())?;
    let mut found = Vec::new();
    for name in encoders {
        let prepared = registry::find(name)?.preprocessing.apply(&photograph)?;
        let shape = vec![3, prepared.side_px, prepared.side_px];
        let bytes = prepared.pixels.iter().flat_map(|value| value.to_le_bytes());
        found.push(((*name).to_owned(), shape, bytes.collect()));
    }
    write(answer, &found, Dtype::F32, Default::default())
}

fn write(
    path: &str,
    tensors: &[Named],
    dtype: Dtype,
    metadata: std::collections::HashMap<String, String>,
) -> Done {
    let views = tensors
        .iter()
        .map(|(name, shape, bytes)| Ok((name, TensorView::new(dtype, shape.clone(), bytes)?)));
    let views = views.collect::<Done<Vec<_>>>()?;
    let content = safetensors::serialize(views, Some(metadata))?;
    Ok(std::fs::write(path, content)?)
}
