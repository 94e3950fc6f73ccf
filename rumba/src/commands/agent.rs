//! `rumba agent`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use rumba_engine_api::units::parse_duration;
use rumba_fleet::{Agent, FleetError, Token};
use rumba_lab::fleet::agent::{host_facts, serve};
use rumba_lab::registry::Registry;

use super::sysbench;
use crate::problem::Problem;

/// Arguments of `agent`.
#[derive(Args)]
#[command(after_help = "\
An experiment with a [fleet] table runs its clients on several hosts. `rumba run` coordinates and
meters the server; one agent on each client host runs a share of the clients:

  [fleet]
  hosts = 3
  address = \"10.0.0.1\"            the host of `rumba run`, as the agents reach it

With launcher = \"slurm\", rumba starts the agents itself. Otherwise start one on each host, before or
after `rumba run`. Three variables say which one it is, and a fourth has the run's token:

  export RUMBA_FLEET_TOKEN=$(openssl rand -hex 32)       the same for the run and all agents
  RUMBA_COORDINATOR=10.0.0.1:7331 RUMBA_RANK=0 RUMBA_SIZE=3 rumba agent

Slurm's SLURM_PROCID and SLURM_NTASKS serve as rank and size. An agent serves all trials of the run,
or one `rumba sysbench --fleet`, and ends when no run listens any more. It needs the same build of
rumba, and the server's password where the run takes it from. The token and the counts are not
encrypted: use a private network.
docs/how-to/clients-on-several-hosts.md has whole examples.

Exit codes: 0 the run has ended; 1 the coordinator was not found or was lost; 2 it refused this agent.")]
pub struct AgentArgs {
    /// The coordinator's address [default: RUMBA_COORDINATOR]
    #[arg(long, value_name = "HOST:PORT")]
    pub coordinator: Option<String>,
    /// This agent's number, from 0 [default: RUMBA_RANK, SLURM_PROCID]
    #[arg(long, value_name = "N")]
    pub rank: Option<u32>,
    /// The number of agents, as in fleet.hosts [default: RUMBA_SIZE, SLURM_NTASKS]
    #[arg(long, value_name = "N")]
    pub size: Option<u32>,
    /// A file with the run's token, which only its owner may read [default: RUMBA_FLEET_TOKEN]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// How long to wait for the coordinator
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "60s")]
    pub wait: Duration,
}

/// A number given by an option or by one of these variables.
fn number(given: Option<u32>, what: &str, variables: &[&str]) -> Result<u32, Problem> {
    if let Some(number) = given {
        return Ok(number);
    }
    let found = variables.iter().find_map(|name| std::env::var(name).ok());
    let names = variables.join(" or ");
    let text = found.ok_or_else(|| {
        Problem::mistake(format!("the agent has no {what}"), format!("set {names}, or add --{what} N"))
    })?;
    text.trim().parse().map_err(|_| {
        Problem::mistake(format!("the agent's {what} `{text}` is no number"), format!("set {names} to a number"))
    })
}

/// Serves the trials of a run.
pub fn run(args: &AgentArgs, registry: &Registry) -> super::Result {
    let coordinator = args.coordinator.clone().or_else(|| std::env::var("RUMBA_COORDINATOR").ok());
    let coordinator = coordinator.ok_or_else(|| {
        Problem::mistake("the agent has no coordinator", "set RUMBA_COORDINATOR, or add --coordinator HOST:PORT")
    })?;
    let agent = Agent {
        coordinator,
        token: Token::find(args.token_file.as_deref()).map_err(|error| problem(&error))?,
        program: registry.build.to_string(),
        rank: number(args.rank, "rank", &["RUMBA_RANK", "SLURM_PROCID"])?,
        size: number(args.size, "size", &["RUMBA_SIZE", "SLURM_NTASKS"])?,
        host: host_facts(),
    };
    let (host, rank) = (agent.host.name.clone(), agent.rank);
    let say = |words: &str| say!("agent {rank} on {host}: {words}");
    serve(registry, &agent, args.wait, &say, &sysbench::fleet::serve).map_err(|error| problem(&error))?;
    say("the run has ended");
    Ok(super::Output::default())
}

fn problem(error: &FleetError) -> Problem {
    match error {
        FleetError::Refused(_) => Problem::mistake(error.to_string(), "correct it and start the agent again"),
        FleetError::Token(_) => Problem::mistake(error.to_string(), "see `rumba agent --help`"),
        FleetError::Unreachable { .. } => {
            let remedy = "check fleet.address and fleet.port, that `rumba run` runs, and the network between the hosts";
            Problem::failure(error.to_string(), remedy)
        }
        _ => Problem::failure(error.to_string(), "read the output of `rumba run` for the cause"),
    }
}
