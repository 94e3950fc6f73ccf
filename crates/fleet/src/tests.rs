#![allow(clippy::unwrap_used)] // A test says what it expects by unwrapping it.

use std::io::{Cursor, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;
use crate::frame::{MOST_BYTES_OF_HELLO, encode, read};
use crate::message::{FromAgent, ToAgent};

const TOKEN: &str = "0123456789abcdef";
/// Longer than any machine needs, so that only a hang fails a test.
const PATIENCE: Duration = Duration::from_secs(20);

fn agent(listener: &TcpListener, rank: u32, size: u32) -> Agent {
    Agent {
        coordinator: listener.local_addr().unwrap().to_string(),
        token: Token::new(TOKEN).unwrap(),
        program: "0.1.0".to_owned(),
        rank,
        size,
        host: HostFacts { name: format!("n{rank}"), cpus: 2, about: "a host".to_owned() },
    }
}

fn terms(hosts: u32) -> Terms {
    Terms { hosts, token: Token::new(TOKEN).unwrap(), program: "0.1.0".to_owned() }
}

fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

fn gather(listener: &TcpListener, hosts: u32, patience: Duration) -> Result<Coordinator, FleetError> {
    Coordinator::gather(listener.try_clone().unwrap(), &terms(hosts), patience, &AtomicBool::new(false))
}

/// A coordinator with these agents, by rank.
fn fleet(hosts: u32) -> (TcpListener, Coordinator, Vec<Dialled>) {
    let listener = listener();
    let agents: Vec<Agent> = (0..hosts).map(|rank| agent(&listener, rank, hosts)).collect();
    let (coordinator, dialled) = std::thread::scope(|scope| {
        let threads: Vec<_> = agents.iter().map(|agent| scope.spawn(|| dial(agent, PATIENCE).unwrap())).collect();
        let coordinator = gather(&listener, hosts, PATIENCE).unwrap();
        (coordinator, threads.into_iter().map(|thread| thread.join().unwrap()).collect())
    });
    (listener, coordinator, dialled)
}

/// The error of an agent that a coordinator of two hosts does not take.
fn refused(change: impl FnOnce(&mut Agent)) -> (String, String) {
    let listener = listener();
    let mut other = agent(&listener, 0, 2);
    change(&mut other);
    let (gathered, error) = std::thread::scope(|scope| {
        let thread = scope.spawn(|| dial(&other, PATIENCE).err().unwrap().to_string());
        let gathered = gather(&listener, 2, Duration::from_secs(1)).err().unwrap().to_string();
        (gathered, thread.join().unwrap())
    });
    (gathered, error)
}

#[test]
fn requests_are_answered_and_losses_are_reported() {
    let (_listener, mut coordinator, mut agents) = fleet(3);
    let number = coordinator.request(1, json!({ "collect": 7 }));
    let Some(Incoming::Request(asked, body)) = agents[1].receive(PATIENCE) else { panic!("a request") };
    assert_eq!((asked, &body), (number, &json!({ "collect": 7 })));
    agents[1].answer(asked, Ok(json!([1])), b"counts").unwrap();
    let arrival = coordinator.receive(Instant::now() + PATIENCE).unwrap();
    assert!(
        arrival.rank == 1
            && matches!(&arrival.what, Received::Answer(n, Ok(_), tail) if *n == number && tail == b"counts")
    );
    agents[2].notice(json!("ended")).unwrap();
    assert!(matches!(coordinator.receive(Instant::now() + PATIENCE).unwrap().what, Received::Notice(_)));
    drop(agents.remove(0));
    let lost = coordinator.receive(Instant::now() + PATIENCE).unwrap();
    assert!(
        lost.rank == 0 && matches!(&lost.what, Received::Lost(why) if why == "it closed the connection"),
        "{lost:?}"
    );
    drop(coordinator);
    assert!(matches!(agents[0].receive(PATIENCE), Some(Incoming::Bye)));
}

#[test]
fn clocks_are_known_to_half_a_round_trip() {
    let (_listener, mut coordinator, agents) = fleet(2);
    coordinator.measure_clocks(&[0, 1], |other| panic!("{other:?}"));
    for (peer, agent) in coordinator.peers().iter().zip(&agents) {
        let (before_ns, own_ns, after_ns) =
            (coordinator.clock().now_ns(), agent.clock().now_ns(), coordinator.clock().now_ns());
        let slack_ns = peer.clock.round_trip_ns;
        let [least, most] = [before_ns, after_ns].map(|at_ns| peer.clock.to_other(at_ns));
        assert!((least.saturating_sub(slack_ns)..=most + slack_ns).contains(&own_ns), "{own_ns}: {:?}", peer.clock);
    }
}

#[test]
fn agent_that_does_not_belong_is_refused_with_the_reason() {
    let (gathered, error) = refused(|agent| agent.token = Token::new("another token of the same kind").unwrap());
    assert!(error.contains("refused this agent: wrong token"), "{error}");
    assert!(gathered.contains("0 of 2 client hosts came") && gathered.contains("wrong token"), "{gathered}");
    let (_, error) = refused(|agent| agent.program = "0.0.9".to_owned());
    assert!(error.contains("wrong version: the agent is 0.0.9, the coordinator 0.1.0"), "{error}");
    let (_, error) = refused(|agent| agent.rank = 2);
    assert!(error.contains("rank 2 is above the last, 1"), "{error}");
    let (_, error) = refused(|agent| agent.size = 3);
    assert!(error.contains("fleet.hosts = 2"), "{error}");
}

#[test]
fn duplicate_rank_and_late_agent_are_refused() {
    let listener = listener();
    let (first, second, third) = (agent(&listener, 0, 2), agent(&listener, 0, 2), agent(&listener, 1, 2));
    std::thread::scope(|scope| {
        let gathered = scope.spawn(|| gather(&listener, 2, PATIENCE).unwrap());
        let first = dial(&first, PATIENCE).unwrap();
        let error = dial(&second, PATIENCE).err().unwrap().to_string();
        assert!(error.contains("duplicate rank 0"), "{error}");
        let _third = dial(&third, PATIENCE).unwrap();
        let coordinator = gathered.join().unwrap();
        let error = dial(&second, PATIENCE).err().unwrap().to_string();
        assert!(error.contains("too late or a duplicate"), "{error}");
        drop((coordinator, first));
    });
}

#[test]
fn lost_host_takes_part_in_the_next_trial() {
    let (listener, mut coordinator, mut agents) = fleet(2);
    let [first, second] = [0, 1].map(|rank| agent(&listener, rank, 2));
    drop(agents.remove(1));
    assert!(matches!(coordinator.receive(Instant::now() + PATIENCE).unwrap().what, Received::Lost(_)));
    std::thread::scope(|scope| {
        let second = scope.spawn(|| dial_again(&second, PATIENCE).unwrap());
        // It dials while the trial goes on.
        std::thread::sleep(Duration::from_millis(300));
        drop((coordinator, agents));
        let first = scope.spawn(|| dial_again(&first, PATIENCE).unwrap());
        let next = gather(&listener, 2, PATIENCE).unwrap();
        drop((first.join().unwrap(), second.join().unwrap(), next));
    });
    drop(listener);
    let ended = dial_again(&first, Duration::from_secs(3600)).err().unwrap();
    assert!(matches!(ended, FleetError::Unreachable { .. }), "{ended}");
}

#[test]
fn silent_side_is_lost_after_three_seconds() {
    let listener = listener();
    let mut silent = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let hello = format!(
        r#"{{"agent":"hello","protocol":{VERSION},"program":"0.1.0","token":"{TOKEN}","rank":0,"size":1,"host":{{"name":"n","cpus":1,"about":""}}}}"#
    );
    silent.write_all(&encode(&serde_json::from_str::<Value>(&hello).unwrap(), &[]).unwrap()).unwrap();
    let mut coordinator = gather(&listener, 1, PATIENCE).unwrap();
    let lost = coordinator.receive(Instant::now() + PATIENCE).unwrap();
    assert!(matches!(&lost.what, Received::Lost(why) if why == "it was silent for 3 s"), "{lost:?}");
}

#[test]
fn frames_have_bounds() {
    let frame = encode(&ToAgent::Ping { number: 3 }, b"tail").unwrap();
    let found = read::<ToAgent>(&mut Cursor::new(&frame), MOST_BYTES).unwrap();
    assert!(matches!(found.head, ToAgent::Ping { number: 3 }) && found.tail == b"tail");
    let refused =
        |bytes: &[u8]| read::<FromAgent>(&mut Cursor::new(bytes), MOST_BYTES_OF_HELLO).err().unwrap().to_string();
    // A length of 4 GiB allocates nothing.
    assert!(refused(&[255; 8]).contains("a frame of 4294967295 bytes"));
    assert!(refused(&[4, 0, 0, 0, 5, 0, 0, 0]).contains("with a head of 5"));
    assert!(refused(&encode(&json!({ "agent": "unknown" }), &[]).unwrap()).contains("a message that is not known"));
    assert!(encode(&(), &vec![0; MOST_BYTES as usize + 1]).unwrap_err().to_string().contains("above the"));
}

#[test]
fn connection_that_sends_garbage_is_refused() {
    let listener = listener();
    let mut other = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    other.write_all(b"GET / HTTP/1.1\r\nHost: rumba\r\n\r\n").unwrap();
    let error = gather(&listener, 1, Duration::from_secs(1)).err().unwrap().to_string();
    assert!(error.contains("no introduction: a frame of"), "{error}");
    let mut answer = Vec::new();
    let _ = other.read_to_end(&mut answer);
    assert!(String::from_utf8_lossy(&answer).contains("refused"), "{answer:?}");
}

#[test]
fn token_is_compared_whole_and_kept_from_others() {
    let token = Token::new(TOKEN).unwrap();
    assert!(token.is(TOKEN) && !token.is("") && !token.is(&TOKEN[1..]) && !token.is(&format!("{TOKEN}0")));
    assert_eq!(format!("{token:?}"), "Token(…)");
    assert!(Token::new("short").unwrap_err().to_string().contains("has 5 characters"));
    assert_ne!(Token::random().unwrap(), Token::random().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(Token::find(Some(&file)).unwrap_err().to_string().contains("chmod 600"));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(Token::find(Some(&file)).unwrap(), token);
}
