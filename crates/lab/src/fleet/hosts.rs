//! The client hosts of a trial: requests to all of them, their losses, and their records.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rumba_engine_api::error::EngineError;
use rumba_engine_api::worker::HostShare;
use rumba_engine_api::workload::State;
use rumba_fleet::{Arrival, ClockOffset, Coordinator, Received};
use rumba_results::fleet::{ClientHost, FleetPlan, OnLost};
use rumba_results::metric::Metric;
use rumba_results::record::TrialPlan;
use rumba_results::warning::Warning;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::counts;
use super::orders::{Head, Notice, Order, Ready, Role};
use super::signs;
use crate::run::cells::Counts;
use crate::run::conflicts::merge;

/// The longest wait for an answer of a host that gives signs of life: it may have to open thousands of sessions.
const ANSWER: Duration = Duration::from_secs(600);
/// The longest wait for counts.
const COUNTS: Duration = Duration::from_secs(30);
/// Counts that take longer are late.
const LATE: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub(super) struct Host {
    /// Its last sums, and when they came.
    head: Head,
    heard: Option<Instant>,
    /// The same when the phase began.
    base: State,
    /// Why and when it was lost.
    pub lost: Option<String>,
    /// Whether its clients have ended.
    pub has_ended: bool,
    first_offset: Option<ClockOffset>,
    offset: ClockOffset,
    skew_ns: u64,
    late_frames: u64,
    missing_frames: u64,
    /// Operations of the mix, and how late they were started.
    ops: u64,
    late_ns: u64,
    /// Elapsed time of the mix, and the CPU time in it.
    mix: Duration,
    mix_client_cpu_ns: u64,
    mix_host_cpu_s: Option<f64>,
}

/// The client hosts of a trial.
pub struct Fleet {
    coordinator: Coordinator,
    plan: FleetPlan,
    hosts: Vec<Host>,
    began: Instant,
    clients: u32,
    /// The workload's own counters of the phases before.
    counted_before: BTreeMap<String, u64>,
    /// The workload's state when the phase began.
    base: State,
    /// The first loss or failure that ends the trial.
    failure: Option<String>,
    warnings: Vec<Warning>,
    /// Hosts whose sessions on the server may be left.
    newly_lost: Vec<u32>,
    /// Whether the data is loaded, so that the other hosts can go on without a lost one.
    runs_mix: bool,
}

/// The answer to a request, as it arrives.
struct Reply {
    rank: u32,
    number: u64,
    at: Instant,
    body: Result<Value, String>,
    tail: Vec<u8>,
}

/// An answer, its binary tail, and how long it took.
struct Answered {
    body: Value,
    tail: Vec<u8>,
    took: Duration,
}

impl Fleet {
    /// The hosts that a coordinator has gathered.
    pub fn new(coordinator: Coordinator, plan: FleetPlan) -> Self {
        let hosts = coordinator.peers().iter().map(|_| Host::default()).collect();
        Self {
            coordinator,
            plan,
            hosts,
            began: Instant::now(),
            clients: 0,
            counted_before: BTreeMap::new(),
            base: State::new(),
            failure: None,
            warnings: Vec::new(),
            newly_lost: Vec::new(),
            runs_mix: false,
        }
    }

    /// Connects all hosts to the server. `script` is the digest of the workload's script here.
    ///
    /// # Errors
    /// A host that cannot reach the server, or has another script; a loss.
    pub fn join(&mut self, plan: &TrialPlan, script: Option<&str>) -> Result<(), EngineError> {
        let ranks = self.there();
        self.measure_clocks(&ranks);
        for (rank, ready) in self.ask_all::<Ready>(&Order::Trial { plan: Box::new(plan.clone()) }, ANSWER) {
            if ready.script.as_deref() != script {
                let words = format!("{} has another text of the workload's script", self.name(rank));
                self.failure.get_or_insert(words);
            }
        }
        self.clients = plan.clients;
        self.check()
    }

    /// The hosts that take part.
    pub(super) fn there(&self) -> Vec<u32> {
        (0..self.hosts.len() as u32).filter(|rank| self.hosts[*rank as usize].lost.is_none()).collect()
    }

    pub(super) fn host(&mut self, rank: u32) -> &mut Host {
        &mut self.hosts[rank as usize]
    }

    /// The name of a host in messages.
    fn name(&self, rank: u32) -> String {
        format!("the client host {} (rank {rank})", self.coordinator.peers()[rank as usize].host.name)
    }

