//! The perturbed photograph x + ηu, drawn by a shader from x, u and η so that it follows a dragged η
//! in the same frame.

use std::sync::Arc;

use eframe::egui_wgpu::{self, wgpu};

/// Source of the shader.
pub const PERTURBED_WGSL: &str = include_str!("../../shaders/perturbed.wgsl");

/// Size of the shader's `View` in bytes: eight scalars and three colours.
const UNIFORM_BYTES: usize = 8 * 4 + 3 * 16;

/// What the preview shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ViewMode {
    /// The original left of a seam, the perturbed image right of it.
    #[default]
    Split,
    /// The perturbation alone about mid-grey, amplified.
    Noise,
    /// The perturbed image in grey; pixels with a value outside [0, 1], which the encoder sees and a
    /// screen cannot show, in colour.
    Clipped,
}

impl ViewMode {
    /// Every mode, in the order of the buttons.
    pub const ALL: [Self; 3] = [Self::Split, Self::Noise, Self::Clipped];

    /// The number by which the shader knows it.
    fn index(self) -> u32 {
        match self {
            Self::Split => 0,
            Self::Noise => 1,
            Self::Clipped => 2,
        }
    }
}

/// Everything about a view but the two images.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PreviewView {
    /// What is shown.
    pub mode: ViewMode,
    /// Interpolate between pixels instead of showing squares.
    pub interpolate: bool,
    /// L2 norm η of the perturbation in raw [0, 1] pixels.
    pub eta_l2: f32,
    /// Amplification of the noise view.
    pub gain: f32,
    /// Fraction of the width left of the seam, 0 to 1.
    pub seam: f32,
    /// Strength of the image, 0 to 1; stale images are shown weaker.
    pub strength: f32,
    /// sRGB colour behind a weakened image.
    pub background: [f32; 3],
    /// sRGB colour of pixels with a value below 0.
    pub below: [f32; 3],
    /// sRGB colour of pixels with a value above 1.
    pub above: [f32; 3],
}

/// One view of one photograph, to be painted.
#[derive(Clone, Debug)]
pub struct Preview {
    /// Side of the photograph in pixels.
    pub side_px: usize,
    /// Photograph x in [0, 1] (channel, row, column): `3 · side²` values.
    pub pixels: Arc<[f32]>,
    /// Direction u in the same order, unit L2 norm; `None` where there is none yet.
    pub direction: Option<Arc<[f32]>>,
    /// How it is shown.
    pub view: PreviewView,
}

impl Preview {
    fn uniform(&self) -> [u8; UNIFORM_BYTES] {
        let view = &self.view;
        // Without a direction nothing is perturbed.
        let eta = if self.direction.is_some() {
            view.eta_l2
        } else {
            0.0
        };
        let words = [
            self.side_px as u32,
            view.mode.index(),
            u32::from(view.interpolate),
            0,
        ];
        let scalars = [eta, view.gain, view.seam, view.strength];
        let mut bytes = [0; UNIFORM_BYTES];
        let values = words
            .into_iter()
            .map(u32::to_le_bytes)
            .chain(scalars.into_iter().map(f32::to_le_bytes))
            .chain(
                [view.background, view.below, view.above]
                    .into_iter()
                    .flat_map(|[r, g, b]| [r, g, b, 1.0].map(f32::to_le_bytes)),
            );
        for (slot, value) in bytes.chunks_exact_mut(4).zip(values) {
            slot.copy_from_slice(&value);
        }
        bytes
    }
}

/// A texture and the values that it holds.
struct Held {
    values: Option<Arc<[f32]>>,
    texture: wgpu::Texture,
}

/// Pipeline, uniforms and textures of the preview on the window's own device.
pub struct PreviewPipeline {
    pipeline: wgpu::RenderPipeline,
    layout: wgpu::BindGroupLayout,
    uniform: wgpu::Buffer,
    side_px: usize,
    photograph: Held,
    direction: Held,
    bindings: wgpu::BindGroup,
}

