//! A map of numbers over a grid, drawn by a shader on a scale of colours.

use std::collections::BTreeMap;
use std::sync::Arc;

use eframe::egui_wgpu::{self, wgpu};

use crate::figure::palette::VIRIDIS;

/// Source of the shader.
pub const HEAT_WGSL: &str = include_str!("../../shaders/heat.wgsl");

/// Size of the shader's `View` in bytes: eight scalars, a colour and the scale.
const UNIFORM_BYTES: usize = 8 * 4 + 16 + VIRIDIS.len() * 16;

/// One map of numbers, to be painted.
#[derive(Clone, Debug)]
pub struct Heat {
    /// Tells the maps apart that are painted in one frame.
    pub slot: u32,
    /// Rows and columns of the grid.
    pub shape: [usize; 2],
    /// `rows · columns` numbers, row after row; NaN is hatched.
    pub values: Arc<[f32]>,
    /// Numbers at the ends of the scale.
    pub range: [f32; 2],
    /// Interpolate between positions instead of showing squares.
    pub interpolate: bool,
    /// Strength of the map, 0 to 1; stale maps are shown weaker.
    pub strength: f32,
    /// Side of the drawing in pixels.
    pub side_px: f32,
    /// sRGB colour behind a weakened map.
    pub background: [f32; 3],
}

impl Heat {
    fn uniform(&self) -> [u8; UNIFORM_BYTES] {
        let [rows, columns] = self.shape;
        let words = [
            rows as u32,
            columns as u32,
            u32::from(self.interpolate),
            self.slot,
        ];
        let scalars = [self.range[0], self.range[1], self.strength, self.side_px];
        let stops = VIRIDIS.map(|rgb| rgb.map(|value| f32::from(value) / 255.0));
        let colours = [self.background].into_iter().chain(stops);
        let values = words
            .into_iter()
            .map(u32::to_le_bytes)
            .chain(scalars.into_iter().map(f32::to_le_bytes))
            .chain(colours.flat_map(|[r, g, b]| [r, g, b, 1.0].map(f32::to_le_bytes)));
        let mut bytes = [0; UNIFORM_BYTES];
        for (slot, value) in bytes.chunks_exact_mut(4).zip(values) {
            slot.copy_from_slice(&value);
        }
        bytes
    }
}

/// What one slot holds on the device.
struct Held {
    shape: [usize; 2],
    values: Option<Arc<[f32]>>,
    texture: wgpu::Texture,
    uniform: wgpu::Buffer,
    bindings: wgpu::BindGroup,
}

/// The pipeline of all maps on the window's own device.
pub struct HeatPipeline {
    pipeline: wgpu::RenderPipeline,
    layout: wgpu::BindGroupLayout,
    held: BTreeMap<u32, Held>,
}

impl HeatPipeline {
    /// Builds the pipeline for surfaces of `format`.
    pub fn new(device: &wgpu::Device, format: wgpu::TextureFormat) -> Self {
        const LABEL: Option<&str> = Some("map of numbers");
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: LABEL,
            source: wgpu::ShaderSource::Wgsl(HEAT_WGSL.into()),
        });
        let entry = |binding, ty| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::FRAGMENT,
            ty,
            count: None,
        };
        let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: LABEL,
            entries: &[
                entry(
                    0,
                    wgpu::BindingType::Buffer {
                        ty: wgpu::BufferBindingType::Uniform,
                        has_dynamic_offset: false,
                        min_binding_size: None,
                    },
                ),
                entry(
                    1,
                    wgpu::BindingType::Texture {
                        sample_type: wgpu::TextureSampleType::Float { filterable: false },
                        view_dimension: wgpu::TextureViewDimension::D2,
                        multisampled: false,
                    },
                ),
            ],
        });
        let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: LABEL,
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let pipeline = device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
            label: LABEL,
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
        Self {
            pipeline,
            layout,
            held: BTreeMap::new(),
        }
    }

    /// Uploads what changed since the last call. A map whose numbers do not fill its grid is not drawn.
    pub fn prepare(&mut self, device: &wgpu::Device, queue: &wgpu::Queue, heat: &Heat) {
        let [rows, columns] = heat.shape;
        if rows * columns != heat.values.len() || heat.values.is_empty() {
            self.held.remove(&heat.slot);
            return;
        }
        let layout = &self.layout;
        let held = self
            .held
            .entry(heat.slot)
            .or_insert_with(|| holder(device, layout, heat.shape));
        if held.shape != heat.shape {
            *held = holder(device, layout, heat.shape);
        }
        let is_known = (held.values.as_ref()).is_some_and(|known| Arc::ptr_eq(known, &heat.values));
        if !is_known {
            let texels: Vec<u8> = heat
                .values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect();
            queue.write_texture(
                held.texture.as_image_copy(),
                &texels,
                wgpu::TexelCopyBufferLayout {
                    offset: 0,
                    bytes_per_row: Some(columns as u32 * 4),
                    rows_per_image: None,
                },
                held.texture.size(),
            );
            held.values = Some(Arc::clone(&heat.values));
        }
        queue.write_buffer(&held.uniform, 0, &heat.uniform());
    }

    /// Draws the map of a slot that was prepared.
    pub fn paint(&self, pass: &mut wgpu::RenderPass<'_>, slot: u32) {
        if let Some(held) = self.held.get(&slot) {
            pass.set_pipeline(&self.pipeline);
            pass.set_bind_group(0, &held.bindings, &[]);
            pass.draw(0..3, 0..1);
        }
    }
}

fn holder(device: &wgpu::Device, layout: &wgpu::BindGroupLayout, shape: [usize; 2]) -> Held {
    let [rows, columns] = shape;
    let texture = device.create_texture(&wgpu::TextureDescriptor {
        label: Some("map of numbers"),
        size: wgpu::Extent3d {
            width: columns as u32,
            height: rows as u32,
            depth_or_array_layers: 1,
        },
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format: wgpu::TextureFormat::R32Float,
        usage: wgpu::TextureUsages::TEXTURE_BINDING | wgpu::TextureUsages::COPY_DST,
        view_formats: &[],
    });
    let uniform = device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("map of numbers"),
        size: UNIFORM_BYTES as u64,
        usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    let view = texture.create_view(&wgpu::TextureViewDescriptor::default());
    let bindings = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: Some("map of numbers"),
        layout,
        entries: &[
            wgpu::BindGroupEntry {
                binding: 0,
                resource: uniform.as_entire_binding(),
            },
            wgpu::BindGroupEntry {
                binding: 1,
                resource: wgpu::BindingResource::TextureView(&view),
            },
        ],
    });
    Held {
        shape,
        values: None,
        texture,
        uniform,
        bindings,
    }
}

impl egui_wgpu::CallbackTrait for Heat {
    fn prepare(
        &self,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        _screen: &egui_wgpu::ScreenDescriptor,
        _encoder: &mut wgpu::CommandEncoder,
        resources: &mut egui_wgpu::CallbackResources,
    ) -> Vec<wgpu::CommandBuffer> {
        if let Some(pipeline) = resources.get_mut::<HeatPipeline>() {
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
        if let Some(pipeline) = resources.get::<HeatPipeline>() {
            pipeline.paint(pass, self.slot);
        }
    }
}