    /// The first failure as an error.
    pub(super) fn check(&self) -> Result<(), EngineError> {
        self.failure.as_ref().map_or(Ok(()), |words| Err(failed(words)))
    }

    pub(super) fn measure_clocks(&mut self, ranks: &[u32]) {
        let mut others = Vec::new();
        self.coordinator.measure_clocks(ranks, |arrival| others.push(arrival));
        others.into_iter().for_each(|arrival| drop(self.take(arrival)));
        for rank in self.there() {
            let offset = self.coordinator.peers()[rank as usize].clock;
            let host = self.host(rank);
            host.offset = offset;
            host.first_offset.get_or_insert(offset);
        }
    }

    /// A moment by each host's clock.
    pub(super) fn by_clock_of(&self, rank: u32, at: Instant) -> u64 {
        self.hosts[rank as usize].offset.to_other(self.coordinator.clock().at_ns(at))
    }

    pub(super) fn round_trip(&self) -> Duration {
        let longest = self.there().into_iter().map(|rank| self.hosts[rank as usize].offset.round_trip_ns).max();
        Duration::from_nanos(longest.unwrap_or_default())
    }

    /// How far a host's start was from the agreed time.
    pub(super) fn note_start(&mut self, rank: u32, agreed: Instant, started_ns: u64, head: Head) {
        let agreed_ns = self.by_clock_of(rank, agreed);
        let host = self.host(rank);
        (host.head, host.heard) = (head, Some(agreed));
        host.skew_ns = host.skew_ns.max(started_ns.abs_diff(agreed_ns));
    }

    /// Handles what arrives; returns an answer to a request.
    fn take(&mut self, arrival: Arrival) -> Option<Reply> {
        let Arrival { rank, at, what } = arrival;
        match what {
            Received::Answer(number, body, tail) => return Some(Reply { rank, number, at, body, tail }),
            Received::Pong(..) => {}
            Received::Lost(why) => self.lose(rank, &why),
            Received::Notice(body) => match serde_json::from_value(body) {
                Ok(Notice::Ended { failure }) => {
                    self.host(rank).has_ended = true;
                    if let Some(words) = failure {
                        let words = format!("{}: {words}", self.name(rank));
                        self.failure.get_or_insert(words);
                    }
                }
                Err(error) => self.lose(rank, &format!("it sent what is not known: {error}")),
            },
        }
        None
    }

    /// Takes what arrives until a time; true if something came.
    pub(super) fn take_next(&mut self, until: Instant) -> bool {
        let Some(arrival) = self.coordinator.receive(until) else { return false };
        // A late answer is of no use.
        let _ = self.take(arrival);
        true
    }

    /// A host is lost.
    fn lose(&mut self, rank: u32, why: &str) {
        if self.hosts[rank as usize].lost.is_some() {
            return;
        }
        let (name, at_s) = (self.name(rank), self.began.elapsed().as_secs_f64());
        let words = format!("lost {at_s:.1} s after the hosts came together: {why}");
        self.coordinator.dismiss(rank);
        self.newly_lost.push(rank);
        let host = self.host(rank);
        (host.lost, host.has_ended) = (Some(words.clone()), true);
        let is_degraded = self.plan.on_lost == OnLost::Degraded && self.runs_mix;
        let goes_on = is_degraded && self.hosts.iter().any(|host| host.lost.is_none());
        if goes_on {
            self.warnings.push(self.degraded(rank, &format!("{name} was {words}")));
        } else {
            let remedy = match self.plan.on_lost {
                OnLost::Abort => "; fleet.on_lost = \"degraded\" goes on without it",
                OnLost::Degraded if self.runs_mix => "",
                OnLost::Degraded => "; without it the data cannot be loaded",
            };
            self.failure.get_or_insert(format!("{name} was {words}{remedy}"));
        }
    }

    /// The warning that a part of the load is missing.
    fn degraded(&self, rank: u32, words: &str) -> Warning {
        let share = HostShare { host: rank, hosts: self.plan.hosts };
        let percent = 100.0 * f64::from(share.count(self.clients)) / f64::from(self.clients.max(1));
        Warning::new(
            "host-lost",
            format!(
                "{words}. From then on its clients, {percent:.0}% of all, offered no load; the others did not take it over"
            ),
            "read the figures as those of a smaller load, or run the trial again",
        )
    }

    /// The address and the name of each host that was lost since the last call.
    pub fn newly_lost(&mut self) -> Vec<[String; 2]> {
        let peers = self.coordinator.peers();
        let names = |rank: u32| [peers[rank as usize].address.to_string(), peers[rank as usize].host.name.clone()];
        std::mem::take(&mut self.newly_lost).into_iter().map(names).collect()
    }

