//! Validation of a manifest beyond its shape: values in their ranges, and parts that fit each other.

use std::{collections::BTreeSet, time::Duration};

use regex::RegexBuilder;
use transfer::{ByteCount, FileName};

use super::{
    Asked, Capabilities, Feed, InvalidManifest, Manifest, OptionalHosts, Resolver,
    record::{
        CapabilitiesRecord, CookiesRecord, Hook, LoginSlot, ManifestRecord, OptionalHost, PermissionsRecord,
        SettingRecord,
    },
};
use crate::{Choice, Definition, UrlPattern, Widget, setting::ValueType};

/// The longest time of a resolver call, if the manifest names none.
const WALL: Duration = Duration::from_secs(15);

/// The longest time that a manifest may ask for. A user waits meanwhile.
const MAX_WALL: Duration = Duration::from_secs(30);

/// Memory of an instance in MiB if the manifest names none, and the most that it may ask for.
const MEMORY_MB: u64 = 64;
const MAX_MEMORY_MB: u64 = 128;

/// Storage of a plugin in KiB if the manifest names none, which is also the most that it may ask for.
const STORAGE_KB: u64 = 1024;

/// The most patterns, hosts, secrets or settings, each: more than any honest plugin has.
const MAX_ITEMS: usize = 256;

/// The most accounts of a plugin, each of which may have cookies and secrets, and the longest id of one.
const MAX_SLOTS: usize = 8;
const MAX_SLOT_BYTES: usize = 64;

/// The longest name or key in bytes.
const MAX_NAME_BYTES: usize = 200;

/// The longest description, title or URL in bytes.
const MAX_TEXT_BYTES: usize = 4096;

/// The most memory of a setting's compiled pattern in bytes. Bounded, because the plugin chooses the pattern.
const MAX_PATTERN_BYTES: usize = 256 * 1024;

type Result<T> = std::result::Result<T, InvalidManifest>;

pub(super) fn check(record: ManifestRecord) -> Result<Manifest> {
    if record.manifest_version == 0 {
        return Err(InvalidManifest::new("/manifestVersion", "versions start at 1"));
    }
    text("/name", &record.name, MAX_NAME_BYTES)?;
    if record.name.trim().is_empty() {
        return Err(InvalidManifest::new("/name", "is empty"));
    }
    text("/description", &record.description, MAX_TEXT_BYTES)?;
    if let Some(homepage) = &record.homepage {
        text("/homepage", homepage, MAX_TEXT_BYTES)?;
        let is_web = url::Url::parse(homepage).is_ok_and(|url| matches!(url.scheme(), "https" | "http"));
        ensure(is_web, "/homepage", || "is no http(s) URL")?;
    }
    if let Some(icon) = &record.icon {
        ensure(is_path(icon), "/icon", || "is no path inside the package")?;
    }
    // Under development the code lies where the compiler puts it, which is deep in the folder.
    ensure(!record.entry.is_empty(), "/entry", || "is empty")?;
    let mut keys = BTreeSet::new();
    let settings = definitions("/settings", record.settings, &mut keys)?;
    Ok(Manifest {
        capabilities: capabilities(record.capabilities, &mut keys)?,
        permissions: permissions(record.permissions)?,
        identity: record.identity,
        name: record.name,
        version: record.version,
        description: record.description,
        homepage: record.homepage,
        icon: record.icon,
        license: record.license,
        language: record.runtime,
        entry: record.entry,
        abi: record.abi,
        min_host: record.min_host,
        settings,
        tests: record.tests,
        author: record.author,
    })
}

/// The settings at a place of the manifest. A plugin reads all of them by their keys, which are in `keys`.
fn definitions(pointer: &str, records: Vec<SettingRecord>, keys: &mut BTreeSet<String>) -> Result<Vec<Definition>> {
    count(pointer, records.len())?;
    let checked = records.into_iter().enumerate().map(|(index, record)| {
        let place = format!("{pointer}/{index}");
        let definition = setting(&place, record)?;
        let is_first = keys.insert(definition.key.clone());
        ensure(is_first, &format!("{place}/key"), || "is there twice")?;
        Ok(definition)
    });
    checked.collect()
}

