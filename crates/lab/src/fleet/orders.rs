//! The requests of a trial to its agents, and their answers.

use std::collections::BTreeMap;

use rumba_engine_api::engine::Session;
use rumba_engine_api::error::EngineError;
use rumba_engine_api::worker::{Client, ClientAddress};
use rumba_engine_api::workload::{Bound, LoadStage, Ops, State};
use rumba_results::arrivals::Arrivals;
use rumba_results::client_steps::ClientSteps;
use rumba_results::record::TrialPlan;
use serde::{Deserialize, Serialize};

use crate::run::conflicts::Conflicts;
use crate::run::cut::Censored;
use crate::run::driver::Schedule;

/// The work of a phase's clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// They load a stage.
    Loader { stage: usize, seed: u64 },
    /// They run the mix.
    Mix {
        /// The seed of their choices.
        seed: u64,
    },
}

impl Role {
    /// A client.
    ///
    /// # Errors
    /// Any error from the engine.
    pub fn client(
        self,
        bound: &dyn Bound,
        session: Session,
        at: ClientAddress,
    ) -> Result<Box<dyn Client>, EngineError> {
        match self {
            Role::Loader { stage, seed } => bound.loader(stage, session, at, seed),
            Role::Mix { seed } => bound.client(session, at, seed),
        }
    }

    /// The types of operations.
    pub fn ops(self, bound: &dyn Bound) -> Option<Ops> {
        match self {
            Role::Loader { stage, .. } => bound.load_stages().get(stage).map(|stage: &LoadStage| stage.ops.clone()),
            Role::Mix { .. } => Some(bound.ops()),
        }
    }
}

/// A request to an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case")]
pub enum Order {
    /// Take part in a trial: connect to the server. The answer is [`Ready`].
    Trial { plan: Box<TrialPlan> },
    /// Make clients. The answer is nothing.
    Phase {
        /// The work.
        role: Role,
        /// The number of clients on all hosts.
        clients: u32,
        /// When their operations are due.
        schedule: Schedule,
        /// The workload's state.
        state: State,
    },
    /// Start the clients at a time of the agent's clock. The answer is the real time, nanoseconds, and [`Head`].
    Start {
        /// The time, nanoseconds.
        at_ns: u64,
    },
    /// Return the counts since the last time. The answer is [`Head`], with the counts.
    Collect,
    /// Let the clients end when everything due by now is served.
    Finish,
    /// Let the clients end after the operation in flight.
    Stop,
    /// Replace the arrivals.
    Shape {
        arrivals: Arrivals,
        /// Their time zero, by the agent's clock.
        from_ns: u64,
    },
    /// Begin the time of these numbers of active clients.
    Steps {
        /// The numbers.
        steps: ClientSteps,
        /// Their time zero, by the agent's clock.
        from_ns: u64,
    },
    /// Stop busy clients. The answer is [`Head`] with the open operations, and the last counts.
    Cut,
    /// Close the clients' sessions; all have ended. The answer is [`Head`].
    Leave,
}

/// An agent is connected to the server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ready {
    /// The digest of the workload's script, which must be the same on all hosts.
    pub script: Option<String>,
}

/// The sums of an agent, next to its counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// Retries by cause, since the last time.
    pub conflicts: Conflicts,
    /// CPU time of its clients since the trial began, nanoseconds.
    pub client_cpu_ns: u64,
    /// CPU time of all processes of its host since then, seconds.
    pub host_cpu_s: Option<f64>,
    /// The workload's state.
    pub state: State,
    /// The workload's own counters in this phase.
    pub counted: BTreeMap<String, u64>,
    /// The open operations, at the cut.
    pub censored: Option<Censored>,
}

/// A report of an agent without a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "notice", rename_all = "kebab-case")]
pub enum Notice {
    /// All its clients have ended.
    Ended {
        /// The first failure.
        failure: Option<String>,
    },
}