impl PreviewPipeline {
    /// Builds the pipeline for surfaces of `format`.
    pub fn new(device: &wgpu::Device, format: wgpu::TextureFormat) -> Self {
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some("perturbed photograph"),
            source: wgpu::ShaderSource::Wgsl(PERTURBED_WGSL.into()),
        });
        let texture_entry = |binding| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::FRAGMENT,
            ty: wgpu::BindingType::Texture {
                sample_type: wgpu::TextureSampleType::Float { filterable: false },
                view_dimension: wgpu::TextureViewDimension::D2,
                multisampled: false,
            },
            count: None,
        };
        let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: Some("perturbed photograph"),
            entries: &[
                wgpu::BindGroupLayoutEntry {
                    binding: 0,
                    visibility: wgpu::ShaderStages::FRAGMENT,
                    ty: wgpu::BindingType::Buffer {
                        ty: wgpu::BufferBindingType::Uniform,
                        has_dynamic_offset: false,
                        min_binding_size: None,
                    },
                    count: None,
                },
                texture_entry(1),
                texture_entry(2),
            ],
        });
        let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some("perturbed photograph"),
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let pipeline = device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
            label: Some("perturbed photograph"),
            layout: Some(&pipeline_layout),
            vertex: wgpu::VertexState {
                module: &module,
                entry_point: Some("vertex"),
                buffers: &[],
                compilation_options: wgpu::PipelineCompilationOptions::default(),
            },
            fragment: Some(wgpu::FragmentState {
                module: &module,
                entry_point: Some(if format.is_srgb() {
                    "fragment_linear"
                } else {
                    "fragment_gamma"
                }),
                targets: &[Some(format.into())],
                compilation_options: wgpu::PipelineCompilationOptions::default(),
            }),
            primitive: wgpu::PrimitiveState::default(),
            depth_stencil: None,
            multisample: wgpu::MultisampleState::default(),
            multiview_mask: None,
            cache: None,
        });
        let uniform = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("perturbed photograph"),
            size: UNIFORM_BYTES as u64,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let photograph = Held {
            values: None,
            texture: texture(device, 1),
        };
        let direction = Held {
            values: None,
            texture: texture(device, 1),
        };
        let bindings = bindings(device, &layout, &uniform, &photograph, &direction);
        Self {
            pipeline,
            layout,
            uniform,
            side_px: 1,
            photograph,
            direction,
            bindings,
        }
    }

    /// Uploads what changed since the last call.
    pub fn prepare(&mut self, device: &wgpu::Device, queue: &wgpu::Queue, preview: &Preview) {
        if preview.side_px != self.side_px {
            self.side_px = preview.side_px;
            self.photograph = Held {
                values: None,
                texture: texture(device, preview.side_px),
            };
            self.direction = Held {
                values: None,
                texture: texture(device, preview.side_px),
            };
            self.bindings = bindings(
                device,
                &self.layout,
                &self.uniform,
                &self.photograph,
                &self.direction,
            );
        }
        upload(queue, self.side_px, &mut self.photograph, &preview.pixels);
        if let Some(direction) = &preview.direction {
            upload(queue, self.side_px, &mut self.direction, direction);
        }
        queue.write_buffer(&self.uniform, 0, &preview.uniform());
    }

    /// Draws what was prepared over the whole viewport.
    pub fn paint(&self, pass: &mut wgpu::RenderPass<'_>) {
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &self.bindings, &[]);
        pass.draw(0..3, 0..1);
    }
}

impl egui_wgpu::CallbackTrait for Preview {
    fn prepare(
        &self,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        _screen: &egui_wgpu::ScreenDescriptor,
        _encoder: &mut wgpu::CommandEncoder,
        resources: &mut egui_wgpu::CallbackResources,
    ) -> Vec<wgpu::CommandBuffer> {
        if let Some(pipeline) = resources.get_mut::<PreviewPipeline>() {
            pipeline.prepare(device, queue, self);
        }
        Vec::new()
    }

    fn paint(
        &self,
        _info: eframe::egui::PaintCallbackInfo,
        pass: &mut wgpu::RenderPass<'static>,
        resources: &egui_wgpu::CallbackResources,
    ) {
        if let Some(pipeline) = resources.get::<PreviewPipeline>() {
            pipeline.paint(pass);
        }
    }
}

/// A texture of `side_px` pixels a side for three float channels; the fourth is unused because
/// there is no three-channel format.
fn texture(device: &wgpu::Device, side_px: usize) -> wgpu::Texture {
    device.create_texture(&wgpu::TextureDescriptor {
        label: Some("perturbed photograph"),
        size: extent(side_px),
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format: wgpu::TextureFormat::Rgba32Float,
        usage: wgpu::TextureUsages::TEXTURE_BINDING | wgpu::TextureUsages::COPY_DST,
        view_formats: &[],
    })
}

fn extent(side_px: usize) -> wgpu::Extent3d {
    wgpu::Extent3d {
        width: side_px as u32,
        height: side_px as u32,
        depth_or_array_layers: 1,
    }
}

fn bindings(
    device: &wgpu::Device,
    layout: &wgpu::BindGroupLayout,
    uniform: &wgpu::Buffer,
    photograph: &Held,
    direction: &Held,
) -> wgpu::BindGroup {
    let view = |held: &Held| {
        held.texture
            .create_view(&wgpu::TextureViewDescriptor::default())
    };
    device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: Some("perturbed photograph"),
        layout,
        entries: &[
            wgpu::BindGroupEntry {
                binding: 0,
                resource: uniform.as_entire_binding(),
            },
            wgpu::BindGroupEntry {
                binding: 1,
                resource: wgpu::BindingResource::TextureView(&view(photograph)),
            },
            wgpu::BindGroupEntry {
                binding: 2,
                resource: wgpu::BindingResource::TextureView(&view(direction)),
            },
        ],
    })
}

/// Writes planar `values` to the texture unless it already holds this very array.
fn upload(queue: &wgpu::Queue, side_px: usize, held: &mut Held, values: &Arc<[f32]>) {
    let plane = side_px * side_px;
    if values.len() != 3 * plane
        || held
            .values
            .as_ref()
            .is_some_and(|known| Arc::ptr_eq(known, values))
    {
        return;
    }
    let texels: Vec<u8> = (0..plane)
        .flat_map(|pixel| {
            [
                values[pixel],
                values[plane + pixel],
                values[2 * plane + pixel],
                0.0,
            ]
        })
        .flat_map(f32::to_le_bytes)
        .collect();
    queue.write_texture(
        held.texture.as_image_copy(),
        &texels,
        wgpu::TexelCopyBufferLayout {
            offset: 0,
            bytes_per_row: Some(side_px as u32 * 16),
            rows_per_image: None,
        },
        extent(side_px),
    );
    held.values = Some(Arc::clone(values));
}
