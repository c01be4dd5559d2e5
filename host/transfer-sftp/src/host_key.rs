//! Whether a server is the one that the user means: its key against `known_hosts` and the fingerprint of the task.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use data_encoding::BASE64;
use transfer::{Failure, HostKeyFingerprint, failure::FailureKind};

use crate::known_hosts::{Known, KnownKey, Verdict, spelled};

/// The largest file of host keys; 4 MiB are 20,000 servers.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// What the key of one server is compared with.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    host: String,
    port: u16,
    fingerprint: Option<HostKeyFingerprint>,
    files: Vec<(PathBuf, Known, Known)>,
}

impl Expected {
    /// Reads what `files` say about `host`. Blocks on the disk.
    pub(crate) fn read(
        files: &[PathBuf],
        host: &str,
        port: u16,
        fingerprint: Option<HostKeyFingerprint>,
    ) -> Result<Self, Failure> {
        let mut read = Vec::new();
        for path in files {
            let Some(text) = text(path)? else { continue };
            // A key of another port is asked for without its port where nothing is known of the port, as in OpenSSH.
            let (own, of_host) = (Known::of(&text, host, port), Known::of(&text, host, 22));
            read.push((path.clone(), own, of_host));
        }
        Ok(Self {
            host: host.to_owned(),
            port,
            fingerprint,
            files: read,
        })
    }

    /// The types of the keys that the server is known by: it is asked for these first, since it may have others that are
    /// not known.
    pub(crate) fn kinds(&self) -> Vec<&str> {
        let of_file = |(_, own, of_host): &'_ (PathBuf, Known, Known)| -> Vec<KnownKey> {
            own.keys.iter().chain(&of_host.keys).cloned().collect()
        };
        let mut kinds = Vec::new();
        for file in &self.files {
            for key in of_file(file) {
                if let Some(kind) = KINDS.iter().find(|kind| **kind == key.kind)
                    && !kinds.contains(kind)
                {
                    kinds.push(*kind);
                }
            }
        }
        kinds
    }

    /// Checks the public key `blob` of the type `kind`.
    pub(crate) fn check(&self, kind: &str, blob: &[u8]) -> Result<(), Failure> {
        let refused = |why: String| Err(Failure::new(FailureKind::Tls, why));
        let found = HostKeyFingerprint::of(blob);
        let host = spelled(&self.host, self.port);
        let (mut is_known, mut is_of_host, mut changed) = (false, false, None);
        for (path, own, of_host) in &self.files {
            let path = path.display();
            let (own, of_host) = (own.verdict(blob), of_host.verdict(blob));
            if let Some(line) = own.revoked().or_else(|| of_host.revoked()) {
                return refused(format!(
                    "the host key of {host} ({kind} {found}) is revoked: {path}, line {line}"
                ));
            }
            is_known |= own == Verdict::Known;
            is_of_host |= of_host == Verdict::Known;
            if let Verdict::Changed(line) = own {
                changed.get_or_insert((path, line));
            }
        }
        // A file may have the old key, and another the new one.
        if let Some((path, line)) = changed.as_ref().filter(|_| !is_known) {
            // A key of RSA is never asked for, and so proves nothing about another.
            if !self.is_known_by_others() {
                return refused(format!(
                    "the host key of {host} is not the one in {path}, line {line}: it is {kind} {found} now. Somebody \
                     may pretend to be the server, or it has a new key; if its owner confirms that, remove the old \
                     one: ssh-keygen -R '{host}'"
                ));
            }
        }
        match self.fingerprint {
            Some(wanted) if wanted.is_of(blob) => Ok(()),
            Some(wanted) => refused(format!(
                "the host key of {host} is {kind} {found}, not the one that was asked for ({wanted})"
            )),
            None if is_known || (is_of_host && changed.is_none()) => Ok(()),
            None => {
                let file = self.files.first().map(|(path, ..)| path.display().to_string());
                let file = file.unwrap_or_else(|| "known_hosts".to_owned());
                let why = match &changed {
                    Some((path, line)) => format!(
                        "{host} is known only by a key that this program cannot check ({path}, line {line}), and has \
                         {kind} {found}"
                    ),
                    None => format!("the host key of {host} is not known: {kind} {found}"),
                };
                refused(format!(
                    "{why}. If its owner confirms it, accept it with --ssh-host-key {found} (sshHostKey in requests), or \
                     add this line to {file}: {host} {kind} {}",
                    BASE64.encode(blob)
                ))
            }
        }
    }

    /// Whether the server is known by keys only that are never asked for.
    fn is_known_by_others(&self) -> bool {
        let mut keys = self.files.iter().flat_map(|(_, own, _)| &own.keys);
        keys.all(|key| !KINDS.contains(&key.kind.as_str()))
    }
}

/// Types of host keys that are asked for.
const KINDS: [&str; 4] = [
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
];

