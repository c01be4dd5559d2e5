//! A whole service in the process of its caller: a daemon, and an agent that reaches it through memory.
//!
//! Used by `svc aria2c` and by programs that embed Svc; `svc serve` runs the daemon as a process beside the agent instead.
//!
//! *Owns* the connection between the two and the order of start and shutdown.
//!
//! *Never* configures either of them, and reads no environment.

use std::{fmt, io, time::Duration};

use agent::{Agent, ByteStream, Connect, ConnectError, Found};
use daemon::{Connector, Daemon};
use futures_util::future::{BoxFuture, FutureExt as _};

/// A running service. Call [`Service::shutdown`] to end it; if it is dropped, its tasks run until the runtime ends.
#[derive(Debug)]
pub struct Service {
    daemon: Daemon,
    agent: Agent,
}

/// A [`agent::Connect`] to the daemon in this process, which always exists.
struct InProcess {
    found: Found,
    connector: Connector,
}

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InProcess")
    }
}

impl Connect for InProcess {
    fn find(&self) -> BoxFuture<'_, Result<Found, ConnectError>> {
        std::future::ready(Ok(self.found.clone())).boxed()
    }

    fn dial<'a>(&'a self, _: &'a Found) -> BoxFuture<'a, io::Result<Box<dyn ByteStream>>> {
        std::future::ready(Ok(Box::new(self.connector.connect()) as Box<dyn ByteStream>)).boxed()
    }
}

impl Service {
    /// Starts an agent for `daemon`. Once this returns, the agent listens and its projection has every task of the
    /// daemon.
    ///
    /// If the agent does not start, the daemon is shut down first: runs have up to `grace` to save what they have.
    pub async fn start(daemon: Daemon, config: agent::Config, grace: Duration) -> Result<Self, agent::StartError> {
        let connect = InProcess {
            found: Found {
                token: daemon.token().clone(),
                port: 0,
            },
            connector: daemon.connector(),
        };
        let agent = match Agent::start(config, connect).await {
            Ok(agent) => agent,
            Err(error) => {
                daemon.shutdown(grace).await;
                return Err(error);
            }
        };
        agent.connected().await;
        Ok(Self { daemon, agent })
    }

    /// The part that clients talk to.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// The part that owns the tasks.
    pub fn daemon(&self) -> &Daemon {
        &self.daemon
    }

    /// Shuts down in order: clients have up to `answers` to receive pending answers, then runs have up to `runs` to
    /// save their progress. When this returns, no task of the service is left.
    pub async fn shutdown(self, answers: Duration, runs: Duration) {
        self.agent.shutdown_keeping_daemon(answers).await;
        self.daemon.shutdown(runs).await;
    }
}
