//! What all connections of a run know: its servers, and the facts of its file.

use std::{cell::Cell, sync::Arc};

use egress::Pins;
use transfer::{Failure, Job, failure::FailureKind, run::logins::Work};

use crate::{SCHEMES, access::Access, facts::Facts, place::Place, session::Session, shared::Shared};

/// One of the URLs, with what is known from it alone.
pub(crate) struct Server {
    pub(crate) access: Access,
    pub(crate) place: Place,
}

/// It stays on one lane, so plain cells suffice.
pub(crate) struct Run {
    pub(crate) shared: Arc<Shared>,
    pub(crate) work: Work,
    servers: Vec<Server>,
    /// Index of the server in use.
    current: Cell<usize>,
    /// The facts of the file that the bytes on disk are of.
    pub(crate) facts: Cell<Facts>,
    /// Whether the complete file was seen to be the same as in the beginning.
    pub(crate) is_confirmed: Cell<bool>,
    pins: Pins,
}

impl Run {
    pub(crate) fn new(shared: Arc<Shared>, job: Job) -> Result<Self, Failure> {
        let urls = job.source.urls.iter().filter(|url| SCHEMES.contains(&url.scheme()));
        let servers = urls
            .map(|url| {
                Ok(Server {
                    access: Access::of(&shared.config, &job.source, url)?,
                    place: Place::of(url)?,
                })
            })
            .collect::<Result<Vec<_>, Failure>>()?;
        let Some(first) = servers.first() else {
            return Err(Failure::new(FailureKind::UnsupportedScheme, "no URL is one of SFTP"));
        };
        if let Some(directory) = servers.iter().find(|server| server.place.is_directory) {
            let why = format!("{} is a directory, not a file", directory.access.url);
            return Err(Failure::new(FailureKind::NotTheFile, why));
        }
        let work = Work::new(job, &first.access.url, first.place.name());
        Ok(Self {
            work,
            facts: Cell::default(),
            is_confirmed: Cell::new(false),
            pins: Pins::default(),
            current: Cell::new(0),
            servers,
            shared,
        })
    }

    /// How many URLs the file has.
    pub(crate) fn urls(&self) -> usize {
        self.servers.len()
    }

    pub(crate) fn server(&self) -> &Server {
        &self.servers[self.current.get()]
    }

    /// Goes on with the next URL, if there is another. Its time of change need not be that of the first.
    pub(crate) fn use_next_url(&self) -> bool {
        if self.servers.len() < 2 {
            return false;
        }
        self.current.set((self.current.get() + 1) % self.servers.len());
        self.facts.set(Facts {
            modified: None,
            ..self.facts.get()
        });
        true
    }

    /// Connects and logs in at the present server.
    pub(crate) async fn connect(&self) -> Result<Session, Failure> {
        let access = &self.server().access;
        let url = access.url.as_url();
        let session = Session::open(&self.shared, access, self.pins.narrow(url, access.reach)).await?;
        if let Some(address) = session.address() {
            self.pins.note(url, address);
        }
        Ok(session)
    }

    /// Discards every byte and all facts of the file.
    pub(crate) fn start_over(&self) -> Result<(), Failure> {
        self.facts.set(Facts::default());
        self.work.start_over()
    }

    /// How many connections the file is worth, and its server is known to allow.
    pub(crate) fn wanted(&self) -> u16 {
        self.work.wanted(self.shared.caps.get(&self.server().access.host))
    }

    /// Remembers that the server allows `connections` logins only.
    pub(crate) fn learn_cap(&self, connections: u16) {
        self.shared.caps.learn(&self.server().access.host, connections);
    }
}