/// The bytes of a file; an empty text if it is not there.
fn text(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        let why = format!("cannot read the known host keys in {}: {error}", path.display());
        Failure::new(FailureKind::InvalidSource, why)
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Some(Vec::new())),
        Err(error) => return Err(failed(&error)),
    };
    let mut text = Vec::new();
    file.take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut text)
        .map_err(|error| failed(&error))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(failed(&format_args!("it is larger than {MAX_FILE_BYTES} bytes")));
    }
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(kind: &str, last: u8) -> Vec<u8> {
        let length = u32::try_from(kind.len()).unwrap().to_be_bytes();
        [&length[..], kind.as_bytes(), &[last; 32]].concat()
    }

    fn expected(lines: &str, fingerprint: Option<HostKeyFingerprint>) -> Expected {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("known_hosts");
        std::fs::write(&path, lines).unwrap();
        Expected::read(&[path, folder.path().join("none")], "h.test", 2222, fingerprint).unwrap()
    }

    #[test]
    fn a_key_is_accepted_if_it_is_known_or_named_and_never_if_it_changed() {
        const ED: &str = "ssh-ed25519";
        let (key, other) = (blob(ED, 1), blob(ED, 2));
        let line = |host: &str, key: &[u8]| format!("{host} {ED} {}\n", BASE64.encode(key));
        let fingerprint = HostKeyFingerprint::of(&key);
        let named = Some(fingerprint);
        let check = |lines: String, named| expected(&lines, named).check(ED, &key);
        assert_eq!(check(line("[h.test]:2222", &key), None), Ok(()));
        assert_eq!(check(line("h.test", &key), None), Ok(()), "without its port");
        assert_eq!(check(String::new(), named), Ok(()));
        let unknown = check(line("h.test", &other), None).unwrap_err();
        assert!(
            unknown.message.contains(&format!("--ssh-host-key {fingerprint}")),
            "{unknown}"
        );
        assert!(
            unknown.message.contains(line("[h.test]:2222", &key).trim()),
            "{unknown}"
        );
        let changed = line("[h.test]:2222", &other);
        for named in [None, named] {
            let refused = check(changed.clone(), named).unwrap_err();
            assert!(
                refused.message.contains("line 1") && refused.message.contains("ssh-keygen -R"),
                "{refused}"
            );
            assert_eq!(refused.kind, FailureKind::Tls);
        }
        let revoked = format!("@revoked * {ED} {}\n", BASE64.encode(&key));
        assert!(check(revoked, named).unwrap_err().message.contains("revoked"));
        let wrong = check(line("[h.test]:2222", &key), Some(HostKeyFingerprint::of(&other))).unwrap_err();
        assert!(wrong.message.contains("asked for"), "{wrong}");
    }

    #[test]
    fn known_types_are_asked_for_first() {
        let lines = format!(
            "[h.test]:2222 ssh-rsa {}\nh.test ssh-ed25519 {}\n",
            BASE64.encode(&blob("ssh-rsa", 1)),
            BASE64.encode(&blob("ssh-ed25519", 1))
        );
        assert_eq!(expected(&lines, None).kinds(), ["ssh-ed25519"]);
    }

    #[test]
    fn a_server_that_is_known_by_rsa_only_is_unknown() {
        const ED: &str = "ssh-ed25519";
        let line = |kind: &str, last| format!("[h.test]:2222 {kind} {}\n", BASE64.encode(&blob(kind, last)));
        let (rsa, key) = (line("ssh-rsa", 1), blob(ED, 1));
        let named = Some(HostKeyFingerprint::of(&key));
        let refused = expected(&rsa, None).check(ED, &key).unwrap_err();
        assert!(refused.message.contains("cannot check"), "{refused}");
        assert_eq!(expected(&rsa, named).check(ED, &key), Ok(()));
        // Without its port, the key is known; with it, the server is another one.
        let other_port = format!("{rsa}h.test {ED} {}\n", BASE64.encode(&key));
        assert!(expected(&other_port, None).check(ED, &key).is_err());
        let both = rsa + &line(ED, 2);
        assert!(expected(&both, named).check(ED, &key).is_err());
    }

    #[test]
    fn every_file_is_asked() {
        const ED: &str = "ssh-ed25519";
        let (key, other) = (blob(ED, 1), blob(ED, 2));
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, host: &str, key: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, format!("{host} {ED} {}\n", BASE64.encode(key))).unwrap();
            path
        };
        let old = file("old", "h.test", &other);
        let new = file("new", "h.test", &key);
        let revoked = file("revoked", "@revoked h.test", &key);
        let check = |files: &[PathBuf], port| Expected::read(files, "h.test", port, None).unwrap().check(ED, &key);
        assert_eq!(check(&[old.clone(), new.clone()], 22), Ok(()));
        assert!(check(&[old], 22).is_err());
        for port in [22, 2222] {
            let refused = check(&[new.clone(), revoked.clone()], port).unwrap_err();
            assert!(refused.message.contains("revoked"), "{port}: {refused}");
        }
    }
}
