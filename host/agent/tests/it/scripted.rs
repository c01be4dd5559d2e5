//! Plugins whose code is a script of simple commands, and their archives. Real code is tested elsewhere.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use plugin_host::{
    Entry, Facts, Feed, FeedRequest, GuestError, Link, Listing, PluginFault,
    runtime::{Call, Called, Code, Guest, Interface, LoadError, Report, Runtime},
};
use serde_json::json;
use transfer::Secret;

/// Runs guests whose code is lines: `imports x` is what it can reach, `refuse` does not load, and when it is called,
/// `file folder/name` (with ` algorithm=digest` if its checksum is known) is in its list,
/// `links url` is where its files are, `asks url` is what it would have to reach, and `fail` is all that it does.
#[derive(Debug)]
pub(crate) struct Scripted;

struct Script {
    lines: Vec<String>,
    interface: Interface,
}

impl Runtime for Scripted {
    fn load(&self, code: Code) -> BoxFuture<'_, Result<Arc<dyn Guest>, LoadError>> {
        let text = String::from_utf8_lossy(&code.bytes);
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        let mut script = Script {
            lines,
            interface: Interface::default(),
        };
        script.interface = Interface {
            exports: vec!["resolver".to_owned()],
            imports: script.said("imports ").map(str::to_owned).collect(),
        };
        let is_refused = script.lines.iter().any(|line| line == "refuse");
        Box::pin(async move {
            if is_refused {
                let reason = "threads are not allowed".to_owned();
                return Err(LoadError::Refused {
                    check: "features",
                    reason,
                });
            }
            Ok(Arc::new(script) as Arc<dyn Guest>)
        })
    }
}

impl Script {
    fn said<'a>(&'a self, word: &'a str) -> impl Iterator<Item = &'a str> {
        self.lines.iter().filter_map(move |line| line.strip_prefix(word))
    }

    fn listing(&self) -> Listing {
        let entry = |line: &str| {
            let (path, checksum) = line.split_once(' ').unwrap_or((line, ""));
            let known = checksum.split_once('=');
            let mut folder: Vec<_> = path.split('/').map(str::to_owned).collect();
            let name = folder.pop().unwrap();
            let facts = Facts {
                checksums: known
                    .map(|(name, hex)| (name.to_owned(), hex.to_owned()))
                    .into_iter()
                    .collect(),
                ..Facts::default()
            };
            Entry {
                id: path.to_owned(),
                name,
                folder,
                facts,
                ..Entry::default()
            }
        };
        Listing {
            title: Some("a share".to_owned()),
            entries: self.said("file ").map(entry).collect(),
            ..Listing::default()
        }
    }

    fn answer<T: Send + 'static>(&self, answer: impl FnOnce() -> T) -> BoxFuture<'_, Called<T>> {
        let fails = self.lines.iter().any(|line| line == "fail");
        let result = if fails {
            Err(PluginFault::Answer(GuestError::Internal("as it was told".to_owned())))
        } else {
            Ok(answer())
        };
        let report = Report::default();
        Box::pin(async move { Called { result, report } })
    }
}

impl Guest for Script {
    fn interface(&self) -> &Interface {
        &self.interface
    }

    fn resolve(&self, call: Call, _: Option<Secret>) -> BoxFuture<'_, Called<Listing>> {
        let denied: Vec<_> = self
            .said("asks ")
            .filter_map(|url| call.hosts.check(&url.parse().unwrap()).err())
            .collect();
        if denied.is_empty() {
            return self.answer(|| self.listing());
        }
        let result = Err(PluginFault::Answer(GuestError::Denied(denied[0].to_string())));
        let report = Report {
            denied,
            ..Report::default()
        };
        Box::pin(async move { Called { result, report } })
    }

    fn more(&self, _: Call, _: String) -> BoxFuture<'_, Called<Listing>> {
        self.answer(Listing::default)
    }

    fn link_for(&self, _: Call, entry: String, _: Option<String>) -> BoxFuture<'_, Called<Link>> {
        self.answer(|| {
            let base: url::Url = self.said("links ").next().unwrap().parse().unwrap();
            Link {
                url: base.join(&entry).unwrap(),
                mirrors: Vec::new(),
                headers: Vec::new(),
                secret_headers: Vec::new(),
                supports_ranges: None,
                is_single_use: false,
                expires_ms: None,
                max_connections: None,
                audio: None,
                manifest: None,
                segments: Vec::new(),
            }
        })
    }

    fn preview(&self, _: Call) -> BoxFuture<'_, Called<Listing>> {
        self.answer(|| self.listing())
    }

    fn feed(&self, _: Call, _: FeedRequest) -> BoxFuture<'_, Called<Feed>> {
        self.answer(Feed::default)
    }

    fn sizes(&self, _: Call, links: Vec<Link>) -> BoxFuture<'_, Vec<Option<u64>>> {
        Box::pin(async move { vec![None; links.len()] })
    }
}

/// An archive of the plugin `share@test` with these claims and this script.
pub(crate) fn plugin(claims: &str, script: &str) -> Vec<u8> {
    archive(&[("plugin.json", &manifest(claims)), ("plugin.wasm", script.as_bytes())])
}

/// The manifest of `share@test`.
pub(crate) fn manifest(claims: &str) -> Vec<u8> {
    let manifest = json!({
        "manifestVersion": 1, "identity": "share@test", "name": "Share", "version": "1.2.3", "entry": "plugin.wasm",
        "capabilities": { "resolver": { "match": [claims], "multi": true } },
        "permissions": { "hosts": ["https://api.share.test"], "optionalHosts": ["https://mirror.test"] },
        "settings": [
            { "key": "quality", "type": "string", "default": "hd" },
            { "key": "count", "type": "number", "min": 1 },
            { "key": "token", "type": "string", "secret": true },
        ],
    });
    manifest.to_string().into_bytes()
}

/// A ZIP archive without compression.
pub(crate) fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let small = |length: usize| u16::try_from(length).unwrap().to_le_bytes();
    let large = |length: usize| u32::try_from(length).unwrap().to_le_bytes();
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes) in files {
        let crc = crc32fast::hash(bytes).to_le_bytes();
        let length = large(bytes.len());
        let common = [
            &[20, 0, 0, 0, 0, 0, 0, 0, 0, 0][..],
            &crc,
            &length,
            &length,
            &small(name.len()),
            &[0; 2],
        ]
        .concat();
        directory.extend(
            [
                b"PK\x01\x02\x14\x03",
                &common[..],
                &[0; 10],
                &large(out.len()),
                name.as_bytes(),
            ]
            .concat(),
        );
        out.extend([b"PK\x03\x04", &common[..], name.as_bytes(), bytes].concat());
    }
    let (count, size, start) = (small(files.len()), large(directory.len()), large(out.len()));
    [
        &out[..],
        &directory,
        b"PK\x05\x06",
        &[0; 4],
        &count,
        &count,
        &size,
        &start,
        &[0; 2],
    ]
    .concat()
}
