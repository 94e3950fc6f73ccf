//! `--fleet`: the clients of a script on several hosts, each with an agent, as one run with one report.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rumba_engine_api::error::EngineError;
use rumba_engine_api::worker::HostShare;
use rumba_fleet::{Arrival, Coordinator, Dialled, FleetError, Incoming, MonotonicClock, Received, Terms, Token};
use rumba_lab::fleet::counts;
use rumba_lab::run::cells::Counts;
use rumba_lab::run::group::Waited;
use rumba_workload_sysbench::cli::Refusal;
use rumba_workload_sysbench::cli::failure::{Failure, QUEUE_EVENTS};
use rumba_workload_sysbench::cli::settings::FleetAddress;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Ended;
use super::clients::{Clients, Figures, Here, Ready};

/// The longest wait for all hosts, as the default of `fleet.wait` in an experiment.
const GATHERING: Duration = Duration::from_secs(60);
/// The longest wait for clients that connect: `--thread-init-timeout` of a host is shorter.
const MAKING: Duration = Duration::from_secs(600);
/// The longest wait for another answer.
const ANSWER: Duration = Duration::from_secs(30);
/// The time from the order to start until the start, in addition to two round trips.
const LEAD: Duration = Duration::from_millis(10);
/// How often an agent looks at running clients.
const LOOK: Duration = Duration::from_millis(50);
/// The longest wait of an agent for a message while no clients run.
const IDLE: Duration = Duration::from_secs(1);
/// How long an agent's clients may take to end once the run is over.
const ENDING: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "sysbench", rename_all = "kebab-case")]
enum Request {
    /// Make the clients of this command line.
    Make {
        words: Vec<String>,
    },
    Start {
        at_ns: u64,
    },
    Collect,
    Figures,
    BeginExtremes,
    EndWarmup,
    EndBy {
        at_ns: u64,
    },
    Stop,
    Cut,
}

/// A host's clients at the time of a collection.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Present {
    active: usize,
    inside: usize,
    waiting: u64,
    /// The events in flight at the cut.
    open: u32,
}

fn failed(words: impl std::fmt::Display) -> EngineError {
    EngineError::failed("clients on several hosts", words.to_string())
}

fn fatal(error: &impl std::fmt::Display) -> Ended {
    Ended::refused(&Refusal::Fatal(error.to_string()))
}

/// The hosts of a run, from their gathering to its end.
pub struct Hosts {
    coordinator: Coordinator,
    present: Vec<Present>,
    has_ended: Vec<bool>,
    is_lost: Vec<bool>,
    is_stopped: bool,
    ended_at: Option<Instant>,
    failure: Option<EngineError>,
}

/// An answer: its host, its contents, its binary tail.
type Answer = (usize, Value, Vec<u8>);

impl Hosts {
    /// Waits for the agents of all hosts, and lets them make the clients of this command line.
    pub fn gather(place: &FleetAddress, words: &[String]) -> Result<Self, Ended> {
        let ended = |error: FleetError| fatal(&error);
        let listener = TcpListener::bind((place.address.as_str(), place.port))
            .map_err(FleetError::io(format!("--fleet: {}:{}", place.address, place.port)))
            .map_err(ended)?;
        let token = Token::find(None).map_err(ended)?;
        let terms = Terms { hosts: place.hosts, token, program: crate::build::build().to_string() };
        let coordinator = Coordinator::gather(listener, &terms, GATHERING, &AtomicBool::new(false)).map_err(ended)?;
        let hosts = place.hosts as usize;
        let mut gathered = Self {
            coordinator,
            present: vec![Present::default(); hosts],
            has_ended: vec![false; hosts],
            is_lost: vec![false; hosts],
            is_stopped: false,
            ended_at: None,
            failure: None,
        };
        gathered.ask(MAKING, |_, _| Request::Make { words: words.to_vec() });
        match gathered.failure.take() {
            Some(error) => Err(fatal(&error)),
            None => Ok(gathered),
        }
    }

