//! How many clients a server accepts at once.

use std::thread::sleep;
use std::time::{Duration, Instant};

use rumba_engine_api::engine::MostClients;

use crate::capability::Capabilities;
use crate::counters::{Request, Status};
use crate::plan::Plan;

const VARIABLE: &str = "max_connections";

/// The client limit of a managed server, as far as it is known before the start. The control session takes one more.
pub fn of_plan(plan: &Plan, capabilities: &Capabilities) -> Option<MostClients> {
    let planned = plan.lines.iter().rfind(|line| line.name == VARIABLE).and_then(|line| line.value.as_deref());
    let usual = || capabilities.variables.get(VARIABLE).map(|variable| variable.value.as_str());
    let most: u64 = planned.or_else(usual)?.parse().ok()?;
    Some(MostClients {
        clients: clients(most, 1),
        why: format!("its {VARIABLE} is {most}, and rumba's control session takes one"),
        remedy: format!("raise the engine's setting {VARIABLE}"),
    })
}

/// How long a server may take to notice a closed connection.
const NOTICED: Duration = Duration::from_millis(200);
/// Pause between two polls.
const NAP: Duration = Duration::from_millis(20);

/// Like [`of_server`], after connections that are closing are gone, including earlier ones of rumba.
pub fn of_server_at_rest(admin: &mut dyn Request) -> Option<MostClients> {
    let since = Instant::now();
    let mut best = of_server(admin)?;
    while since.elapsed() < NOTICED {
        sleep(NAP);
        best = of_server(admin).filter(|now| now.clients > best.clients).unwrap_or(best);
    }
    Some(best)
}

/// How many more clients a running server accepts. The control session, which is this one, is among the connected.
/// `None` if the server does not report it.
pub fn of_server(admin: &mut dyn Request) -> Option<MostClients> {
    let connected = Status::read_some(admin, &["Threads_connected"]).ok()?.get("Threads_connected")? as u64;
    let (most, most_of_user) = limits(admin)?;
    let whole = MostClients {
        clients: clients(most, connected),
        why: format!(
            "the server's {VARIABLE} is {most}, and {connected} are taken, one of them by rumba's control session"
        ),
        remedy: format!("raise the server's {VARIABLE}"),
    };
    if most_of_user == 0 {
        return Some(whole);
    }
    let own = connections_of_user(admin).unwrap_or(1);
    let of_user = MostClients {
        clients: clients(most_of_user, own),
        why: format!(
            "the user's max_user_connections is {most_of_user}, and {own} are taken, one of them by rumba's control session"
        ),
        remedy: "have an administrator raise the user's MAX_USER_CONNECTIONS, or max_user_connections".to_owned(),
    };
    Some(if of_user.clients < whole.clients { of_user } else { whole })
}

/// The server's limit and the user's, which is 0 if there is none. The session variable holds the account's limit.
fn limits(admin: &mut dyn Request) -> Option<(u64, u64)> {
    let sql = format!("SELECT @@GLOBAL.{VARIABLE}, @@SESSION.max_user_connections");
    let row = admin.fetch(&sql).ok()?.rows.into_iter().next()?;
    let number = |column: usize| row.get(column)?.as_deref()?.parse::<i64>().ok();
    // A server may report -1, which admits only administrators. This user is connected, so it is one.
    Some((u64::try_from(number(0)?).ok()?, number(1).and_then(|most| u64::try_from(most).ok()).unwrap_or(0)))
}

/// The connections of this user's account, which a user can always see.
fn connections_of_user(admin: &mut dyn Request) -> Option<u64> {
    const SQL: &str = "SELECT COUNT(*) FROM information_schema.PROCESSLIST \
        WHERE USER = SUBSTRING_INDEX(CURRENT_USER(), '@', 1)";
    admin.fetch(SQL).ok()?.rows.first()?.first()?.as_deref()?.parse().ok()
}

fn clients(most: u64, taken: u64) -> u32 {
    u32::try_from(most.saturating_sub(taken)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::tests::server::{Private, run};

    /// Polls until the server has noticed the connections that just closed.
    fn room(admin: &mut dyn Request, wanted: u32) -> MostClients {
        for _ in 0..100 {
            if let Some(most) = of_server(admin).filter(|most| most.clients == wanted) {
                return most;
            }
            sleep(NAP);
        }
        panic!("{:?} where there is room for {wanted}", of_server(admin))
    }

    #[test]
    #[needs(MariaDb)]
    fn connection_room_respects_other_users_and_user_limits() {
        let private = Private::start(&["--max-connections=12"]);
        let mut admin = private.connect();
        assert!(room(&mut admin, 11).why.contains("max_connections is 12"));
        let other = private.connect();
        room(&mut admin, 10);
        drop(other);
        run(&mut admin, &["CREATE USER few@localhost WITH MAX_USER_CONNECTIONS 4"]);
        let mut few = private.connect_as("few");
        let most = room(&mut few, 3);
        assert!(most.why.contains("max_user_connections is 4"), "{most:?}");
        let (problem, remedy) = most.refusal(4).expect("one too many");
        assert!(problem.contains("4 clients are more than the 3"), "{problem}");
        assert!(remedy.ends_with("or set 3 or fewer"), "{remedy}");
        // The server accepts exactly the reported number.
        let three: Vec<_> = (0..3).map(|_| private.connect_as("few")).collect();
        assert_eq!(three.len(), 3);
    }
}
