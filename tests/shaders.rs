//! Every shader is valid WGSL, and the preview shows what its formulas say.
#![cfg(feature = "gui")]

use std::sync::Arc;

use eframe::egui_wgpu::wgpu;
use etascope::render::{Heat, HeatPipeline, Preview, PreviewPipeline, PreviewView, ViewMode};

/// Side of the photograph in the rendering tests.
const SIDE: usize = 8;
/// Side of the picture: every pixel of the photograph is an 8 × 8 square.
const SHOWN: usize = 64;

#[test]
fn every_shader_passes_naga() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/shaders");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the folder of shaders") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "wgsl") {
            continue;
        }
        let source = std::fs::read_to_string(&path).expect("a text file");
        let module = naga::front::wgsl::parse_str(&source).unwrap_or_else(|error| {
            panic!("{}: {}", path.display(), error.emit_to_string(&source))
        });
        naga::valid::Validator::new(
            naga::valid::ValidationFlags::all(),
            naga::valid::Capabilities::empty(),
        )
        .validate(&module)
        .unwrap_or_else(|error| panic!("{}: {error:?}", path.display()));
        count += 1;
    }
    assert!(count > 0, "no shader was found in {folder}");
}

/// A photograph with every hue and both extremes, and a direction that pushes some of them out.
fn planes() -> (Arc<[f32]>, Arc<[f32]>) {
    let pixels: Vec<f32> = (0..3 * SIDE * SIDE)
        .map(|i| ((i * 37) % 101) as f32 / 100.0)
        .collect();
    let raw: Vec<f32> = (0..3 * SIDE * SIDE)
        .map(|i| ((i * 53) % 97) as f32 / 48.0 - 1.0)
        .collect();
    let norm = raw.iter().map(|v| v * v).sum::<f32>().sqrt();
    (pixels.into(), raw.iter().map(|v| v / norm).collect())
}

fn view(mode: ViewMode, interpolate: bool, eta_l2: f32) -> PreviewView {
    PreviewView {
        mode,
        interpolate,
        eta_l2,
        gain: 3.0,
        // Between two columns of the picture.
        seam: 0.5,
        strength: 1.0,
        background: [0.2, 0.4, 0.6],
        below: [0.0, 0.4, 0.7],
        above: [0.9, 0.6, 0.0],
    }
}

/// The formulas of the preview on the CPU, written anew.
fn expected(preview: &Preview, x: usize, y: usize) -> [f32; 3] {
    let view = &preview.view;
    let u = [x, y].map(|place| (place as f32 + 0.5) / SHOWN as f32);
    let is_original = u[0] < view.seam;
    let at = |column: i64, row: i64| {
        let last = SIDE as i64 - 1;
        let index = row.clamp(0, last) as usize * SIDE + column.clamp(0, last) as usize;
        let value = |plane: &[f32]| [0, 1, 2].map(|c| plane[c * SIDE * SIDE + index]);
        let photograph = value(&preview.pixels);
        let step = preview.direction.as_ref().map_or([0.0; 3], |direction| {
            value(direction).map(|d| view.eta_l2 * d)
        });
        let sum = [0, 1, 2].map(|c| photograph[c] + step[c]);
        match view.mode {
            ViewMode::Split if is_original => photograph.map(|v| v.clamp(0.0, 1.0)),
            ViewMode::Split => sum.map(|v| v.clamp(0.0, 1.0)),
            ViewMode::Noise => step.map(|s| (0.5 + view.gain * s).clamp(0.0, 1.0)),
            ViewMode::Clipped if sum.iter().any(|v| *v > 1.0) => view.above,
            ViewMode::Clipped if sum.iter().any(|v| *v < 0.0) => view.below,
            ViewMode::Clipped => [0.2126 * sum[0] + 0.7152 * sum[1] + 0.0722 * sum[2]; 3],
        }
    };
    let place = u.map(|u| u * SIDE as f32);
    let shown = if view.interpolate {
        let corner = place.map(|p| (p - 0.5).floor());
        let weight = [place[0] - 0.5 - corner[0], place[1] - 0.5 - corner[1]];
        let [column, row] = corner.map(|c| c as i64);
        let mix = |a: [f32; 3], b: [f32; 3], t: f32| [0, 1, 2].map(|c| a[c] + t * (b[c] - a[c]));
        let top = mix(at(column, row), at(column + 1, row), weight[0]);
        let bottom = mix(at(column, row + 1), at(column + 1, row + 1), weight[0]);
        mix(top, bottom, weight[1])
    } else {
        at(place[0].floor() as i64, place[1].floor() as i64)
    };
    [0, 1, 2].map(|c| view.background[c] + view.strength * (shown[c] - view.background[c]))
}

