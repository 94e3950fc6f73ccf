//! Writes a page (first argument) from synthetic results and prints its tables:
//! for the development of the report only. No figure in it was measured.
//! A second argument `ladder` takes several numbers of clients, `servers` engines in servers.
#[path = "../tests/report/support/mod.rs"]
mod support;

use support::synthetic::{BTREE, LSM, LSM_ZSTD, Plan, results, sample, servers};

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let file = arguments.next();
    let results = match arguments.next() {
        Some(which) if which == "servers" => servers(),
        Some(_) => {
            let plan = Plan { clients: &[1, 4, 16, 64], repeats: 2, loops: 12, loop_s: 120 };
            results(&[LSM, LSM_ZSTD, BTREE], plan)
        }
        None => sample(),
    };
    let summary = support::compare::summarise(&results);
    print!("{}", rumba_report::tables(&results, &summary, &rumba_report::TableOptions::default()));
    if let Some(file) = file {
        std::fs::write(file, rumba_report::html(&results, &summary))?;
    }
    Ok(())
}
