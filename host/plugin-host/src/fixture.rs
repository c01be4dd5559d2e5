//! Recorded calls of a plugin (fixtures): finding, replaying and recording them. A replay uses neither network nor
//! clock, so it gives the same result everywhere.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use accounts::{Accounts, Redactor, Secrets};
use bytes::Bytes;
use market::Identity;
use plugin_package::Manifest;
use serde::Serialize;
use serde_json::{Value, json};
use store::{Store, Vault};
pub use svc_plugin_fixture::{
    Asked, Call as FixtureCall, Exchange, Fixture, FixtureError, Input, Mismatch, Response, SCHEMA,
};
use svc_plugin_fixture::{HookInput, record::result, work::Files};
use transfer::Secret;
use url::Url;

use crate::{
    lifecycle::{
        self, rows,
        values::{Values, bindings_of_source},
    },
    policy::{
        grant::{CallTarget, Grant, Permissions},
        host::{Grants, Others},
    },
    runtime::{
        Ask, Call, CallClock, CallId, CallWorkspace, Called, Gap, Guest, InMemory, Journal, Line, RecordedClock,
        Replay, Report, Storage, Watch, World, now_ms, preview,
    },
};

mod expectation;
mod login;
mod unsendable;

pub(crate) use expectation::failed;
pub use unsendable::Unsendable;

/// Where fixtures are unless the manifest says so.
const DEFAULT_TESTS: &str = "fixtures/*.json";

/// The most fixtures that are replayed on installation.
const MAX_PLAYED: usize = 20;

/// Time limit for all replays on installation, because the user waits. A fixture takes milliseconds.
const MAX_PLAYING: Duration = Duration::from_secs(10);

/// The result of a replay.
#[derive(Debug, Clone)]
pub struct Replayed {
    /// The differences; empty if the fixture passes.
    pub problems: Vec<String>,
    pub found: Value,
    pub report: Report,
    pub lines: Vec<Line>,
}

/// Why a fixture cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("not a URL: {0}")]
    Url(String),
    #[error(transparent)]
    Setting(#[from] crate::error::InvalidSetting),
    #[error(transparent)]
    Gap(#[from] Gap),
    #[error("the plugin's capabilities do not include this call")]
    Incapable,
    #[error("cannot make a memory for the plugin: {0}")]
    Memory(String),
}

/// A recorded call.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The call, with its result as the expectation.
    pub fixture: Fixture,
    pub report: Report,
    pub lines: Vec<Line>,
}

/// The manifest's `tests`: a folder, and a pattern of names in it.
fn tests(manifest: &Manifest) -> (&str, &str) {
    let tests = manifest.tests.as_deref().unwrap_or(DEFAULT_TESTS);
    tests.rsplit_once('/').unwrap_or(("", tests))
}

/// The folder of fixtures.
pub(crate) fn folder(manifest: &Manifest) -> &str {
    tests(manifest).0
}