struct Gpu {
    device: wgpu::Device,
    queue: wgpu::Queue,
}

impl Gpu {
    fn new() -> Self {
        let setup = egui_kittest::wgpu::default_wgpu_setup();
        let options = eframe::egui_wgpu::RendererOptions::PREDICTABLE;
        let state = egui_kittest::wgpu::create_render_state(setup, options);
        Self {
            device: state.device,
            queue: state.queue,
        }
    }

    /// The preview on a target of `format`, as bytes in the order of the format.
    fn render(&self, preview: &Preview, format: wgpu::TextureFormat) -> Vec<u8> {
        let mut pipeline = PreviewPipeline::new(&self.device, format);
        pipeline.prepare(&self.device, &self.queue, preview);
        self.painted(format, |pass| pipeline.paint(pass))
    }

    /// What is painted on a target of `format`, as bytes in the order of the format.
    fn painted(
        &self,
        format: wgpu::TextureFormat,
        paint: impl FnOnce(&mut wgpu::RenderPass<'_>),
    ) -> Vec<u8> {
        let Self { device, queue } = self;
        let size = wgpu::Extent3d {
            width: SHOWN as u32,
            height: SHOWN as u32,
            depth_or_array_layers: 1,
        };
        let target = device.create_texture(&wgpu::TextureDescriptor {
            label: None,
            size,
            mip_level_count: 1,
            sample_count: 1,
            dimension: wgpu::TextureDimension::D2,
            format,
            usage: wgpu::TextureUsages::RENDER_ATTACHMENT | wgpu::TextureUsages::COPY_SRC,
            view_formats: &[],
        });
        // 64 pixels of 4 bytes: exactly the 256 bytes that rows are aligned to.
        let bytes_per_row = 4 * SHOWN as u32;
        let buffer = device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: u64::from(bytes_per_row) * SHOWN as u64,
            usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
            mapped_at_creation: false,
        });
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        {
            let view = target.create_view(&wgpu::TextureViewDescriptor::default());
            let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
                color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                    view: &view,
                    depth_slice: None,
                    resolve_target: None,
                    ops: wgpu::Operations::default(),
                })],
                ..Default::default()
            });
            paint(&mut pass);
        }
        encoder.copy_texture_to_buffer(
            target.as_image_copy(),
            wgpu::TexelCopyBufferInfo {
                buffer: &buffer,
                layout: wgpu::TexelCopyBufferLayout {
                    offset: 0,
                    bytes_per_row: Some(bytes_per_row),
                    rows_per_image: None,
                },
            },
            size,
        );
        queue.submit([encoder.finish()]);
        buffer.slice(..).map_async(wgpu::MapMode::Read, |mapped| {
            mapped.expect("a mapped buffer");
        });
        device
            .poll(wgpu::PollType::wait_indefinitely())
            .expect("a finished queue");
        buffer
            .slice(..)
            .get_mapped_range()
            .expect("a mapped range")
            .to_vec()
    }
}

/// Largest difference in grey levels between picture and formula.
fn largest_difference(gpu: &Gpu, preview: &Preview) -> f32 {
    let shown = gpu.render(preview, wgpu::TextureFormat::Rgba8Unorm);
    let mut largest = 0.0f32;
    for y in 0..SHOWN {
        for x in 0..SHOWN {
            let formula = expected(preview, x, y);
            for (c, value) in formula.into_iter().enumerate() {
                let level = f32::from(shown[4 * (y * SHOWN + x) + c]);
                largest = largest.max((level - 255.0 * value).abs());
            }
        }
    }
    largest
}

