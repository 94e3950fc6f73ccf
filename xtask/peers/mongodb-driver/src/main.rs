//! Finds documents by id through the official Rust driver of MongoDB, and prints the cost like `wire_clients` of rumba.
//! `xtask bench mongodb-null-server` runs both in turns.
//!
//! `mongodb-driver SOCKET [clients=64] [seconds=5] [warmup=5] [rows=100000]`
//!
//! Each client has its own connection, and waits for an answer before its next request. As in `wire_clients`, answers
//! are not decoded: they stay raw documents.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use mongodb::bson::{RawDocumentBuf, doc};
use mongodb::options::{ClientOptions, ServerAddress};
use mongodb::{Client, Collection};

type Failure = Box<dyn Error + Send + Sync>;

/// An endless sequence of ids for one client: SplitMix64, uniform and with almost no cost.
struct Ids {
    random: u64,
    rows: u64,
}

impl Ids {
    fn next(&mut self) -> i64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        ((u128::from(mixed) * u128::from(self.rows)) >> 64) as i64 + 1
    }
}

async fn client(of: Collection<RawDocumentBuf>, mut ids: Ids, finds: Arc<AtomicU64>) -> Result<(), Failure> {
    loop {
        let id = ids.next();
        if of.find_one(doc! { "_id": id }).await?.is_none() {
            return Err(format!("id {id} gave no document; are there so many?").into());
        }
        finds.fetch_add(1, Relaxed);
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let socket = arguments.next().ok_or("the path of the server's socket is missing")?;
    let requested = arguments.map(|text| text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned())));
    let requested: BTreeMap<_, _> = requested.collect::<Option<_>>().ok_or("arguments are written key=value")?;
    let number = |key: &str, default: u32| requested.get(key).map_or(Ok(default), |text| text.parse::<u32>());
    let (clients, warmup, seconds) = (number("clients", 64)?, number("warmup", 5)?, number("seconds", 5)?);
    let rows = number("rows", 100_000)?;
    let options = ClientOptions::builder()
        .hosts(vec![ServerAddress::Unix { path: socket.into() }])
        .direct_connection(true)
        .min_pool_size(clients)
        .max_pool_size(clients)
        .build();
    let collection = Client::with_options(options)?.database("ycsb").collection::<RawDocumentBuf>("usertable");
    let finds = Arc::new(AtomicU64::new(0));
    let mut running = tokio::task::JoinSet::new();
    for number in 0..clients {
        let ids = Ids { random: u64::from(number), rows: u64::from(rows) };
        running.spawn(client(collection.clone(), ids, finds.clone()));
    }
    tokio::time::sleep(Duration::from_secs(u64::from(warmup))).await;
    let (start, cpu, before) = (Instant::now(), cpu_us()?, finds.load(Relaxed));
    tokio::time::sleep(Duration::from_secs(u64::from(seconds))).await;
    let (span, cpu, count) = (start.elapsed().as_secs_f64(), cpu_us()? - cpu, (finds.load(Relaxed) - before) as f64);
    if let Some(ended) = running.try_join_next() {
        ended??;
    }
    println!("{}", serde_json::json!({ "queries_per_s": count / span, "client_cpu_us_per_query": cpu / count }));
    std::process::exit(0)
}

/// The CPU time of this process so far, over all its threads, in microseconds. The kernel reports hundredths of a
/// second.
fn cpu_us() -> Result<f64, Failure> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').ok_or("/proc/self/stat has no name")?;
    let times: Vec<f64> = fields.split_whitespace().skip(11).take(2).map(str::parse).collect::<Result<_, _>>()?;
    Ok(times.iter().sum::<f64>() * 1e4)
}