/// Whether the manifest's `tests` name the file at `path`.
pub(crate) fn is_fixture(manifest: &Manifest, path: &str) -> bool {
    let (folder, name) = tests(manifest);
    let (in_folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let is_named = match name.split_once('*') {
        Some((start, end)) => file.len() >= start.len() + end.len() && file.starts_with(start) && file.ends_with(end),
        None => file == name,
    };
    folder == in_folder && is_named
}

/// The fixtures among `files`, by their paths.
pub(crate) fn of_files(
    manifest: &Manifest,
    files: &BTreeMap<String, Bytes>,
) -> Vec<(String, Result<Fixture, FixtureError>)> {
    let read = |path: &Path| {
        let bytes = path.to_str().and_then(|path| files.get(path));
        bytes
            .map(|bytes| bytes.to_vec())
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    };
    let paths = files.keys().filter(|path| is_fixture(manifest, path));
    paths
        .map(|path| (path.clone(), Fixture::read_with(Path::new(path), read)))
        .collect()
}

/// Replays the fixtures of a package; the error is that of the first failure. Fixtures beyond the time limit are
/// skipped: a slow machine is no reason to refuse a plugin.
pub(crate) async fn check(
    files: &BTreeMap<String, Bytes>,
    manifest: &Manifest,
    guest: &Arc<dyn Guest>,
) -> Result<(), (String, String)> {
    let check = async {
        for (path, fixture) in of_files(manifest, files).into_iter().take(MAX_PLAYED) {
            let fixture = fixture.map_err(|error| (path.clone(), crate::error::chain(&error)))?;
            let replayed = replay(manifest, guest, &fixture).await;
            if !replayed.problems.is_empty() {
                return Err((fixture.name, replayed.problems.join("; ")));
            }
        }
        Ok(())
    };
    tokio::time::timeout(MAX_PLAYING, check).await.unwrap_or(Ok(()))
}

/// Replays a fixture.
pub(crate) async fn replay(manifest: &Manifest, guest: &Arc<dyn Guest>, fixture: &Fixture) -> Replayed {
    let redactor = Redactor::default();
    let moment = RecordedClock {
        now_ms: fixture.now,
        seed: fixture.seed,
    };
    let player = Arc::new(Replay::new(moment, fixture.exchanges.clone(), redactor.clone()));
    let values = match stand_ins(manifest, &fixture.settings) {
        Ok(values) => values,
        Err(error) => return not_played(&error),
    };
    let stage = Stage {
        manifest,
        guest,
        values,
        accounts: &fixture.secrets,
        world: World::Recorded(Arc::clone(&player)),
    };
    let played = match stage.play(fixture.call, &fixture.input).await {
        Ok(played) => played,
        Err(error) => return not_played(&error),
    };
    let unsendable = unsendable(manifest, &**guest, fixture);
    let mut problems: Vec<_> = unsendable.iter().map(Unsendable::to_string).collect();
    problems.extend(player.problems());
    problems.extend(unexpected(&fixture.expect, &played.found));
    Replayed {
        problems,
        found: played.found,
        report: played.report,
        lines: played.lines,
    }
}

/// The recorded requests that the plugin could not send even with all permissions of its manifest. Unreadable ones are
/// reported by the replay.
pub(crate) fn unsendable(manifest: &Manifest, guest: &dyn Guest, fixture: &Fixture) -> Vec<Unsendable> {
    let Ok(url) = Url::parse(&fixture.input.url) else {
        return Vec::new();
    };
    let given = CallTarget::by_user(url).with_login_apart();
    let grants = all_hosts(&everything(manifest, guest), manifest, &given);
    let exchanges = fixture.exchanges.iter();
    exchanges
        .filter_map(|exchange| unsendable::check(&exchange.request, &grants, &given.url))
        .collect()
}

fn not_played(error: &RecordError) -> Replayed {
    Replayed {
        problems: vec![error.to_string()],
        found: Value::Null,
        report: Report::default(),
        lines: Vec::new(),
    }
}

/// The differences between a result and the expectation. A failed call is reported as such, not as missing fields.
fn unexpected(expected: &Value, found: &Value) -> Vec<String> {
    if let (None, Some(code)) = (expected.get("error"), found.get("error")) {
        let message = found["message"].as_str().unwrap_or_default();
        return vec![format!(
            "it failed with {}: {message}",
            code.as_str().unwrap_or_default()
        )];
    }
    let differences = svc_plugin_fixture::mismatches(expected, found);
    differences.iter().map(Mismatch::to_string).collect()
}

/// Records a call over the real network. Its settings may hold secrets; the fixture does not.
pub(crate) async fn record(
    manifest: &Manifest,
    guest: &Arc<dyn Guest>,
    call: FixtureCall,
    input: Input,
    settings: &BTreeMap<String, String>,
) -> Result<Recorded, RecordError> {
    let watch = Arc::new(watch());
    let stage = Stage {
        manifest,
        guest,
        values: Values::default().with(manifest.definitions(), settings)?,
        accounts: &BTreeMap::new(),
        world: World::Watched(Arc::clone(&watch)),
    };
    let played = stage.play(call, &input).await?;
    let is_secret = |key: &String| manifest.definitions().any(|it| it.key == *key && it.is_secret);
    let plain = settings.iter().filter(|(key, _)| !is_secret(key));
    let settings = plain.map(|(key, value)| (key.clone(), value.clone())).collect();
    Ok(Recorded {
        fixture: to_fixture(&watch, call, input, settings, &played.found)?,
        report: played.report,
        lines: played.lines,
    })
}

/// Starts a recording.
pub(crate) fn watch() -> Watch {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let moment = RecordedClock {
        now_ms: u64::try_from(now_ms()).unwrap_or_default(),
        // Unpredictable for the plugin's site, and different in every call. Numbers of JSON are exact up to 53 bits
        // everywhere.
        seed: std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), now) >> 11,
    };
    Watch::new(moment, Redactor::default())
}