    /// Warnings since the last call.
    pub fn warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings)
    }

    /// Sends requests and waits for the answers. A host without an answer in time is lost.
    fn exchange(&mut self, orders: Vec<(u32, Order)>, within: Duration) -> Vec<(u32, Answered)> {
        let mut open = BTreeMap::new();
        for (rank, order) in orders {
            // A value of these types is always JSON.
            let body = serde_json::to_value(&order).unwrap_or_default();
            let sent = Instant::now();
            open.insert(rank, (self.coordinator.request(rank, body), sent));
        }
        let (mut answers, until) = (Vec::new(), Instant::now() + within);
        while !open.is_empty() {
            let Some(arrival) = self.coordinator.receive(until) else { break };
            if let Some(Reply { rank, number, at, body, tail }) = self.take(arrival)
                && let Some((_, sent)) = open.remove(&rank).filter(|(requested, _)| *requested == number)
            {
                let took = at.saturating_duration_since(sent);
                match body {
                    Ok(body) => answers.push((rank, Answered { body, tail, took })),
                    Err(words) => {
                        let words = format!("{}: {words}", self.name(rank));
                        self.failure.get_or_insert(words);
                    }
                }
            }
            open.retain(|rank, _| self.hosts[*rank as usize].lost.is_none());
        }
        let words = format!("it did not answer within {} s", within.as_secs());
        open.into_keys().for_each(|rank| self.lose(rank, &words));
        answers.sort_by_key(|(rank, _)| *rank);
        answers
    }

    /// Sends each host its own request, and returns the answers.
    pub(super) fn ask<T: DeserializeOwned>(
        &mut self,
        order: impl Fn(&Self, u32) -> Order,
        within: Duration,
    ) -> Vec<(u32, T)> {
        let orders = self.there().into_iter().map(|rank| (rank, order(self, rank))).collect();
        let mut answers = Vec::new();
        for (rank, Answered { body, .. }) in self.exchange(orders, within) {
            match serde_json::from_value(body) {
                Ok(answer) => answers.push((rank, answer)),
                Err(error) => self.lose(rank, &format!("it sent what is not known: {error}")),
            }
        }
        answers
    }

    /// Sends all hosts a request, and returns the answers.
    pub(super) fn ask_all<T: DeserializeOwned>(&mut self, order: &Order, within: Duration) -> Vec<(u32, T)> {
        self.ask(|_, _| order.clone(), within)
    }

    /// Makes the clients of a phase.
    pub(super) fn prepare(&mut self, order: &Order, base: State) -> Result<(), EngineError> {
        self.runs_mix = matches!(order, Order::Phase { role: Role::Mix { .. }, .. });
        for host in &mut self.hosts {
            host.base.clone_from(&base);
            host.head.state.clone_from(&base);
            host.head.counted.clear();
            host.has_ended = host.lost.is_some();
        }
        self.base = base;
        let _: Vec<(u32, Value)> = self.ask_all(order, ANSWER);
        self.check()
    }

    /// The counts of all hosts since the last call, and the heads with the open operations.
    pub(super) fn counts(&mut self, order: &Order, role: Role, kinds: usize) -> (Counts, Vec<Head>) {
        let orders = self.there().into_iter().map(|rank| (rank, order.clone())).collect();
        let (mut all, mut heads) = (Counts::new(kinds), Vec::new());
        let answers = self.exchange(orders, COUNTS);
        for rank in 0..self.hosts.len() as u32 {
            if !answers.iter().any(|(answered, _)| *answered == rank) {
                self.host(rank).missing_frames += 1;
            }
        }
        for (rank, Answered { body, tail, took }) in answers {
            let read = serde_json::from_value::<Head>(body).map_err(|error| error.to_string());
            let read = read.and_then(|head| Ok((counts::decode(&tail, kinds)?, head)));
            match read {
                Ok((mut counts, head)) => {
                    counts.conflicts.clone_from(&head.conflicts);
                    all.merge(&counts);
                    let host = self.host(rank);
                    host.late_frames += u64::from(took > LATE);
                    host.receive(&counts, &head, role);
                    heads.push(head);
                }
                Err(error) => self.lose(rank, &format!("its counts cannot be read: {error}")),
            }
        }
        (all, heads)
    }

    /// The clients of a phase have ended: their sessions are closed.
    pub(super) fn leave(&mut self) {
        for (rank, head) in self.ask_all::<Head>(&Order::Leave, ANSWER) {
            self.host(rank).head = head;
        }
        self.counted_before = self.counted();
        self.hosts.iter_mut().for_each(|host| host.head.counted.clear());
    }

    /// The workload's own counters on all hosts, over all phases.
    pub fn counted(&self) -> BTreeMap<String, u64> {
        let mut all = self.counted_before.clone();
        self.hosts.iter().for_each(|host| merge(&mut all, &host.head.counted));
        all
    }

    /// CPU time of the clients on all hosts, nanoseconds.
    pub fn client_cpu_ns(&self) -> u64 {
        self.hosts.iter().map(|host| host.head.client_cpu_ns).sum()
    }

    /// The workload's state over all hosts: what it was, and what each host has added. Numbers wrap, because some are
    /// negative.
    pub fn state(&self) -> State {
        let mut all = self.base.clone();
        for host in &self.hosts {
            for (name, number) in &host.head.state {
                let grown = number.wrapping_sub(host.base.get(name).copied().unwrap_or_default());
                let sum = all.entry(name.clone()).or_default();
                *sum = sum.wrapping_add(grown);
            }
        }
        all
    }

    /// Whether a host was lost, so that it is unknown what its clients have written.
    pub fn has_lost(&self) -> bool {
        self.hosts.iter().any(|host| host.lost.is_some())
    }

    /// The records of the hosts, and warnings about those that limit the load.
    pub fn records(&mut self) -> (Vec<ClientHost>, Vec<Warning>) {
        let ranks = self.there();
        self.measure_clocks(&ranks);
        let records: Vec<ClientHost> = (0..self.hosts.len() as u32).map(|rank| self.record(rank)).collect();
        let warnings = records.iter().filter_map(signs::bottleneck).collect();
        (records, warnings)
    }

    fn record(&self, rank: u32) -> ClientHost {
        let (host, facts) = (&self.hosts[rank as usize], &self.coordinator.peers()[rank as usize].host);
        let ms = |ns: u64| Metric::from((ns as f64 / 1e3).round() / 1e3);
        let available_s = host.mix.as_secs_f64() * f64::from(facts.cpus.max(1));
        let share = |cpu_s: f64| {
            let percent = (1e3 * cpu_s / available_s).round() / 10.0;
            if available_s > 0.0 { Metric::from(percent) } else { Metric::absent("its clients did not run the mix") }
        };
        let drift_ns = host.first_offset.map(|first| host.offset.ahead_ns.abs_diff(first.ahead_ns));
        ClientHost {
            rank,
            name: facts.name.clone(),
            about: facts.about.clone(),
            cpus: facts.cpus,
            clients: HostShare { host: rank, hosts: self.plan.hosts }.count(self.clients),
            ops: host.ops,
            start_skew_ms: ms(host.skew_ns),
            round_trip_ms: ms(host.offset.round_trip_ns),
            clock_drift_ms: drift_ns.map_or_else(|| Metric::absent("its clock was not measured"), ms),
            late_frames: host.late_frames,
            missing_frames: host.missing_frames,
            client_cpu_percent: share(host.mix_client_cpu_ns as f64 / 1e9),
            host_cpu_percent: host.mix_host_cpu_s.map_or_else(|| Metric::absent("its CPU time was not read"), share),
            late_us_per_op: Metric::from(host.late_ns as f64 / 1e3).per(host.ops as f64, "operations of its clients"),
            lost: host.lost.clone(),
        }
    }
}

impl Host {
    /// Adds the counts of an interval.
    fn receive(&mut self, counts: &Counts, head: &Head, role: Role) {
        if matches!(role, Role::Mix { .. }) {
            self.ops += counts.ops();
            self.late_ns += counts.receive_late_ns + counts.kinds.iter().map(|kind| kind.late_ns).sum::<u64>();
            self.mix_client_cpu_ns += head.client_cpu_ns.saturating_sub(self.head.client_cpu_ns);
            if let (Some(now), Some(before)) = (head.host_cpu_s, self.head.host_cpu_s) {
                *self.mix_host_cpu_s.get_or_insert(0.0) += (now - before).max(0.0);
            }
        }
        let now = Instant::now();
        if let (Role::Mix { .. }, Some(heard)) = (role, self.heard) {
            self.mix += now.saturating_duration_since(heard);
        }
        (self.head, self.heard) = (head.clone(), Some(now));
    }
}

pub fn failed(words: impl std::fmt::Display) -> EngineError {
    EngineError::failed("clients on several hosts", words.to_string())
}
