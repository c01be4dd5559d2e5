//! What a refresh costs: `cargo run --release --example refresh_cost -p market`. One process makes a source of 10,000
//! versions, another one is its client, so that the figures of memory are the client's alone. With the name of a
//! folder, the source stays there, before and after its new versions, and its key is printed.

use std::{
    collections::BTreeMap,
    error::Error,
    fs,
    io::Write as _,
    path::Path,
    process::Command,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use jiff::{SignedDuration, Timestamp};
use market::{
    Author, Digest, Entry, Folder, Identity, Origin, Plugin, PublicKey, Reading, Role, SourceState, VerifiedPackage,
    fetch::{self, Source},
    merge, path,
    record::{
        self, FileRecord, IndexRecord, NumberRecord, RevocationsRecord, RoleRecord, RolesRecord, RootRecord, SPEC,
        SourceRecord, TimestampRecord,
    },
    signature::{Compact, Purpose},
};
use minisign::KeyPair;
use semver::Version;

type Failed = Box<dyn Error>;

const PLUGINS: u32 = 1000;
const VERSIONS: u32 = 10;
const PACKAGE_BYTES: usize = 200 * 1024;

fn main() -> Result<(), Failed> {
    let arguments: Vec<_> = std::env::args().collect();
    match &arguments[..] {
        [_, folder] => return say(&publish(Path::new(folder))?.to_string()),
        [_, folder, key] => return client(Path::new(folder), key.parse()?),
        _ => {}
    }
    let folder = tempfile::tempdir()?;
    let key = publish(folder.path())?;
    let status = Command::new(std::env::current_exe()?)
        .arg(folder.path())
        .arg(key.to_string())
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err("the client failed".into())
    }
}

/// Writes the source twice: in `old`, and in `new` with new versions of ten plugins.
fn publish(folder: &Path) -> Result<PublicKey, Failed> {
    let pair = KeyPair::generate_unencrypted_keypair()?;
    let key: PublicKey = pair.pk.to_base64().parse()?;
    let now = Timestamp::now();
    let later = now + SignedDuration::from_hours(24);
    let mut index = IndexRecord {
        spec: SPEC.to_owned(),
        seq: 1,
        expires: later,
        plugins: BTreeMap::new(),
    };
    for number in 0..PLUGINS {
        let identity: Identity = format!("plugin-{number}@author-{}", number % 100).parse()?;
        let versions = (1..=VERSIONS)
            .map(|version| entry(&pair, &identity, version, now))
            .collect::<Result<_, _>>()?;
        index.plugins.insert(identity, plugin(number, key, versions));
    }
    let old = record::to_bytes(&index);
    write_source(&folder.join("old"), &pair, (1, &old), (now, later))?;
    index.seq = 2;
    for (identity, plugin) in index.plugins.iter_mut().take(10) {
        plugin.versions.push(entry(&pair, identity, VERSIONS + 1, now)?);
        plugin.versions.remove(0);
    }
    let new = record::to_bytes(&index);
    write_source(&folder.join("new"), &pair, (2, &new), (now, later))?;
    fs::write(
        folder.join("new").join(path::diff(1, 2)),
        merge::diff(&old, &new).ok_or("there is a patch")?,
    )?;
    Ok(key)
}

fn plugin(number: u32, key: PublicKey, versions: Vec<Entry>) -> Plugin {
    Plugin {
        name: format!("Plugin {number}"),
        description: "Downloads the files behind the links of a site, and lists what is in its folders.".to_owned(),
        homepage: Some(format!("https://plugin-{number}.example.org/")),
        tags: vec!["video".to_owned(), "files".to_owned()],
        author: Author {
            name: "An author".to_owned(),
            key,
            rotations: Vec::new(),
        },
        versions,
    }
}

fn entry(pair: &KeyPair, identity: &Identity, number: u32, now: Timestamp) -> Result<Entry, Failed> {
    let version = Version::new(1, number.into(), 0);
    let bytes = package(identity, &version);
    let sha256 = Digest::of(&bytes);
    let purpose = Purpose::Package {
        identity,
        version: &version,
        sha256,
    };
    let permissions = serde_json::json!({
        "hosts": ["https://api.example.org", "https://*.cdn.example.org"], "cookies": "jar", "storageKb": 256
    });
    Ok(Entry {
        seq: number.into(),
        sha256,
        size: bytes.len() as u64,
        mirrors: vec![path::package(identity, &version)],
        min_host: Some(Version::new(0, 1, 0)),
        abi: "0.1".parse()?,
        permissions: serde_json::value::to_raw_value(&permissions)?,
        imports_digest: Some(sha256),
        published: now,
        signature: Compact::from_file(&sign(pair, &bytes, purpose)?)?,
        fixtures: 3,
        yanked: None,
        version,
    })
}