    /// Starts all clients at one time, which is returned.
    pub fn start(&mut self) -> Instant {
        let ranks: Vec<u32> = (0..self.is_lost.len() as u32).collect();
        let mut others = Vec::new();
        self.coordinator.measure_clocks(&ranks, |arrival| others.push(arrival));
        others.into_iter().for_each(|arrival| drop(self.take(arrival)));
        let longest = self.coordinator.peers().iter().map(|peer| peer.clock.round_trip_ns).max().unwrap_or_default();
        let start = Instant::now() + LEAD + Duration::from_nanos(2 * longest);
        self.ask(ANSWER, |hosts, rank| Request::Start { at_ns: hosts.by_clock_of(rank, start) });
        start
    }

    fn by_clock_of(&self, rank: usize, at: Instant) -> u64 {
        self.coordinator.peers()[rank].clock.to_other(self.coordinator.clock().at_ns(at))
    }

    fn name(&self, rank: usize) -> String {
        format!("the client host {} (rank {rank})", self.coordinator.peers()[rank].host.name)
    }

    fn fail(&mut self, rank: usize, words: &str) {
        let words = format!("{}: {words}", self.name(rank));
        self.failure.get_or_insert_with(|| failed(words));
    }

    /// Handles what arrives; returns an answer with the number of its request.
    fn take(&mut self, arrival: Arrival) -> Option<(u64, Answer)> {
        let rank = arrival.rank as usize;
        match arrival.what {
            Received::Answer(number, Ok(body), tail) => return Some((number, (rank, body, tail))),
            Received::Answer(number, Err(words), _) => {
                self.fail(rank, &words);
                return Some((number, (rank, Value::Null, Vec::new())));
            }
            Received::Notice(body) => {
                self.has_ended[rank] = true;
                let at_ns = self.coordinator.peers()[rank].clock.to_own(body["at_ns"].as_u64().unwrap_or_default());
                let at = self.coordinator.clock().instant(at_ns.max(0).cast_unsigned());
                self.ended_at = self.ended_at.max(Some(at.min(arrival.at)));
                if let Some(words) = body["failure"].as_str() {
                    self.fail(rank, words);
                }
            }
            Received::Pong(..) => {}
            Received::Lost(why) => self.lose(rank, &why),
        }
        None
    }

    fn lose(&mut self, rank: usize, why: &str) {
        self.coordinator.dismiss(rank as u32);
        (self.is_lost[rank], self.has_ended[rank]) = (true, true);
        self.ended_at = Some(Instant::now());
        self.fail(rank, &format!("it was lost: {why}"));
    }

    /// Sends each host its request, and returns the answers. A host without an answer in time is lost.
    fn ask(&mut self, within: Duration, request: impl Fn(&Self, usize) -> Request) -> Vec<Answer> {
        let there: Vec<usize> = (0..self.is_lost.len()).filter(|rank| !self.is_lost[*rank]).collect();
        let mut open = BTreeMap::new();
        for rank in there {
            // A value of this type is always JSON.
            let body = serde_json::to_value(request(self, rank)).unwrap_or_default();
            open.insert(self.coordinator.request(rank as u32, body), rank);
        }
        let (mut answers, until) = (Vec::new(), Instant::now() + within);
        while !open.is_empty()
            && let Some(arrival) = self.coordinator.receive(until)
        {
            if let Some((number, answer)) = self.take(arrival)
                && open.remove(&number).is_some()
            {
                answers.push(answer);
            }
            open.retain(|_, rank| !self.is_lost[*rank]);
        }
        let words = format!("it did not answer within {} s", within.as_secs());
        open.into_values().for_each(|rank| self.lose(rank, &words));
        answers.sort_by_key(|(rank, ..)| *rank);
        answers
    }

    /// The events of all hosts since the last time.
    fn counts(&mut self, request: &Request) -> Counts {
        let mut all = Counts::new(1);
        for (rank, body, tail) in self.ask(ANSWER, |_, _| request.clone()) {
            let present = serde_json::from_value(body).map_err(|error| error.to_string());
            match present.and_then(|present| Ok((present, counts::decode(&tail, 1)?))) {
                Ok((present, counts)) => {
                    self.present[rank] = present;
                    all.merge(&counts);
                }
                Err(words) => self.lose(rank, &format!("its counts cannot be read: {words}")),
            }
        }
        all
    }
}

