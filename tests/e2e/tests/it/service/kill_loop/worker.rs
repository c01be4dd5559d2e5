//! One client under way: it changes its own tasks at random until it is stopped or cut off.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use e2e::{Rpc, RpcError, Service, service::ask};
use serde_json::{Value, json};

use super::{
    FILES,
    model::{Known, May, Model, Random},
};

/// Tasks of one client; with more it deletes some.
const MOST_TASKS: usize = 10;

/// A client of the service.
pub(super) struct Client {
    dialect: Dialect,
    /// Whether answers that come from now on prove nothing.
    doubts: Arc<AtomicBool>,
}

/// How the service is spoken to.
enum Dialect {
    /// At this address.
    Rest(String),
    Rpc(Box<Rpc>),
}

/// A change, in both dialects.
struct Change {
    rest: (&'static str, String, Option<Value>),
    rpc: (&'static str, Value),
}

/// What became of a change.
enum Outcome {
    Done(Value),
    /// It did not happen.
    Refused,
    /// Nobody knows.
    CutOff,
}

impl Client {
    pub(super) fn rest(service: &Service) -> Self {
        Self::new(Dialect::Rest(service.address().to_owned()))
    }

    pub(super) fn rpc(service: &Service) -> Self {
        Self::new(Dialect::Rpc(Box::new(service.rpc())))
    }

    fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            doubts: Arc::default(),
        }
    }

    /// Answers that come once `doubts` is set prove nothing.
    pub(super) fn doubting(self, doubts: &Arc<AtomicBool>) -> Self {
        Self {
            doubts: Arc::clone(doubts),
            ..self
        }
    }

    fn carry_out(&mut self, change: &Change) -> Outcome {
        let outcome = self.dialect.carry_out(change);
        if self.doubts.load(Ordering::Acquire) {
            return Outcome::CutOff;
        }
        outcome
    }
}

impl Dialect {
    fn carry_out(&mut self, change: &Change) -> Outcome {
        match self {
            Self::Rest(address) => {
                let (method, path, body) = &change.rest;
                match ask(address, method, path, body.as_ref()) {
                    Some(answer) if answer.status == 200 => Outcome::Done(answer.body),
                    Some(answer) if matches!(answer.status, 404 | 409) => Outcome::Refused,
                    Some(answer) if answer.status >= 500 => Outcome::CutOff,
                    Some(answer) => panic!("{method} {path}: {} {}", answer.status, answer.body),
                    None => Outcome::CutOff,
                }
            }
            Self::Rpc(rpc) => match rpc.call(change.rpc.0, &change.rpc.1) {
                Ok(result) => Outcome::Done(result),
                Err(RpcError::Broken(_)) => Outcome::CutOff,
                Err(RpcError::Refused(error)) => match error["data"]["code"].as_str() {
                    Some("notFound" | "conflict") => Outcome::Refused,
                    Some("unavailable" | "timeout") => Outcome::CutOff,
                    _ => panic!("{}: {error}", change.rpc.0),
                },
            },
        }
    }
}

/// A client's memory, which outlives the service's processes.
pub(super) struct Worker {
    pub(super) model: Model,
    number: usize,
    random: Random,
    origin: String,
    names: u64,
}

impl Worker {
    pub(super) fn new(number: usize, seed: u64, origin: String) -> Self {
        Self {
            model: Model::default(),
            number,
            random: Random::new(seed),
            origin,
            names: 0,
        }
    }

    /// Changes tasks until it is told to stop or the service is gone.
    pub(super) fn work(&mut self, mut client: Client, stop: &AtomicBool) {
        while !stop.load(Ordering::Acquire) && !self.step(&mut client) {}
    }

