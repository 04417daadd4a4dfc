// Display of a perturbed photograph x + ηu, straight from x, u and η: nothing here is measured.
//
// x and u are textures of the encoder's input side, read by integer coordinates only, so that no
// filtering is asked of 32-bit float textures. Colours are sRGB values in [0, 1] throughout; only
// `fragment_linear` converts, for surfaces that encode to sRGB themselves.

struct View {
    // Side of both textures in pixels.
    side: u32,
    // 0: original left of the seam, perturbed right of it. 1: the perturbation alone, amplified.
    // 2: the perturbed image in grey, with the values that no screen can show in colour.
    mode: u32,
    // 1 interpolates between pixels, 0 shows them as squares.
    interpolate: u32,
    padding: u32,
    // L2 norm of the perturbation.
    eta: f32,
    // Amplification in mode 1.
    gain: f32,
    // Fraction of the width left of the seam in mode 0.
    seam: f32,
    // 1 shows the image at full strength, less fades it to `background`.
    strength: f32,
    background: vec4f,
    // Marks of values below 0 and above 1.
    below: vec4f,
    above: vec4f,
}

@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var photograph: texture_2d<f32>;
@group(0) @binding(2) var direction: texture_2d<f32>;

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

fn pixel_colour(pixel: vec2i, is_original: bool) -> vec3f {
    let last = i32(view.side) - 1;
    let at = clamp(pixel, vec2i(0), vec2i(last));
    let x = textureLoad(photograph, at, 0).rgb;
    let step = view.eta * textureLoad(direction, at, 0).rgb;
    if view.mode == 1u {
        return clamp(vec3f(0.5) + view.gain * step, vec3f(0.0), vec3f(1.0));
    }
    if view.mode == 2u {
        let value = x + step;
        if any(value > vec3f(1.0)) {
            return view.above.rgb;
        }
        if any(value < vec3f(0.0)) {
            return view.below.rgb;
        }
        return vec3f(dot(value, vec3f(0.2126, 0.7152, 0.0722)));
    }
    return clamp(select(x + step, x, is_original), vec3f(0.0), vec3f(1.0));
}

fn colour(uv: vec2f) -> vec3f {
    let is_original = uv.x < view.seam;
    let place = uv * f32(view.side);
    var shown: vec3f;
    if view.interpolate == 1u {
        let corner = floor(place - 0.5);
        let weight = place - 0.5 - corner;
        let pixel = vec2i(corner);
        let top = mix(
            pixel_colour(pixel, is_original),
            pixel_colour(pixel + vec2i(1, 0), is_original),
            weight.x,
        );
        let bottom = mix(
            pixel_colour(pixel + vec2i(0, 1), is_original),
            pixel_colour(pixel + vec2i(1, 1), is_original),
            weight.x,
        );
        shown = mix(top, bottom, weight.y);
    } else {
        shown = pixel_colour(vec2i(floor(place)), is_original);
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
