//! `etascope encoders`.

use super::table::table;
use super::{ListArgs, print, print_json};
use crate::Result;
use crate::encoders::registry;

/// Prints the encoders.
pub fn run(args: ListArgs) -> Result<()> {
    let specs: Vec<_> = registry::all().collect();
    if args.json {
        return print_json(&specs);
    }
    let heading = [
        "name",
        "title",
        "input",
        "pooled",
        "parameters",
        "weights",
        "stages",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for spec in &specs {
        let stages: Vec<&str> = spec
            .stages
            .iter()
            .map(|stage| stage.name.as_str())
            .collect();
        rows.push(vec![
            spec.name.to_owned(),
            spec.title.to_owned(),
            format!("{} px", spec.side_px),
            spec.pooled_len.to_string(),
            format!("{:.2} M", spec.parameters as f64 / 1e6),
            spec.licence.to_owned(),
            stages.join(" "),
        ]);
    }
    print(&table(&rows))
}
