//! What one says of a profile in a line: plateau, onset, peak, crossing, shape word (spec §1).
