//! What is not a task: queues with their limits and schedules, the limit of all, logins of sites, groups. One client
//! changes them at random and knows of each which values it may have.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
};

use e2e::{Rpc, RpcError};
use serde_json::{Value, json};

use super::model::{Counts, May, Random};

/// The kinds of changes.
pub(super) const FACT_CHANGES: [&str; 5] = ["queue", "schedule", "limit", "login", "group"];

/// Tasks of a group; it comes and goes with all of them.
const GROUP_TASKS: usize = 3;

/// A setting that does not change what the downloads of this test do.
const LIMIT: &str = "speed_limit_bytes";

/// Added to every value of it, so that no download is slowed.
const NO_LIMIT: u64 = 1 << 40;

/// The beginning of the names of queues and groups here.
const PREFIX: &str = "facts-";

/// The only client that changes these, and its memory.
pub(super) struct Facts {
    random: Random,
    /// By name; `null` if it is not there.
    known: BTreeMap<String, May<Value>>,
    pub(super) counts: Counts,
    /// The change that was cut off: its kind and the name of what it changes.
    cut_off: Option<(&'static str, String)>,
}

impl Facts {
    pub(super) fn new(seed: u64) -> Self {
        let names = ["a", "b"].into_iter().flat_map(|slot| {
            let kinds = ["queue", "login", "group"];
            kinds.map(|kind| (format!("{kind} {slot}"), May::be(Value::Null)))
        });
        let limit = ("limit".to_owned(), May::be(json!("0")));
        Self {
            random: Random::new(seed),
            known: names.chain([limit]).collect(),
            counts: Counts::default(),
            cut_off: None,
        }
    }

    /// Changes until it is told to stop or the service is gone. Answers that come once `doubts` is set prove nothing.
    pub(super) fn work(&mut self, mut rpc: Rpc, stop: &AtomicBool, doubts: &AtomicBool) {
        while !stop.load(Ordering::Acquire) {
            let kind = FACT_CHANGES[usize::try_from(self.random.next()).expect("it is small") % FACT_CHANGES.len()];
            let slot = if self.random.next().is_multiple_of(2) { "a" } else { "b" };
            // A rotation changes nothing that is seen. If a kill left values that no key opens, the service would not
            // start again.
            let rotates = self.random.next().is_multiple_of(4);
            if rotates && answer(rpc.call("daemon.vault.rotate", &json!({}))).is_err() {
                return;
            }
            if self.change(&mut rpc, kind, slot, doubts).is_err() {
                return;
            }
        }
    }

    /// One change. An error if the service is gone.
    fn change(&mut self, rpc: &mut Rpc, kind: &'static str, slot: &str, doubts: &AtomicBool) -> Result<(), Gone> {
        let name = match kind {
            "limit" => kind.to_owned(),
            "schedule" => format!("queue {slot}"),
            kind => format!("{kind} {slot}"),
        };
        let before = self.known[&name].now().clone();
        let number = 1 + self.random.next() % 1000;
        let removes = number.is_multiple_of(3);
        let own = format!("{PREFIX}{slot}");
        // What it becomes, and the call that makes it that.
        let (after, method, params) = match kind {
            "queue" if before.is_null() => {
                let params = json!({"name": own, "speedLimitKbps": number});
                (queue(number, ""), "daemon.queue.create", params)
            }
            "queue" | "schedule" if before.is_null() => return Ok(()),
            "queue" if removes => {
                let id = id_of(rpc, "queue", &own)?;
                (Value::Null, "daemon.queue.delete", json!({"queueId": id}))
            }
            "queue" => {
                let params = json!({"queueId": id_of(rpc, "queue", &own)?, "name": own, "speedLimitKbps": number});
                let start = before["start"].as_str().expect("queues have schedules");
                (queue(number, start), "daemon.queue.update", params)
            }
            "schedule" => {
                let start = format!("{:02}:{:02}", number % 24, number % 60);
                let id = id_of(rpc, "queue", &own)?;
                let params = json!({"queueId": id, "enabled": false, "startTime": start, "stopTime": ""});
                let limit = before["limit"].as_u64().expect("queues have limits");
                (queue(limit, &start), "daemon.queue.schedule", params)
            }
            "limit" => {
                let config = answer(rpc.call("daemon.config.get", &json!({})))?;
                let limit = (NO_LIMIT + number).to_string();
                let values = json!({LIMIT: limit});
                let params = json!({"expectedRevision": config["revision"], "values": values});
                (json!(limit), "daemon.config.patch", params)
            }
            "login" if removes && !before.is_null() => {
                (Value::Null, "daemon.siteAuth.delete", json!({"site": site(slot)}))
            }
            "login" => {
                let user = format!("user-{number}");
                let params = json!({"site": site(slot), "user": user, "pass": "p"});
                (json!(user), "daemon.siteAuth.save", params)
            }
            _ if before.is_null() => {
                let request = |task| json!({"url": format!("http://127.0.0.1:9/{task}"), "startPaused": true});
                let requests: Vec<_> = (0..GROUP_TASKS).map(request).collect();
                let params = json!({"groupName": own, "requests": requests});
                (json!(GROUP_TASKS), "daemon.group.createTasks", params)
            }
            _ => {
                let id = id_of(rpc, "group", &own)?;
                (Value::Null, "daemon.group.delete", json!({"groupId": id}))
            }
        };
        let mut outcome = answer(rpc.call(method, &params));
        if doubts.load(Ordering::Acquire) {
            outcome = Err(Gone);
        }
        let known = self.known.get_mut(&name).expect("all names are known");
        known.become_(after, outcome.is_ok());
        match outcome {
            Ok(_) => self.counts.acknowledged(kind),
            Err(Gone) => self.cut_off = Some((kind, name)),
        }
        outcome.map(drop)
    }

