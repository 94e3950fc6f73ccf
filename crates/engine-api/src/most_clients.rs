//! The most clients that an engine supports.

/// The most clients that can work at once, in addition to the instance's own sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MostClients {
    /// The most clients that can be connected.
    pub clients: u32,
    /// The reason for the limit.
    pub why: String,
    /// How to allow more clients.
    pub remedy: String,
}

impl MostClients {
    /// The reason why this number of clients is too large, and the remedy; `None` if it is not.
    pub fn refusal(&self, clients: u32) -> Option<(String, String)> {
        if clients <= self.clients {
            return None;
        }
        let problem =
            format!("{clients} clients are more than the {} that there is room for: {}", self.clients, self.why);
        let remedy = match self.clients {
            0 => self.remedy.clone(),
            most => format!("{}, or set {most} or fewer", self.remedy),
        };
        Some((problem, remedy))
    }
}
