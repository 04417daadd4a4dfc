//! `etascope devices`.

use super::table::table;
use super::{ListArgs, print, print_json};
use crate::{Result, device};

/// Prints the compute devices.
pub fn run(args: ListArgs) -> Result<()> {
    let devices = device::list();
    if args.json {
        return print_json(&devices);
    }
    let mut rows = vec![["name", "interface", "kind"].map(str::to_owned).to_vec()];
    for info in &devices {
        let kind = match (info.api.as_str(), info.software) {
            ("flex", _) => "processor",
            (_, true) => "software adapter (slow; never chosen by auto)",
            (_, false) => "graphics adapter",
        };
        rows.push(vec![info.name.clone(), info.api.clone(), kind.to_owned()]);
    }
    print(&table(&rows))
}