impl Clients for Hosts {
    fn wait(&mut self, until: Instant) -> Waited {
        loop {
            if self.failure.is_some() && !self.is_stopped {
                // The others end too.
                self.stop();
            }
            if self.has_ended.iter().all(|has_ended| *has_ended) {
                return Waited::AllEnded;
            }
            let Some(arrival) = self.coordinator.receive(until) else { return Waited::Until };
            // A late answer is of no use.
            let _ = self.take(arrival);
        }
    }

    fn collect(&mut self) -> Counts {
        self.counts(&Request::Collect)
    }

    fn figures(&mut self) -> Figures {
        let mut all = Figures::default();
        for (rank, body, _) in self.ask(ANSWER, |_, _| Request::Figures) {
            match serde_json::from_value(body) {
                Ok(figures) => all.merge(figures),
                Err(error) => self.lose(rank, &format!("its figures cannot be read: {error}")),
            }
        }
        all
    }

    fn begin_extremes(&mut self) {
        self.ask(ANSWER, |_, _| Request::BeginExtremes);
    }

    fn end_warmup(&mut self) {
        self.ask(ANSWER, |_, _| Request::EndWarmup);
    }

    fn end_by(&mut self, at: Instant) {
        self.ask(ANSWER, |hosts, rank| Request::EndBy { at_ns: hosts.by_clock_of(rank, at) });
    }

    fn stop(&mut self) {
        self.is_stopped = true;
        self.ask(ANSWER, |_, _| Request::Stop);
    }

    fn cut(&mut self) -> (Counts, u32) {
        let counts = self.counts(&Request::Cut);
        (counts, self.present.iter().map(|present| present.open).sum())
    }

    fn failure(&self) -> Option<&EngineError> {
        self.failure.as_ref()
    }

    fn ended_at(&self) -> Option<Instant> {
        self.ended_at.filter(|_| self.has_ended.iter().all(|has_ended| *has_ended))
    }

    fn active(&self) -> usize {
        let ended = self.present.iter().zip(&self.has_ended);
        ended.filter(|(_, has_ended)| !**has_ended).map(|(present, _)| present.active).sum()
    }

    fn inside(&self) -> usize {
        self.present.iter().map(|present| present.inside).sum()
    }

    fn waiting(&self, most: usize) -> u64 {
        self.present.iter().map(|present| present.waiting).sum::<u64>().min(most as u64)
    }

    fn join(self: Box<Self>) {}
}

/// The command line for the agents: without passwords, because the connection is not encrypted. The hosts share one
/// sequence of unique numbers, so they need the same seed even if none is given.
pub fn words_for_agents(argv: &[String], seed: Option<u64>) -> Vec<String> {
    let is_password = |word: &str| word.starts_with("--") && word.replace('_', "-").contains("-password=");
    let words = argv.iter().filter(|word| !is_password(word)).cloned();
    let seed = seed.map(|seed| format!("--rand-seed={}", (seed % i32::MAX as u64).max(1)));
    words.chain(seed).collect()
}

/// An agent's part in a run.
pub struct Part<'a> {
    dialled: &'a Dialled,
    clock: MonotonicClock,
    pub share: HostShare,
    number: u64,
    /// Why the coordinator was lost, if it was.
    lost: RefCell<Option<String>>,
}

/// Serves a run if this is its first request, else returns `None`. Returns why the coordinator was lost, if it was.
pub fn serve(dialled: &Dialled, share: HostShare, number: u64, body: &Value) -> Option<Option<String>> {
    let Ok(Request::Make { words }) = serde_json::from_value(body.clone()) else { return None };
    let part = Part { dialled, clock: dialled.clock(), share, number, lost: RefCell::default() };
    if let Err(Ended { words, .. }) = super::take_part(words, &part) {
        // A broken connection is reported by its reading thread.
        let _ = dialled.answer(number, Err(words), &[]);
        part.wait_for_end();
    }
    Some(part.lost.take())
}

