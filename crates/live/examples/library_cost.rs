//! What a library costs: `library_cost DIR 1000` makes so many results of the given one, beside which nothing else is in
//! their directory, and prints how long their list took until its last byte had come: first while no record of them had
//! been read, then with all that was read kept beside them, each time by a server that had just been started.

use std::error::Error;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Instant;

use rumba_live::{Content, Library, Server, listen};

const REPEATS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(of), Some(count)) = (args.next(), args.next()) else {
        return Err("usage: library_cost DIR COUNT".into());
    };
    let (of, count): (&Path, usize) = (Path::new(&of), count.parse()?);
    let base = tempfile::tempdir_in(of.parent().unwrap_or(of))?;
    (0..count).try_for_each(|number| copy(of, base.path(), number))?;
    let first_ms = list_ms(base.path(), count)?;
    let reads = Instant::now();
    let library = Library::new(base.path());
    library.list()?;
    while library.read_next() {}
    let read_s = reads.elapsed().as_secs_f64();
    let ms = (0..REPEATS).map(|_| list_ms(base.path(), count)).collect::<Result<Vec<f64>, _>>()?;
    println!("{}", serde_json::json!({ "results": count, "first_ms": first_ms, "read_s": read_s, "ms": ms }));
    Ok(())
}

/// The same results under another name and time; what is large is shared.
fn copy(of: &Path, base: &Path, number: usize) -> Result<(), Box<dyn Error>> {
    let to = base.join(format!("results-{number:04}"));
    let mut experiment: serde_json::Value = serde_json::from_slice(&fs::read(of.join("experiment.json"))?)?;
    let (month, day, hour) = (number / 84 % 12 + 1, number / 3 % 28 + 1, number % 24);
    experiment["started"] = format!("2026-{month:02}-{day:02}T{hour:02}:00:00Z").into();
    fs::create_dir(&to)?;
    fs::write(to.join("experiment.json"), serde_json::to_string_pretty(&experiment)?)?;
    for name in ["experiment.toml", "report.html"] {
        fs::hard_link(of.join(name), to.join(name))?;
    }
    for trial in fs::read_dir(of.join("trials"))? {
        let trial = trial?;
        let directory = to.join("trials").join(trial.file_name());
        fs::create_dir_all(&directory)?;
        fs::hard_link(trial.path().join("record.json"), directory.join("record.json"))?;
    }
    Ok(())
}

/// Milliseconds from the start of a server to the end of its list.
fn list_ms(base: &Path, count: usize) -> Result<f64, Box<dyn Error>> {
    let listener = listen(0)?;
    let began = Instant::now();
    let server = Server::start(listener, Content { library: Library::new(base), live: None })?;
    let address = server.address().strip_prefix("http://").ok_or("no address")?;
    let (host, path) = address.split_once('/').ok_or("no path")?;
    let mut stream = TcpStream::connect(host)?;
    stream.write_all(format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let ms = began.elapsed().as_secs_f64() * 1e3;
    if !answer.contains(&format!("{count} of {count} results")) {
        return Err(format!("the list is not whole: {}", answer.lines().next().unwrap_or_default()).into());
    }
    Ok(ms)
}