#[test]
fn the_three_views_show_their_formulas() {
    let gpu = Gpu::new();
    let (pixels, direction) = planes();
    for mode in ViewMode::ALL {
        for interpolate in [false, true] {
            for eta_l2 in [0.01, 1.0, 12.0] {
                let preview = Preview {
                    side_px: SIDE,
                    pixels: Arc::clone(&pixels),
                    direction: Some(Arc::clone(&direction)),
                    view: view(mode, interpolate, eta_l2),
                };
                let difference = largest_difference(&gpu, &preview);
                // Half a level is the rounding to eight bits; the rest, that of its last place.
                assert!(
                    difference < 0.51,
                    "{mode:?} {interpolate} {eta_l2}: {difference} levels"
                );
            }
        }
    }
}

#[test]
fn without_a_direction_nothing_is_perturbed_and_stale_images_fade() {
    let gpu = Gpu::new();
    let (pixels, _) = planes();
    let mut faded = view(ViewMode::Split, false, 50.0);
    faded.strength = 0.35;
    let preview = Preview {
        side_px: SIDE,
        pixels,
        direction: None,
        view: faded,
    };
    assert!(largest_difference(&gpu, &preview) < 0.51);
}

#[test]
fn a_surface_that_encodes_to_srgb_shows_the_same() {
    let gpu = Gpu::new();
    let (pixels, direction) = planes();
    let preview = Preview {
        side_px: SIDE,
        pixels,
        direction: Some(direction),
        view: view(ViewMode::Split, false, 3.0),
    };
    let plain = gpu.render(&preview, wgpu::TextureFormat::Rgba8Unorm);
    let encoded = gpu.render(&preview, wgpu::TextureFormat::Rgba8UnormSrgb);
    // Two roundings to eight bits may fall to different sides.
    let largest = plain
        .iter()
        .zip(&encoded)
        .map(|(a, b)| a.abs_diff(*b))
        .max();
    assert!(largest <= Some(1), "{largest:?} levels");
}

/// viridis of matplotlib 3 at some fractions, sRGB.
const VIRIDIS: [(f32, [u8; 3]); 5] = [
    (0.0, [68, 1, 84]),
    (0.3, [53, 95, 141]),
    (0.55, [30, 156, 137]),
    (0.8, [122, 209, 81]),
    (1.0, [253, 231, 37]),
];

#[test]
fn a_map_of_numbers_has_matplotlibs_colours_and_hatches_what_is_undefined() {
    let gpu = Gpu::new();
    let format = wgpu::TextureFormat::Rgba8Unorm;
    let mut pipeline = HeatPipeline::new(&gpu.device, format);
    // Two rows of four; the scale runs from 0.5 to 1, and the last numbers lie below, above and nowhere.
    let scaled = VIRIDIS.map(|(fraction, _)| 0.5 + 0.5 * fraction);
    let values = scaled.into_iter().chain([-1.0, 2.0, f32::NAN]);
    let heat = Heat {
        slot: 3,
        shape: [2, 4],
        values: values.collect(),
        range: [0.5, 1.0],
        interpolate: false,
        strength: 1.0,
        side_px: SHOWN as f32,
        background: [0.0; 3],
    };
    pipeline.prepare(&gpu.device, &gpu.queue, &heat);
    let shown = gpu.painted(format, |pass| pipeline.paint(pass, heat.slot));
    let at = |x: usize, y: usize| -> [u8; 3] {
        let start = 4 * (y * SHOWN + x);
        [shown[start], shown[start + 1], shown[start + 2]]
    };
    let middle = |i: usize| {
        at(
            (i % 4) * SHOWN / 4 + SHOWN / 8,
            (i / 4) * SHOWN / 2 + SHOWN / 4,
        )
    };
    let [first, .., last] = VIRIDIS.map(|(_, colour)| colour);
    let expected = VIRIDIS
        .map(|(_, colour)| colour)
        .into_iter()
        .chain([first, last]);
    for (i, colour) in expected.enumerate() {
        let off = middle(i)
            .iter()
            .zip(colour)
            .map(|(a, b)| a.abs_diff(b))
            .max();
        // Seventeen stops joined by straight lines stand for matplotlib's 256.
        assert!(off <= Some(2), "{i}: {:?} for {colour:?}", middle(i));
    }
    // Two greys side by side in the place of NaN.
    let greys: std::collections::BTreeSet<[u8; 3]> = (SHOWN * 3 / 4..SHOWN)
        .map(|x| at(x, SHOWN * 3 / 4))
        .collect();
    assert_eq!(greys.len(), 2, "{greys:?}");
    assert!(greys.iter().all(|[r, g, b]| r == g && g == b), "{greys:?}");
}