/// The fixture of a finished call. `found` is its result in the format of fixtures.
pub(crate) fn to_fixture(
    watch: &Watch,
    call: FixtureCall,
    input: Input,
    settings: BTreeMap<String, String>,
    found: &Value,
) -> Result<Fixture, Gap> {
    let redactor = watch.redactor();
    if let Some(password) = &input.password {
        redactor.learn("password", password);
    }
    let mut expect = match found.get("error") {
        Some(code) => json!({ "error": code }),
        None => expectation::pattern(found),
    };
    redactor.value(&mut expect);
    let clean = |text: String| redactor.text(&text);
    let moment = watch.moment();
    let exchanges = watch.exchanges()?;
    Ok(Fixture {
        schema: None,
        name: format!(
            "{} of {}",
            Ask::of(call, &input).map_or("login", |ask| ask.name()),
            clean(input.url.clone())
        ),
        call,
        input: Input {
            url: clean(input.url),
            password: input.password.map(clean),
            token: clean(input.token),
            entry: clean(input.entry),
            variant: input.variant.map(clean),
            since: input.since,
            etag: input.etag.map(clean),
            login: input.login,
            hook: input.hook.map(|hook| HookInput {
                message: hook.message.map(clean),
                ..hook
            }),
            post: input.post,
        },
        settings,
        now: moment.now_ms,
        seed: moment.seed,
        secrets: BTreeMap::new(),
        exchanges,
        expect,
    })
}

/// A fixture's settings, with placeholders for secret ones.
fn stand_ins(manifest: &Manifest, settings: &BTreeMap<String, String>) -> Result<Values, RecordError> {
    let mut values = Values::default().with(manifest.definitions(), settings)?;
    for definition in manifest.definitions().filter(|definition| definition.is_secret) {
        let key = &definition.key;
        if settings.get(key).is_none_or(|value| !value.is_empty()) {
            values
                .secret
                .insert(key.clone(), Secret::new(format!("stand-in-for-{key}")));
        }
    }
    Ok(values)
}

/// The temporary environment of a replayed or recorded call.
struct Stage<'s> {
    manifest: &'s Manifest,
    guest: &'s Arc<dyn Guest>,
    values: Values,
    /// The names of the secrets that each account has, by slot.
    accounts: &'s BTreeMap<String, Vec<String>>,
    world: World,
}

struct Played {
    found: Value,
    report: Report,
    lines: Vec<Line>,
}

impl Stage<'_> {
    async fn play(&self, call: FixtureCall, input: &Input) -> Result<Played, RecordError> {
        let journal = Journal::default();
        if let (Some(redactor), Some(password)) = (self.world.redactor(), &input.password) {
            redactor.learn("password", password);
        }
        let (mut found, report) = match Ask::of(call, input) {
            Some(ask) => {
                let wall = ask.wall(self.manifest).ok_or(RecordError::Incapable)?;
                let prepared = self.prepare(wall, input, &journal).await?;
                let grant = everything(self.manifest, &**self.guest);
                answer(Arc::clone(self.guest), prepared, ask, &grant).await
            }
            None => login::play(self, call, input, &journal).await?,
        };
        if let (World::Recorded(_), Some(redactor)) = (&self.world, self.world.redactor()) {
            redactor.value(&mut found);
        }
        Ok(Played {
            found,
            report,
            lines: journal.lines(&self.manifest.identity),
        })
    }

    async fn prepare(&self, wall: Duration, input: &Input, journal: &Journal) -> Result<Call, RecordError> {
        let manifest = self.manifest;
        let url = Url::parse(&input.url).map_err(|_| RecordError::Url(input.url.clone()))?;
        let given = CallTarget::by_user(url).with_login_apart();
        if let World::Watched(watch) = &self.world {
            watch.redact_given(&given);
        }
        let grant = everything(manifest, &**self.guest);
        let hosts = all_hosts(&grant, manifest, &given);
        let id = CallId(0);
        let (store, vault) = memory(&manifest.identity).await?;
        let mut bindings = grant.bindings(&manifest.permissions.secrets);
        bindings.extend(bindings_of_source(manifest, &given.url));
        let keeper = Accounts::new(store.clone(), vault);
        for (slot, names) in self.accounts.iter().filter(|(slot, _)| !slot.is_empty()) {
            let stored = login::stand_in(&keeper, &manifest.identity, (slot, names), &given.url);
            stored.await.map_err(|error| RecordError::Memory(error.to_string()))?;
        }
        let secrets = Secrets::new(keeper, manifest.identity.clone(), self.values.secret.clone(), bindings);
        Ok(Call {
            id,
            plugin: manifest.identity.clone(),
            given,
            hosts,
            settings: Arc::new(self.values.effective(manifest.definitions())),
            secrets: secrets.with_redactor(self.world.redactor().cloned()),
            storage: Storage::new(store, manifest.identity.clone(), manifest.permissions.storage_bytes),
            // What programs find is not recorded.
            tools: None,
            log: journal.of_call(manifest.identity.clone(), id),
            wall,
            clock: CallClock::default(),
            world: self.world.clone(),
        })
    }
}