    /// One change. Whether it was cut off.
    fn step(&mut self, client: &mut Client) -> bool {
        let mut ids: Vec<_> = self
            .model
            .tasks
            .iter()
            .filter(|(_, known)| *known.is_there.now())
            .collect();
        ids.sort_by_key(|(id, _)| *id);
        let (count, kind) = (ids.len(), self.random.next() % 8);
        if count < 3 || (kind == 0 && count < MOST_TASKS) {
            return self.create(client);
        }
        let index = usize::try_from(self.random.next()).expect("it is small") % count;
        let (id, known) = ids[index];
        let (id, is_paused) = (id.clone(), *known.is_paused.now());
        match kind {
            0 | 1 => self.delete(client, &id),
            2 | 3 if is_paused => self.rename(client, &id),
            _ => self.pause_or_resume(client, &id, !is_paused),
        }
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("client-{}-{}.bin", self.number, self.names)
    }

    fn create(&mut self, client: &mut Client) -> bool {
        let name = self.name();
        let url = format!("{}/{}", self.origin, self.random.next() % FILES.len() as u64);
        let is_paused = self.random.next().is_multiple_of(4);
        let request = json!({"url": url, "fileName": name, "segments": 4, "startPaused": is_paused});
        let known = Known {
            url,
            name: May::be(name.clone()),
            is_paused: May::be(is_paused),
            is_there: May::be(true),
            is_complete: false,
            leaves_file: false,
        };
        let outcome = client.carry_out(&Change {
            rest: ("POST", "/api/v1/tasks".to_owned(), Some(request.clone())),
            rpc: ("daemon.task.create", json!({"request": request})),
        });
        match outcome {
            Outcome::Done(created) => {
                let id = created["taskId"].as_str().expect("a created task has an id").to_owned();
                self.model.tasks.insert(id, known);
                self.model.counts.acknowledged("create");
                false
            }
            Outcome::Refused => panic!("{name} could not be created"),
            Outcome::CutOff => {
                self.model.begun.insert(name, known);
                true
            }
        }
    }

    fn pause_or_resume(&mut self, client: &mut Client, id: &str, pauses: bool) -> bool {
        let (verb, method) = if pauses {
            ("pause", "daemon.task.pauseMany")
        } else {
            ("continue", "daemon.task.resumeMany")
        };
        let outcome = client.carry_out(&Change {
            rest: ("PUT", format!("/api/v1/tasks/{id}/{verb}"), None),
            rpc: (method, json!({"taskIds": [id, id, "no such task"]})),
        });
        self.changed("pause or continue", &outcome, id, |known, is_certain| {
            known.is_paused.become_(pauses, is_certain);
        })
    }

    fn rename(&mut self, client: &mut Client, id: &str) -> bool {
        let name = self.name();
        let outcome = client.carry_out(&Change {
            rest: (
                "POST",
                format!("/api/v1/tasks/{id}/rename"),
                Some(json!({"fileName": name})),
            ),
            rpc: ("daemon.task.rename", json!({"taskId": id, "fileName": name})),
        });
        self.changed("rename", &outcome, id, |known, is_certain| {
            known.name.become_(name, is_certain);
        })
    }

    fn delete(&mut self, client: &mut Client, id: &str) -> bool {
        let deletes_files = self.random.next().is_multiple_of(2);
        let outcome = client.carry_out(&Change {
            rest: (
                "DELETE",
                format!("/api/v1/tasks/{id}?deleteFiles={deletes_files}"),
                None,
            ),
            rpc: (
                "daemon.task.delete",
                json!({"taskId": id, "deleteFiles": deletes_files}),
            ),
        });
        self.changed("delete", &outcome, id, |known, is_certain| {
            known.leaves_file = !deletes_files;
            known.is_there.become_(false, is_certain);
        })
    }

    /// Notes a change of a task. Whether it was cut off.
    fn changed(
        &mut self,
        kind: &'static str,
        outcome: &Outcome,
        id: &str,
        change: impl FnOnce(&mut Known, bool),
    ) -> bool {
        let known = self.model.tasks.get_mut(id).expect("only known tasks are changed");
        match outcome {
            Outcome::Done(_) => {
                change(known, true);
                self.model.counts.acknowledged(kind);
            }
            Outcome::Refused => {}
            Outcome::CutOff => {
                change(known, false);
                self.model.cut_off = Some(kind);
                return true;
            }
        }
        false
    }
}
