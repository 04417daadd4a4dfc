//! Memory that the host's operations hand on to each other.
//!
//! An encoder's activations are megabytes that live for one operation. Fresh memory for each would be
//! cleared by the system and again by the allocator; here the input that an operation has used up
//! becomes the output of a later one.

use std::cell::RefCell;

use burn::backend::flex::FlexTensor;

/// Buffers kept: enough for the activations around a residual.
const KEPT: usize = 3;

/// A buffer this many times larger than what is asked for is left to others.
const EXCESS: usize = 4;

thread_local! {
    static USED_UP: RefCell<Vec<Vec<f32>>> = const { RefCell::new(Vec::new()) };
}

/// `len` values of no meaning, all of which are to be written.
pub fn take(len: usize) -> Vec<f32> {
    let mut buffer = USED_UP
        .with_borrow_mut(|buffers| {
            let fits = |buffer: &Vec<f32>| (len..=EXCESS * len).contains(&buffer.capacity());
            let best = buffers
                .iter()
                .enumerate()
                .filter(|(_, buffer)| fits(buffer));
            let best = best.min_by_key(|(_, buffer)| buffer.capacity());
            best.map(|(index, _)| index)
                .map(|index| buffers.swap_remove(index))
        })
        .unwrap_or_default();
    buffer.resize(len, 0.0);
    buffer
}

/// Keeps the memory of a tensor that nobody else holds.
pub fn give_back(tensor: FlexTensor) {
    if !tensor.is_unique() {
        return;
    }
    let Ok(buffer) = tensor.into_data().try_into_vec::<f32>() else {
        return;
    };
    USED_UP.with_borrow_mut(|buffers| {
        buffers.push(buffer);
        if buffers.len() > KEPT {
            let smallest = buffers.iter().enumerate();
            let smallest = smallest.min_by_key(|(_, buffer)| buffer.capacity());
            if let Some((index, _)) = smallest {
                buffers.swap_remove(index);
            }
        }
    });
}