/// A grant of everything that a manifest asks for.
fn everything(manifest: &Manifest, guest: &dyn Guest) -> Grant {
    let hosts = manifest.permissions.optional_hosts.named.iter();
    Grant {
        allowed: Permissions::needed(manifest, guest.interface()),
        optional: hosts.map(|host| (host.clone(), true)).collect(),
    }
}

/// The hosts of a call with everything that a manifest asks for, optional hosts included.
fn all_hosts(grant: &Grant, manifest: &Manifest, given: &CallTarget) -> Grants {
    let mut hosts = grant.for_call(&manifest.permissions, &[], given);
    if manifest.permissions.optional_hosts.any {
        hosts.others = Others::Granted;
    }
    hosts
}

/// Temporary storage for one call.
async fn memory(plugin: &Identity) -> Result<(Store, Arc<Vault>), RecordError> {
    fn failed(error: impl std::error::Error) -> RecordError {
        RecordError::Memory(error.to_string())
    }
    let store = Store::in_memory(&[rows::MIGRATIONS]).map_err(failed)?;
    let vault = Vault::ephemeral().map_err(failed)?;
    // Storage requires an installed plugin.
    let develop = lifecycle::Input::Develop(lifecycle::Folder {
        path: PathBuf::new(),
        version: semver::Version::new(0, 0, 0),
        needed: Permissions::default(),
    });
    let (installed, _effects) = lifecycle::apply(None, develop).map_err(failed)?;
    let plugin = plugin.clone();
    store
        .write(move |transaction| {
            let mut installed = installed.iter();
            installed.try_for_each(|installed| rows::save_installation(transaction, &plugin, installed))
        })
        .await
        .map_err(failed)?;
    Ok((store, Arc::new(vault)))
}

/// Performs the call and returns its result in the format of fixtures.
async fn answer(guest: Arc<dyn Guest>, call: Call, ask: Ask, grant: &Grant) -> (Value, Report) {
    fn found<T: Serialize>(called: Called<T>) -> (Value, Report) {
        (called.result.as_ref().map_or_else(failed, result), called.report)
    }
    match ask {
        Ask::Resolve(password) => found(guest.resolve(call, password).await),
        Ask::More(token) => found(guest.more(call, token).await),
        Ask::LinkFor(entry, variant) => found(guest.link_for(call, entry, variant).await),
        Ask::Preview => found(preview(guest, call).await),
        Ask::Feed(request) => found(guest.feed(call, request).await),
        Ask::Hook(event) => found(guest.hook(call, event).await),
        Ask::Post(input) => {
            let files = Arc::new(InMemory::new(Files::from(&input)));
            let work = CallWorkspace::new(Arc::clone(&files) as _, grant.tools());
            let called = guest.post_process(call, input.main, work).await;
            found(Called {
                result: called.result.map(|()| files.with(|files| files.result())),
                report: called.report,
            })
        }
    }
}