impl Part<'_> {
    /// Waits until the run is over.
    fn wait_for_end(&self) {
        loop {
            match self.dialled.receive(IDLE) {
                Some(Incoming::Bye) => return,
                Some(Incoming::Lost(why)) => return drop(self.lost.replace(Some(why))),
                Some(Incoming::Request(..)) | None => {}
            }
        }
    }

    /// Runs the clients as the coordinator directs.
    pub fn run(&self, ready: Ready) {
        let _ = self.dialled.answer(self.number, Ok(Value::Null), &[]);
        let (mut ready, mut here, mut has_ended) = (Some(ready), None, false);
        let lost = loop {
            match self.dialled.receive(if here.is_some() && !has_ended { LOOK } else { IDLE }) {
                None => {}
                Some(Incoming::Bye) => break None,
                Some(Incoming::Lost(why)) => break Some(why),
                Some(Incoming::Request(number, body)) => {
                    let request = serde_json::from_value(body).map_err(|error| error.to_string());
                    let answer = request.and_then(|request| self.handle(request, &mut ready, &mut here));
                    let (body, tail) =
                        answer.map_or_else(|words| (Err(words), Vec::new()), |(body, tail)| (Ok(body), tail));
                    let _ = self.dialled.answer(number, body, &tail);
                }
            }
            if let Some(clients) = here.as_mut().filter(|_| !has_ended) {
                has_ended = self.look_for_end(clients);
            }
        };
        ready.into_iter().for_each(|ready| ready.made.abandon());
        self.lost.replace(lost);
        let Some(mut clients) = here else { return };
        clients.stop();
        if clients.wait(Instant::now() + ENDING) == Waited::AllEnded {
            Box::new(clients).join();
        }
    }

    /// Reports the end of the clients; true if they have ended.
    fn look_for_end(&self, clients: &mut Here) -> bool {
        let is_full = clients.waiting(QUEUE_EVENTS + 1) > QUEUE_EVENTS as u64;
        if is_full {
            clients.stop();
        }
        if clients.wait(Instant::now()) != Waited::AllEnded && !is_full {
            return false;
        }
        let failure = clients.failure().map(ToString::to_string);
        let failure = failure.or_else(|| is_full.then(|| Failure::QueueFull.to_string()));
        let at_ns = self.clock.at_ns(clients.ended_at().unwrap_or_else(Instant::now));
        let _ = self.dialled.notice(json!({ "at_ns": at_ns, "failure": failure }));
        true
    }

    fn handle(
        &self,
        request: Request,
        ready: &mut Option<Ready>,
        here: &mut Option<Here>,
    ) -> Result<(Value, Vec<u8>), String> {
        let json = |value: Result<Value, serde_json::Error>| value.map_err(|error| error.to_string());
        let is_cut = matches!(request, Request::Cut);
        match (request, here) {
            (Request::Start { at_ns }, here) => {
                let ready = ready.take().ok_or("the clients have started already")?;
                std::thread::sleep(self.clock.instant(at_ns).saturating_duration_since(Instant::now()));
                *here = Some(ready.start());
            }
            (Request::Figures, here) => {
                let before = ready.as_ref().map(|ready| Figures::of(&ready.counters));
                let figures = before.or_else(|| here.as_mut().map(|here| here.figures())).unwrap_or_default();
                return Ok((json(serde_json::to_value(figures))?, Vec::new()));
            }
            (Request::Collect | Request::Cut, Some(here)) => {
                let (counts, open) = if is_cut { here.cut() } else { (here.collect(), 0) };
                let waiting = here.waiting(QUEUE_EVENTS + 1);
                let present = Present { active: here.active(), inside: here.inside(), waiting, open };
                return Ok((json(serde_json::to_value(present))?, counts::encode(&counts)));
            }
            (Request::BeginExtremes, Some(here)) => here.begin_extremes(),
            (Request::EndWarmup, Some(here)) => here.end_warmup(),
            (Request::EndBy { at_ns }, Some(here)) => here.end_by(self.clock.instant(at_ns)),
            (Request::Stop, Some(here)) => here.stop(),
            (Request::Make { .. }, _) | (_, None) => return Err("no clients run, or others do".to_owned()),
        }
        Ok((Value::Null, Vec::new()))
    }
}