/// The first package of all has the usual size; the others are their names, to be signed quickly.
fn package(identity: &Identity, version: &Version) -> Vec<u8> {
    let name = format!("{identity} {version}");
    let is_first = identity.as_str().starts_with("plugin-0@") && version.minor == 2;
    if is_first {
        name.into_bytes().into_iter().cycle().take(PACKAGE_BYTES).collect()
    } else {
        name.into_bytes()
    }
}

fn write_source(
    folder: &Path,
    pair: &KeyPair,
    (seq, index): (u64, &[u8]),
    (now, expires): (Timestamp, Timestamp),
) -> Result<(), Failed> {
    fs::create_dir_all(folder.join(path::DIFFS))?;
    let write = |role: Role, seq: u64, body: &[u8]| -> Result<FileRecord, Failed> {
        let sha256 = Digest::of(body);
        fs::write(folder.join(path::document(role, seq)), body)?;
        let signature = sign(pair, body, Purpose::Document { role, seq, sha256 })?;
        fs::write(folder.join(path::signatures(role, seq)), signature)?;
        Ok(FileRecord::of(seq, body))
    };
    let role = || RoleRecord {
        keys: vec![pair.pk.to_base64().parse().expect("minisign writes its keys so")],
        threshold: 1,
    };
    let root = RootRecord {
        spec: SPEC.to_owned(),
        seq: 1,
        expires,
        source: SourceRecord {
            id: "measure".parse().expect("it is an id"),
            name: "Measure".to_owned(),
        },
        roles: RolesRecord {
            root: role(),
            timestamp: role(),
            index: role(),
            revocations: role(),
        },
        authors: BTreeMap::new(),
    };
    write(Role::Root, 1, &record::to_bytes(&root))?;
    let revocations = RevocationsRecord {
        spec: SPEC.to_owned(),
        seq: 1,
        items: Vec::new(),
    };
    let timestamp = TimestampRecord {
        spec: SPEC.to_owned(),
        seq,
        issued: now,
        expires,
        root: NumberRecord { seq: 1 },
        index: write(Role::Index, seq, index)?,
        revocations: write(Role::Revocations, 1, &record::to_bytes(&revocations))?,
    };
    write(Role::Timestamp, seq, &record::to_bytes(&timestamp))?;
    Ok(())
}

fn sign(pair: &KeyPair, message: &[u8], purpose: Purpose<'_>) -> Result<String, Failed> {
    let signature = minisign::sign(None, &pair.sk, message, Some(&purpose.to_string()), Some("measure"))?;
    Ok(signature.to_string())
}

/// A folder that counts what is read from it.
#[derive(Debug)]
struct Counted(Folder, AtomicU64);

impl Origin for Counted {
    fn read<'a>(&'a self, place: &'a str, limit: u64, into: &'a mut Vec<u8>) -> Reading<'a> {
        Box::pin(async move {
            let read = self.0.read(place, limit, into).await;
            self.1.fetch_add(into.len() as u64, Ordering::Relaxed);
            read
        })
    }
}

fn client(folder: &Path, key: PublicKey) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let first = runtime.block_on(refresh(
        "first refresh",
        &SourceState::with_key(key),
        &folder.join("old"),
    ))?;
    let again = runtime.block_on(refresh("nothing new", &first, &folder.join("old")))?;
    let state = runtime.block_on(refresh("ten new versions", &again, &folder.join("new")))?;

    let index = state.index()?.ok_or("there is an index")?;
    let identity: Identity = "plugin-0@author-0".parse()?;
    let plugin = index.plugin(&identity).ok_or("there is a plugin")?;
    let entry = plugin
        .versions
        .iter()
        .find(|entry| entry.size > 1000)
        .ok_or("there is a package")?;
    let bytes = package(&identity, &entry.version).into();
    let start = Instant::now();
    VerifiedPackage::new(bytes, &identity, entry, &plugin.author.key)?;
    say(&format!(
        "{:20}{:8.1} ms",
        "package of 200 KiB",
        milliseconds(start.elapsed())
    ))
}

async fn refresh(what: &str, state: &SourceState, folder: &Path) -> Result<SourceState, Failed> {
    let counted = Counted(Folder::new(folder), AtomicU64::new(0));
    let before = memory("VmRSS")?;
    fs::write("/proc/self/clear_refs", "5")?;
    let start = Instant::now();
    let source = Source {
        state,
        origins: &[&counted],
    };
    let refreshed = fetch::refresh(source, Timestamp::now()).await?;
    let elapsed = milliseconds(start.elapsed());
    let (peak, read) = (
        memory("VmHWM")?.saturating_sub(before),
        counted.1.load(Ordering::Relaxed),
    );
    say(&format!(
        "{what:20}{elapsed:8.1} ms {read:10} bytes {peak:8} KiB more at the peak, {} plugins",
        refreshed.index.plugins().len()
    ))?;
    Ok(refreshed.state)
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// A figure of this process in KiB.
fn memory(name: &str) -> Result<u64, Failed> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .ok_or("Linux tells it")?;
    Ok(line.trim_start_matches(':').trim().trim_end_matches(" kB").parse()?)
}

fn say(line: &str) -> Result<(), Failed> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}
