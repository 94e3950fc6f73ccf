use rumba_core::worker::*;
use rumba_sysbench::OptionSet;
use rumba_sysbench::options::{BuiltIn, Source};
use rumba_sysbench::settings::Settings;
use rumba_sysbench_tests::*;
use rumba_workload_sysbench::counters::Counters;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;
struct P {
    until: Instant,
    start: Instant,
}
impl Pace for P {
    fn poll_turn(&mut self, _: &mut Context<'_>) -> Poll<bool> {
        Poll::Ready(Instant::now() < self.until)
    }
    fn start(&mut self, _: OpKind) {
        self.start = Instant::now();
    }
    fn done(&mut self, _: OpKind, _: Op) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }
}
fn main() {
    let mut a = std::env::args().skip(1);
    let name = a.next().unwrap();
    let mut o = OptionSet::general();
    for i in BuiltIn::find(&name).unwrap().options {
        o.declare(i.clone()).unwrap();
    }
    for w in a {
        let (n, v) = w.trim_start_matches("--").split_once('=').unwrap();
        o.set(n, Some(v), Source::CommandLine).unwrap();
    }
    let (s, _) = Settings::read(&mut o).unwrap();
    let t = BuiltInTest::of(&name, Purpose::Run, &o, &s).unwrap();
    let st = t.start().unwrap();
    let begun = Instant::now();
    let c: Vec<_> = std::thread::scope(|sc| {
        let st = &st;
        let h: Vec<_> = (0..s.threads)
            .map(|n| {
                sc.spawn(move || {
                    let c = Arc::<Counters>::default();
                    let mut cl = st.client(n, c.clone(), 1).unwrap();
                    let now = Instant::now();
                    block_on(cl.run(&mut P { until: now + std::time::Duration::from_secs(4), start: now })).unwrap();
                    c
                })
            })
            .collect();
        h.into_iter().map(|h| h.join().unwrap()).collect()
    });
    let e: u64 = c.iter().map(|c| c.times().events).sum();
    let el = begun.elapsed().as_secs_f64();
    println!("{name} events {e} {:.2}/s in {el:.3}s", e as f64 / el);
}
