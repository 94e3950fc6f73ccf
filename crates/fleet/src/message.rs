//! The messages between the coordinator and an agent.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of this protocol. A coordinator and its agents must have the same.
pub const VERSION: u32 = 2;

/// The facts that an agent reports about its host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Its name.
    pub name: String,
    /// Its CPUs that the agent may use.
    pub cpus: u32,
    /// The processor and the kernel, in words.
    pub about: String,
}

/// The first message of an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// See [`VERSION`].
    pub protocol: u32,
    /// rumba's version and commit.
    pub program: String,
    /// The run's token.
    pub token: String,
    /// The agent's number, from 0.
    pub rank: u32,
    /// The number of agents.
    pub size: u32,
    /// Its host.
    pub host: HostFacts,
}

/// A message of an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "agent", rename_all = "kebab-case")]
pub enum FromAgent {
    /// It introduces itself.
    Hello(Hello),
    /// A sign of life.
    Alive,
    /// The answer to a ping.
    Pong {
        /// The ping's number.
        number: u32,
        /// The agent's clock.
        at_ns: u64,
    },
    /// The answer to a request; the frame's tail belongs to it.
    Answer {
        /// The request's number.
        number: u64,
        /// The answer, or why the request failed.
        body: Result<Value, String>,
    },
    /// Something without a request.
    Notice {
        /// Its contents.
        body: Value,
    },
}

/// A message of the coordinator.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "coordinator", rename_all = "kebab-case")]
pub enum ToAgent {
    /// The agent takes part.
    Welcome,
    /// The agent does not take part.
    Refused {
        /// Why, with a remedy.
        reason: String,
    },
    /// The trial goes on without this host, which was lost. It takes part in the next one: dial again.
    Later,
    /// A sign of life.
    Alive,
    /// Asks for the clock.
    Ping {
        /// Its number.
        number: u32,
    },
    /// Asks for work.
    Request {
        /// Its number.
        number: u64,
        /// The work.
        body: Value,
    },
    /// The trial has ended as planned or was given up.
    Bye,
}
