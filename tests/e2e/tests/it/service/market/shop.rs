//! A source as its maintainer and its authors have it: a folder, keys, the tools, and nginx in front.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use e2e::{Nginx, Run, Service, Svc, http::Answer, service::PATIENCE};
use serde_json::{Value, json};
use tempfile::TempDir;

/// What the plugins of these tests do: list what an `index.json` of theirs names. The title says which version it is.
const SCRIPT: &str = "
export async function resolve(call, out) {
  const index = await http.get(call.url).send();
  out.title('VERSION');
  for (const name of index.json('/files')) out.add(name, name);
}
export function linkFor(call, entry) {
  return new Link(new URL(entry, call.url));
}
export const preview = resolve;
";

/// A source that is served.
pub(crate) struct Shop {
    folder: TempDir,
    _nginx: Nginx,
    url: String,
}

impl Shop {
    /// A source that is called `id`, without plugins.
    pub(crate) fn open(id: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let nginx = Nginx::serve(&folder.path().join("site"));
        let url = nginx.url();
        let shop = Self {
            folder,
            _nginx: nginx,
            url,
        };
        shop.market(&format!("init SITE --id {id} --name Tests --keys KEYS --unprotected"));
        shop
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What is served.
    pub(super) fn site(&self) -> PathBuf {
        self.path("site")
    }

    /// `svc` with these words; `SITE`, `KEYS` and `TMP` stand for folders.
    pub(super) fn try_svc(&self, line: &str) -> Run {
        let replaced = |word: &str| {
            let word = word.replace("SITE", self.site().to_str().unwrap());
            let word = word.replace("KEYS", self.path("keys").to_str().unwrap());
            word.replace("TMP", self.folder.path().to_str().unwrap())
        };
        // What one test has compiled, the next one need not.
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("author-cache");
        let svc = Svc::new().env("XDG_CACHE_HOME", cache).deadline(PATIENCE);
        svc.args(line.split(' ').map(replaced)).run()
    }

    #[track_caller]
    fn svc(&self, line: &str) -> String {
        let run = self.try_svc(line);
        assert_eq!(run.code, Some(0), "{line}: {run:?}");
        run.stdout.join("\n")
    }

    /// A maintainer's command that succeeds.
    #[track_caller]
    pub(super) fn market(&self, line: &str) -> String {
        self.svc(&format!("market {line}"))
    }

    /// An author's command that succeeds.
    #[track_caller]
    pub(super) fn author(&self, line: &str) -> String {
        self.svc(&format!("plugin {line}"))
    }

    /// Makes a key and gives its public part.
    pub(crate) fn key(&self, name: &str) -> String {
        self.market(&format!("key KEYS/{name}.key --unprotected"))
    }

    /// The public part of a key that is there.
    pub(super) fn public_key(&self, name: &str) -> String {
        let text = fs::read_to_string(self.path(&format!("keys/{name}.key.pub"))).unwrap();
        text.lines().nth(1).unwrap().to_owned()
    }

    /// A package that is not signed, of a plugin by the author with the key `key` who also asks for `hosts`; it is in
    /// `TMP/<identity>-<version>.zip`.
    pub(super) fn package(&self, identity: &str, version: &str, key: &str, hosts: &[&str]) -> PathBuf {
        let (name, _) = identity.split_once('@').unwrap();
        let manifest = json!({
            "manifestVersion": 1, "identity": identity, "name": name, "version": version,
            "description": "Lists what an index names.", "license": "MIT", "runtime": "js", "entry": "plugin.js",
            "abi": "0.1", "capabilities": {"resolver": {"match": [format!("*://*/*{name}.json")], "multi": true}, "preview": true},
            "permissions": {"inputHost": true, "hosts": hosts},
            "author": {"name": key, "key": self.public_key(key)},
        });
        let parts = tempfile::tempdir_in(self.folder.path()).unwrap();
        fs::write(parts.path().join("plugin.json"), manifest.to_string()).unwrap();
        fs::write(parts.path().join("plugin.js"), SCRIPT.replace("VERSION", version)).unwrap();
        let archive = self.path(&format!("{identity}-{version}.zip"));
        let mut zip = Command::new("python3");
        zip.args(["-m", "zipfile", "-c"])
            .arg(&archive)
            .args(["plugin.json", "plugin.js"]);
        assert!(zip.current_dir(parts.path()).status().unwrap().success());
        archive
    }

    /// Makes a version, signs it, adds it and makes it visible.
    pub(crate) fn release(&self, identity: &str, version: &str, key: &str, hosts: &[&str]) {
        self.package(identity, version, key, hosts);
        self.author(&format!("sign TMP/{identity}-{version}.zip --key KEYS/{key}.key"));
        self.market(&format!("add SITE TMP/{identity}-{version}.zip --key KEYS/index.key"));
        self.publish();
    }

    pub(super) fn publish(&self) {
        self.market("publish SITE --key KEYS/timestamp.key");
    }

    /// What its maintainer gives to users.
    pub(crate) fn link(&self) -> String {
        self.link_at(&self.url)
    }

    /// The same for a place that says it has this source, too.
    pub(super) fn link_at(&self, url: &str) -> String {
        format!("svc://market?url={url}&key={}", self.public_key("root-1"))
    }

    /// Where the file of this name is.
    pub(super) fn url_of(&self, name: &str) -> String {
        format!("{}{name}", self.url)
    }

    /// Adds it to a service, as somebody does who believes the fingerprint that is shown.
    #[track_caller]
    pub(super) fn adopt(&self, service: &Service) {
        let added = try_adopt(service, &self.link());
        assert_eq!(added.body["source"]["status"], "fresh", "{}", added.body);
    }

    /// Publishes another timestamp than the tools would: the last one, changed, signed by the stock tool.
    pub(super) fn forge_timestamp(&self, change: impl FnOnce(&mut Value)) {
        let of = |seq: u64| self.site().join(format!("timestamp.{seq}.json"));
        let mut seq = 1;
        while of(seq + 1).exists() {
            seq += 1;
        }
        let mut timestamp: Value = serde_json::from_slice(&fs::read(of(seq)).unwrap()).unwrap();
        change(&mut timestamp);
        timestamp["seq"] = (seq + 1).into();
        fs::write(of(seq + 1), timestamp.to_string()).unwrap();
        let purpose = format!(
            "svc-market v1 role=timestamp seq={} sha256={}",
            seq + 1,
            sha256(&of(seq + 1))
        );
        sign(
            &of(seq + 1),
            &self.path("keys/timestamp.key"),
            &purpose,
            &self.site().join("timestamp.minisig"),
        );
    }
}

/// Adds the source of a link to a service, as somebody does who believes the fingerprint that is shown, whatever becomes of
/// it.
#[track_caller]
pub(super) fn try_adopt(service: &Service, link: &str) -> Answer {
    let path = "/api/v1/market/sources";
    let shown = service.call("POST", path, Some(&json!({ "link": link })));
    assert_eq!(shown.get("source"), None, "{shown}");
    let believed = json!({"link": link, "fingerprint": shown["fingerprint"]});
    service.ask("POST", path, Some(&believed)).expect("it answers")
}

/// Signs a file with minisign's own program and one of our keys, which has no passphrase.
pub(super) fn sign(file: &Path, key: &Path, purpose: &str, signature: &Path) {
    let mut minisign = Command::new("minisign");
    minisign
        .args(["-S", "-t", purpose, "-s"])
        .arg(key)
        .arg("-x")
        .arg(signature)
        .arg("-m")
        .arg(file);
    let signed = minisign.stdin(Stdio::null()).output();
    let signed =
        signed.expect("this test needs the program minisign (apt-get install minisign); tests/run installs it");
    assert!(signed.status.success(), "{signed:?}");
}

pub(super) fn sha256(file: &Path) -> String {
    let sum = Command::new("sha256sum").arg(file).output().unwrap();
    String::from_utf8(sum.stdout).unwrap()[..64].to_owned()
}
