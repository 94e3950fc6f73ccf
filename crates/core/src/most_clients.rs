//! How many clients an engine has room for.

/// How many clients can be at work at once, beside the sessions that an instance has for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MostClients {
    /// The most that can be connected.
    pub clients: u32,
    /// What bounds them.
    pub why: String,
    /// What would make room for more.
    pub remedy: String,
}

impl MostClients {
    /// Why so many clients are too many, and what to do; `None` if they are not.
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