    /// Everything that was acknowledged is there; what was cut off is there or not, but whole. Takes the tasks of groups
    /// out of `tasks`.
    pub(super) fn check(&mut self, rpc: &mut Rpc, tasks: &mut Vec<Value>, when: &str) {
        let mut found = read(rpc, tasks);
        for (name, known) in &mut self.known {
            let value = found.remove(name).unwrap_or_default();
            assert!(known.allows(&value), "{when}: {name} is {value}, but {known:?}");
            if let Some((kind, _)) = self.cut_off.take_if(|(_, cut_off)| cut_off == name)
                && let Some(is_done) = known.is_done(&value)
            {
                self.counts.cut_off(kind, is_done);
            }
            *known = May::be(value);
        }
        assert!(found.is_empty(), "{when}: nobody asked for these: {found:#?}");
    }

    /// Deletes the groups, so that their tasks do not start.
    pub(super) fn end(rpc: &mut Rpc) {
        for group in list(rpc, "daemon.group.list") {
            rpc.call("daemon.group.delete", &json!({"groupId": group["groupId"]}))
                .expect("a group can be deleted");
        }
    }
}

/// The service does not answer.
#[derive(Debug)]
struct Gone;

fn answer(reply: Result<Value, RpcError>) -> Result<Value, Gone> {
    match reply {
        Ok(result) => Ok(result),
        Err(RpcError::Broken(_)) => Err(Gone),
        Err(RpcError::Refused(error)) => match error["data"]["code"].as_str() {
            Some("unavailable" | "timeout") => Err(Gone),
            _ => panic!("{error}"),
        },
    }
}

fn queue(limit: u64, start: &str) -> Value {
    json!({"limit": limit, "start": start})
}

fn site(slot: &str) -> String {
    format!("https://{slot}.test")
}

fn id_of(rpc: &mut Rpc, kind: &str, name: &str) -> Result<Value, Gone> {
    let all = answer(rpc.call(&format!("daemon.{kind}.list"), &json!({})))?;
    let all = all.as_array().expect("a list");
    let found = all.iter().find(|one| one["name"] == name);
    Ok(found.unwrap_or_else(|| panic!("no {kind} {name} in {all:?}"))[format!("{kind}Id")].clone())
}

fn list(rpc: &mut Rpc, method: &str) -> Vec<Value> {
    let list = rpc.call(method, &json!({})).expect("a read is answered");
    list.as_array().expect("a list").clone()
}

/// All of it, as it is now, by name.
fn read(rpc: &mut Rpc, tasks: &mut Vec<Value>) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for queue in list(rpc, "daemon.queue.list") {
        if let Some(slot) = slot_of(&queue["name"]) {
            let limit = queue["speedLimitKbps"].as_u64().expect("queues have limits");
            let start = queue["scheduleStart"].as_str().expect("queues have schedules");
            found.insert(format!("queue {slot}"), self::queue(limit, start));
        }
    }
    for login in list(rpc, "daemon.siteAuth.list") {
        let site = login["site"].as_str().expect("logins have sites");
        let slot = site.trim_start_matches("https://").trim_end_matches(".test");
        found.insert(format!("login {slot}"), login["user"].clone());
    }
    for group in list(rpc, "daemon.group.list") {
        let before = tasks.len();
        tasks.retain(|task| task["groupId"] != group["groupId"]);
        let slot = slot_of(&group["name"]).expect("groups have the names that they were given");
        found.insert(format!("group {slot}"), json!(before - tasks.len()));
    }
    let config = rpc.call("daemon.config.get", &json!({})).expect("a read is answered");
    found.insert("limit".to_owned(), config["values"][LIMIT].clone());
    found
}

fn slot_of(name: &Value) -> Option<&str> {
    name.as_str().expect("there is a name").strip_prefix(PREFIX)
}
