//! Queueing theory for servers with equal service times. With random arrivals served in order, each arrival waits for
//! the arrival `servers` places before it (Lindley's recursion for each server, because the servers take turns).

/// LinkBench's mix with only reads of single nodes: operations with equal service times, if the server allows it.
pub const READS_OF_NODES: [&str; 10] = [
    "getnode=100",
    "getlinklist=0",
    "getlink=0",
    "addlink=0",
    "updatelink=0",
    "deletelink=0",
    "countlink=0",
    "addnode=0",
    "updatenode=0",
    "deletenode=0",
];

/// Arrivals that one rate is judged by.
const ARRIVALS: usize = 400_000;
/// The first arrivals come to an empty queue, and are not counted.
const FIRST: usize = 20_000;
/// The relative distance of its bounds at which a rate counts as found.
const NEAR: f64 = 1e-3;

/// The highest rate, per second, at which this share of the response times stays below a limit, with this many servers
/// that take `service_s` each.
pub fn highest_rate(servers: usize, service_s: f64, share: f64, limit_s: f64) -> f64 {
    let keeps = |rate: f64| {
        let (mut over, mut all) = (0usize, 0usize);
        for response_s in responses_s(servers, service_s, rate).take(ARRIVALS).skip(FIRST) {
            all += 1;
            over += usize::from(response_s >= limit_s);
        }
        (over as f64) < (1.0 - share) * all as f64
    };
    let (mut kept, mut missed) = (0.0, servers as f64 / service_s);
    while missed - kept > missed * NEAR {
        let middle = (kept + missed) / 2.0;
        if keeps(middle) { kept = middle } else { missed = middle }
    }
    kept
}

/// The response times of arrivals at random times, in seconds and without end.
fn responses_s(servers: usize, service_s: f64, rate: f64) -> impl Iterator<Item = f64> {
    let (mut now_s, mut free_s) = (0.0, vec![0.0f64; servers]);
    (0..).map(move |number: usize| {
        now_s += gap(number as u64) / rate;
        let free = &mut free_s[number % servers];
        *free = free.max(now_s) + service_s;
        *free - now_s
    })
}

/// An exponential gap of mean 1: the same for each number, by SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn gap(number: u64) -> f64 {
    let mut mixed = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^= mixed >> 31;
    // 53 random bits; 1 - u is in (0, 1], so the logarithm is finite.
    let u = (mixed >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0);
    -(1.0 - u).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looser_latency_limit_and_more_servers_raise_utilization() {
        let of = |servers, limit_s| highest_rate(servers, 1.0, 0.99, limit_s) / servers as f64;
        assert!(of(1, 1.01) < 0.02, "who may hardly wait needs a server that is idle");
        assert!(of(1, 3.0) < of(4, 3.0) && of(4, 3.0) < of(32, 3.0) && of(32, 3.0) < 1.0);
        // One server, by the exact distribution of M/D/1 (Erlang 1909): at half its load one in 100 waits 3.34 and more.
        assert!((of(1, 4.34) - 0.5).abs() < 0.01, "{}", of(1, 4.34));
    }
}
