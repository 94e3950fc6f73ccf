//! Differences between the supported servers.

/// The vendor of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brand {
    /// MongoDB's `mongod`, or a fork of it with another storage engine.
    MongoDb,
    /// SecantusDB: MongoDB's protocol over WiredTiger, with its own table layout.
    SecantusDb,
}

impl Brand {
    /// The possible names of its program, the most common first.
    pub fn programs(self) -> &'static [&'static str] {
        match self {
            Brand::MongoDb => &["mongod"],
            Brand::SecantusDb => &["secantusd-rs", "secantusd-py"],
        }
    }

    /// The server's name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Brand::MongoDb => "MongoDB",
            Brand::SecantusDb => "SecantusDB",
        }
    }

    /// How to install the server.
    pub fn install(self) -> &'static str {
        match self {
            Brand::MongoDb => {
                "rumba engines install mongodb@6.0; or name a base directory that holds bin/mongod, or a DSN \
                 (mongodb://user@host/database)"
            }
            Brand::SecantusDb => {
                "python3 -m venv DIR && DIR/bin/pip install SecantusDB==0.7.0b3, or cargo install --locked secantus-mdb; then \
                 name its directory"
            }
        }
    }
}