fn capabilities(record: CapabilitiesRecord, keys: &mut BTreeSet<String>) -> Result<Capabilities> {
    let is_empty = record.resolver.is_none()
        && !record.preview
        && record.feed.is_none()
        && record.login.is_none()
        && record.post.is_none()
        && record.hook.is_none();
    ensure(!is_empty, "/capabilities", || "the plugin can do nothing")?;
    ensure(
        !record.preview || record.resolver.is_some(),
        "/capabilities/preview",
        || "a preview needs a resolver, whose URLs it shows",
    )?;
    let resolver = record.resolver.map(|resolver| -> Result<Resolver> {
        let wall = resolver.wall_ms.map_or(WALL, |ms| Duration::from_millis(ms.into()));
        let is_allowed = !wall.is_zero() && wall <= MAX_WALL;
        ensure(is_allowed, "/capabilities/resolver/wallMs", || {
            format!("is not between 1 and {}", MAX_WALL.as_millis())
        })?;
        let place = "/capabilities/resolver/matchSetting";
        let is_setting = resolver.match_setting.as_ref().is_none_or(|key| keys.contains(key));
        ensure(is_setting, place, || "is no key of the settings")?;
        let is_said = resolver.r#match.is_some() || resolver.match_setting.is_some();
        ensure(
            is_said,
            "/capabilities/resolver",
            || "has neither match nor matchSetting",
        )?;
        let place = "/capabilities/resolver/match";
        let matches = resolver.r#match.map(|matches| patterns(place, matches)).transpose()?;
        Ok(Resolver {
            matches: matches.unwrap_or_default(),
            match_setting: resolver.match_setting,
            priority: resolver.priority,
            wall,
            gives_lists: resolver.multi,
        })
    });
    let feed = record.feed.map(|feed| -> Result<Feed> {
        Ok(Feed {
            matches: patterns("/capabilities/feed/match", feed.r#match)?,
            config: definitions("/capabilities/feed/config", feed.config, keys)?,
        })
    });
    let login = record
        .login
        .map(|login| slots(login.slots))
        .transpose()?
        .unwrap_or_default();
    let resolver = resolver.transpose()?;
    if let Some(hook) = &record.hook {
        check_hook(hook, resolver.is_some())?;
    }
    Ok(Capabilities {
        resolver,
        preview: record.preview,
        feed: feed.transpose()?,
        login,
        post: record.post,
        hook: record.hook,
    })
}

fn check_hook(hook: &Hook, has_resolver: bool) -> Result<()> {
    ensure(!hook.events.is_empty(), "/capabilities/hook/events", || "is empty")?;
    count("/capabilities/hook/events", hook.events.len())?;
    let place = "/capabilities/hook/match";
    count(place, hook.matches.len())?;
    ensure(
        !hook.matches.is_empty() || has_resolver,
        place,
        || "is empty, and there is no resolver whose URLs it could be about",
    )
}

/// The accounts of a plugin.
fn slots(slots: Vec<LoginSlot>) -> Result<Vec<LoginSlot>> {
    let place = "/capabilities/login/slots";
    ensure((1..=MAX_SLOTS).contains(&slots.len()), place, || {
        format!("has {} slots instead of 1 to {MAX_SLOTS}", slots.len())
    })?;
    let mut ids = BTreeSet::new();
    for (index, slot) in slots.iter().enumerate() {
        let place = |key: &str| format!("{place}/{index}/{key}");
        let is_id = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let has_id = (1..=MAX_SLOT_BYTES).contains(&slot.id.len()) && slot.id.chars().all(is_id);
        ensure(has_id, &place("id"), || {
            format!("is not 1 to {MAX_SLOT_BYTES} letters, digits, _ and -")
        })?;
        ensure(ids.insert(&slot.id), &place("id"), || "is there twice")?;
        text(&place("title"), &slot.title, MAX_NAME_BYTES)?;
        ensure(!slot.modes.is_empty(), &place("modes"), || "is empty")?;
        count(&place("modes"), slot.modes.len())?;
        count(&place("keeps"), slot.keeps.len())?;
        for (key, is_zero) in [
            ("maxParallel", slot.max_parallel == Some(0)),
            ("dailyFiles", slot.daily_files == Some(0)),
            ("dailyBytes", slot.daily_bytes == Some(0)),
        ] {
            ensure(!is_zero, &place(key), || "is 0; leave it out for no limit")?;
        }
    }
    Ok(slots)
}

pub(super) fn permissions(record: PermissionsRecord) -> Result<Asked> {
    count("/permissions/hosts", record.hosts.len())?;
    count("/permissions/optionalHosts", record.optional_hosts.len())?;
    count("/permissions/secrets", record.secrets.len())?;
    let hosts = record.hosts;
    let optional_hosts = optional_hosts(record.optional_hosts);
    let mut secrets = std::collections::BTreeMap::new();
    for (name, bound) in record.secrets {
        let place = |index: usize| format!("/permissions/secrets/{name}/{index}");
        count(&format!("/permissions/secrets/{name}"), bound.len())?;
        for (index, host) in bound.iter().enumerate() {
            let is_asked = hosts
                .iter()
                .chain(&optional_hosts.named)
                .any(|asked| asked.covers_pattern(host));
            ensure(is_asked, &place(index), || "is not among hosts or optionalHosts")?;
        }
        secrets.insert(name, bound);
    }
    let storage_kb = record.storage_kb.unwrap_or(STORAGE_KB);
    ensure(storage_kb <= STORAGE_KB, "/permissions/storageKb", || {
        format!("is more than {STORAGE_KB}")
    })?;
    let memory_mb = record.memory_mb.unwrap_or(MEMORY_MB);
    ensure(
        (1..=MAX_MEMORY_MB).contains(&memory_mb),
        "/permissions/memoryMb",
        || format!("is not between 1 and {MAX_MEMORY_MB}"),
    )?;
    Ok(Asked {
        hosts,
        optional_hosts,
        input_host: record.input_host,
        secrets,
        derives_secrets: record.derive_secrets,
        discovers_media: record.discover_media,
        reads_cookies: record.cookies == CookiesRecord::Read,
        storage_bytes: storage_kb * 1024,
        memory_bytes: memory_mb * 1024 * 1024,
    })
}

fn optional_hosts(hosts: Vec<OptionalHost>) -> OptionalHosts {
    let mut optional = OptionalHosts::default();
    for host in hosts {
        match host {
            OptionalHost::Any => optional.any = true,
            OptionalHost::Named(host) => optional.named.push(host),
        }
    }
    optional
}

fn setting(pointer: &str, record: SettingRecord) -> Result<Definition> {
    let place = |key: &str| format!("{pointer}/{key}");
    ensure(!record.key.is_empty(), &place("key"), || "is empty")?;
    text(&place("key"), &record.key, MAX_NAME_BYTES)?;
    text(&place("title"), &record.title, MAX_TEXT_BYTES)?;
    text(&place("description"), &record.description, MAX_TEXT_BYTES)?;
    let usual = match record.r#type {
        ValueType::String => Widget::Text,
        ValueType::Number => Widget::Number,
        ValueType::Boolean => Widget::Toggle,
    };
    let widget = record.widget.unwrap_or(usual);
    let shown = widget.value_type();
    ensure(shown == record.r#type, &place("widget"), || {
        format!("{widget} shows a {shown}, the setting is a {}", record.r#type)
    })?;
    let is_select = widget == Widget::Select;
    ensure(
        record.options.is_empty() != is_select,
        &place("options"),
        || "a select has options, nothing else has",
    )?;
    count(&place("options"), record.options.len())?;
    let is_text = matches!(record.r#type, ValueType::String);
    let is_number = matches!(record.r#type, ValueType::Number);
    ensure(
        record.pattern.is_none() || is_text,
        &place("pattern"),
        || "is for strings",
    )?;
    for (key, limit) in [("min", record.min), ("max", record.max)] {
        ensure(limit.is_none() || is_number, &place(key), || "is for numbers")?;
    }
    if let (Some(min), Some(max)) = (record.min, record.max) {
        ensure(min <= max, &place("min"), || "is above max")?;
    }
    let compile = |pattern: &String| RegexBuilder::new(pattern).size_limit(MAX_PATTERN_BYTES).build();
    let pattern = record.pattern.as_ref().map(compile).transpose();
    let pattern = pattern.map_err(|error| InvalidManifest::new(place("pattern"), error))?;
    let is_secret = record.secret || widget == Widget::Password;
    ensure(is_text || !is_secret, &place("secret"), || "is for strings")?;
    let default = record.default.map(|value| plain(&value)).transpose();
    let default = default
        .map_err(|reason| InvalidManifest::new(place("default"), reason))?
        .flatten();
    ensure(
        default.is_none() || !is_secret,
        &place("default"),
        || "a secret has none",
    )?;
    let definition = Definition {
        title: if record.title.is_empty() {
            record.key.clone()
        } else {
            record.title
        },
        key: record.key,
        description: record.description,
        widget,
        options: record.options.into_iter().map(Choice::labelled).collect(),
        default: None,
        is_required: record.required,
        is_secret,
        min: record.min,
        max: record.max,
        pattern,
    };
    if let Some(default) = &default {
        definition
            .check(default)
            .map_err(|reason| InvalidManifest::new(place("default"), reason))?;
    }
    Ok(Definition { default, ..definition })
}

/// A default as a text, which all values of settings are; none for `null`.
fn plain(value: &serde_json::Value) -> std::result::Result<Option<String>, &'static str> {
    match value {
        serde_json::Value::Null => Ok(None),
        serde_json::Value::String(text) => Ok(Some(text.clone())),
        serde_json::Value::Bool(_) | serde_json::Value::Number(_) => Ok(Some(value.to_string())),
        serde_json::Value::Array(_) | serde_json::Value::Object(_) => Err("is no text, number or truth value"),
    }
}

/// Whether `path` stays inside the package and names the same file everywhere.
fn is_path(path: &str) -> bool {
    path.split('/')
        .all(|part| FileName::sanitise_or_none(part).is_some_and(|name| name.as_str() == part))
}

fn patterns(pointer: &str, patterns: Vec<UrlPattern>) -> Result<Vec<UrlPattern>> {
    ensure(!patterns.is_empty(), pointer, || "is empty")?;
    count(pointer, patterns.len())?;
    Ok(patterns)
}

fn count(pointer: &str, count: usize) -> Result<()> {
    ensure(count <= MAX_ITEMS, pointer, || {
        format!("has {count} items; the limit is {MAX_ITEMS}")
    })
}

fn text(pointer: &str, text: &str, limit: usize) -> Result<()> {
    ensure(text.len() <= limit, pointer, || {
        format!("is longer than {}", ByteCount(limit as u64))
    })
}

fn ensure<R: ToString>(holds: bool, pointer: &str, reason: impl FnOnce() -> R) -> Result<()> {
    if holds {
        Ok(())
    } else {
        Err(InvalidManifest::new(pointer, reason()))
    }
}
