// Display of a map of numbers over a grid, such as the cosine at each position: nothing here is measured.
//
// The numbers are a texture of one channel, read by integer coordinates. A number that is not one (NaN) is
// undefined and is hatched. Colours are sRGB values in [0, 1] throughout; only `fragment_linear` converts.

// Colours of the scale, evenly spaced from `low` to `high`.
const STOPS: u32 = 17u;

struct View {
    rows: u32,
    columns: u32,
    // 1 interpolates between positions, 0 shows them as squares.
    interpolate: u32,
    // Marks one drawing of the many that share this shader; not read here.
    slot: u32,
    // Numbers at the ends of the scale.
    low: f32,
    high: f32,
    // 1 shows the map at full strength, less fades it to `background`.
    strength: f32,
    // Side of the drawing in pixels, for the width of the hatching.
    side: f32,
    background: vec4f,
    stops: array<vec4f, STOPS>,
}

@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var numbers: texture_2d<f32>;

struct Corner {
    @builtin(position) position: vec4f,
    @location(0) uv: vec2f,
}

// One triangle that covers the viewport; `uv` runs from the top left corner.
@vertex
fn vertex(@builtin(vertex_index) index: u32) -> Corner {
    let corner = vec2f(f32((index << 1u) & 2u), f32(index & 2u));
    return Corner(vec4f(corner.x * 2.0 - 1.0, 1.0 - corner.y * 2.0, 0.0, 1.0), corner);
}

fn number_at(position: vec2i) -> f32 {
    let last = vec2i(i32(view.columns), i32(view.rows)) - 1;
    return textureLoad(numbers, clamp(position, vec2i(0), last), 0).r;
}

// Whether a number is none. Comparisons with NaN may be optimised away, the bits may not.
fn is_undefined(value: f32) -> bool {
    return (bitcast<u32>(value) & 0x7fffffffu) > 0x7f800000u;
}

fn scale_colour(value: f32) -> vec3f {
    let span = max(view.high - view.low, 1e-20);
    let place = clamp((value - view.low) / span, 0.0, 1.0) * f32(STOPS - 1u);
    let below = min(u32(place), STOPS - 2u);
    return mix(view.stops[below].rgb, view.stops[below + 1u].rgb, place - f32(below));
}

fn hatching(uv: vec2f) -> vec3f {
    let along = fract((uv.x + uv.y) * view.side / 8.0);
    return select(vec3f(0.35), vec3f(0.65), along < 0.5);
}

fn colour(uv: vec2f) -> vec3f {
    let place = uv * vec2f(f32(view.columns), f32(view.rows));
    var value = number_at(vec2i(floor(place)));
    if view.interpolate == 1u {
        let corner = floor(place - 0.5);
        let weight = place - 0.5 - corner;
        let position = vec2i(corner);
        let top = mix(number_at(position), number_at(position + vec2i(1, 0)), weight.x);
        let bottom = mix(
            number_at(position + vec2i(0, 1)),
            number_at(position + vec2i(1, 1)),
            weight.x,
        );
        value = mix(top, bottom, weight.y);
    }
    var shown = hatching(uv);
    if !is_undefined(value) {
        shown = scale_colour(value);
    }
    return mix(view.background.rgb, shown, view.strength);
}

// For surfaces that take sRGB values as they are: what egui prefers.
@fragment
fn fragment_gamma(corner: Corner) -> @location(0) vec4f {
    return vec4f(colour(corner.uv), 1.0);
}

// For surfaces that encode linear values to sRGB.
@fragment
fn fragment_linear(corner: Corner) -> @location(0) vec4f {
    let value = colour(corner.uv);
    let low = value / 12.92;
    let high = pow((value + 0.055) / 1.055, vec3f(2.4));
    return vec4f(select(high, low, value <= vec3f(0.04045)), 1.0);
}
