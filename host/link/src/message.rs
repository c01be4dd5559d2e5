//! The plaintexts of the data plane, and the limits that they are held to. Pure.

use std::collections::BTreeMap;

use protocol::LinkDeviceTaskRequest;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::{
    constants::{
        MAX_ADDRESSES, MAX_BODY_BYTES, MAX_DIR_BYTES, MAX_FILE_NAME_BYTES, MAX_INFO_BYTES, MAX_NAME_BYTES,
        MAX_TASK_ID_BYTES, MAX_URL_BYTES, MAX_WORD_BYTES,
    },
    pairing::hello::check_addresses,
};

/// What can be downloaded for another device.
const SCHEMES: [&str; 5] = ["http", "https", "ftp", "sftp", "magnet"];

/// What is wrong with a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(pub String);

fn invalid<T>(what: impl Into<String>) -> Result<T, Invalid> {
    Err(Invalid(what.into()))
}

/// A download from another device. Members that a device does not know are ignored.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// The URL.
    pub url: String,
    /// A directory of the receiver; empty: its default one.
    #[serde(default)]
    pub save_dir: String,
    /// The file name; empty: the server's.
    #[serde(default)]
    pub file_name: String,
    /// Extra request headers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, String>>,
    /// The `Cookie` header.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cookies: String,
    /// The expected checksum.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub checksum: String,
    /// The sender's name of it: a second one with the same name is the same download.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
}

impl std::fmt::Debug for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Task(***)")
    }
}

impl Task {
    /// Reads the plaintext of a request.
    pub fn read(plain: &[u8]) -> Result<Self, Invalid> {
        let task: Self = serde_json::from_slice(plain).map_err(|error| Invalid(format!("no task: {error}")))?;
        task.check()?;
        Ok(task)
    }

    /// Makes what is sent of a request of this device's user.
    pub fn of(request: LinkDeviceTaskRequest, id: String) -> Result<Self, Invalid> {
        let LinkDeviceTaskRequest {
            url,
            save_dir,
            file_name,
            headers,
            cookies,
            checksum,
            share_secrets,
        } = request;
        let has_secrets = headers.as_ref().is_some_and(|headers| !headers.is_empty()) || !cookies.is_empty();
        if has_secrets && !share_secrets {
            return invalid(
                "headers and cookies may hold logins; set shareSecrets to hand them to the other device, or leave them out",
            );
        }
        let task = Self {
            url,
            save_dir,
            file_name,
            headers: headers.filter(|headers| !headers.is_empty()),
            cookies,
            checksum,
            id,
        };
        task.check()?;
        let bytes = serde_json::to_vec(&task).map_or(usize::MAX, |text| text.len());
        if bytes > MAX_BODY_BYTES - 64 {
            return invalid("the download is too large to be sent: headers, cookies and URL together at most 63 KiB");
        }
        Ok(task)
    }

    fn check(&self) -> Result<(), Invalid> {
        check_url(&self.url)?;
        check_file_name(&self.file_name)?;
        if self.save_dir.len() > MAX_DIR_BYTES || self.save_dir.contains('\0') {
            return invalid("saveDir must be at most 1024 bytes without NUL");
        }
        let is_id = self.id.len() <= MAX_TASK_ID_BYTES && self.id.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_id {
            return invalid("id must be at most 64 visible ASCII characters");
        }
        let is_line = |text: &str| !text.contains(['\r', '\n', '\0']);
        let mut lines = self.headers.iter().flatten().flat_map(|(name, value)| [name, value]);
        if !lines.all(|text| is_line(text)) || !is_line(&self.cookies) || !is_line(&self.checksum) {
            return invalid("headers, cookies and checksum must be single lines");
        }
        Ok(())
    }
}

fn check_url(text: &str) -> Result<(), Invalid> {
    if text.is_empty() {
        return invalid("url is required");
    }
    if text.len() > MAX_URL_BYTES || text.chars().any(|char| char.is_whitespace() || char.is_control()) {
        return invalid("url must be at most 8192 bytes without spaces and control characters");
    }
    let url = Url::parse(text).map_err(|error| Invalid(format!("url is none: {error}")))?;
    if !SCHEMES.contains(&url.scheme()) {
        return invalid(format!("url must be one of {}", SCHEMES.join(", ")));
    }
    if url.scheme() != "magnet" && url.host_str().is_none_or(str::is_empty) {
        return invalid("url has no host");
    }
    Ok(())
}

fn check_file_name(name: &str) -> Result<(), Invalid> {
    if name.len() > MAX_FILE_NAME_BYTES || name.contains(['/', '\\', '\0']) || name == "." || name == ".." {
        return invalid("fileName must be at most 255 bytes, without separators and NUL, and not . or ..");
    }
    Ok(())
}

/// The answer to a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskCreated {
    /// The receiver's id of it.
    pub(crate) task_id: String,
}

/// What a paired device says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Info {
    /// 2.
    pub v: i64,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Its platform.
    #[serde(default)]
    pub platform: String,
    /// Its version.
    #[serde(default)]
    pub app_version: String,
    /// Where it can be reached.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// Its id with a vendor's service; we have none.
    #[serde(default)]
    pub cloud_device_id: String,
    /// Its default download directory.
    #[serde(default)]
    pub default_save_dir: String,
    /// `posix` or `windows`.
    #[serde(default)]
    pub path_style: String,
}

impl Info {
    /// Reads a plaintext.
    pub fn read(plain: &[u8]) -> Result<Self, Invalid> {
        let info: Self = serde_json::from_slice(plain).map_err(|error| Invalid(format!("no device info: {error}")))?;
        if info.v != 2 {
            return invalid("v must be 2");
        }
        let is_plain = |text: &str, most: usize| text.len() <= most && !text.chars().any(char::is_control);
        if !is_plain(&info.name, MAX_NAME_BYTES)
            || !is_plain(&info.platform, MAX_WORD_BYTES)
            || !is_plain(&info.app_version, MAX_WORD_BYTES)
            || !is_plain(&info.cloud_device_id, MAX_INFO_BYTES)
        {
            return invalid("name, platform, appVersion or cloudDeviceId is too long or has control characters");
        }
        if info.addresses.len() > MAX_ADDRESSES {
            return invalid("there can be at most four addresses");
        }
        check_addresses(&info.addresses).map_err(|what| Invalid(what.to_owned()))?;
        if info.default_save_dir.len() > MAX_DIR_BYTES || info.default_save_dir.contains('\0') {
            return invalid("defaultSaveDir must be at most 1024 bytes without NUL");
        }
        if !matches!(info.path_style.as_str(), "" | "posix" | "windows") {
            return invalid("pathStyle must be posix or windows");
        }
        Ok(info)
    }
}

/// The plaintext of an unpair notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unpair {
    /// 2.
    pub v: i64,
}

impl Unpair {
    /// Reads a plaintext.
    pub fn read(plain: &[u8]) -> Result<Self, Invalid> {
        match serde_json::from_slice(plain) {
            Ok(Self { v: 2 }) => Ok(Self { v: 2 }),
            Ok(_) => invalid("v must be 2"),
            Err(error) => invalid(format!("no unpair notice: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> Option<String> {
        Task::read(text.as_bytes()).err().map(|error| error.0)
    }

    #[test]
    fn a_task_is_held_to_its_limits() {
        assert_eq!(
            refused(r#"{"url":"https://h/f","saveDir":"","fileName":"","comesNextYear":1}"#),
            None
        );
        assert_eq!(refused(r#"{"url":"magnet:?xt=urn:btih:00"}"#), None);
        for wrong in [
            r#"{"url":""}"#,
            "{}",
            r#"{"url":"file:///etc/passwd"}"#,
            r#"{"url":"svc://download?url=x"}"#,
            r#"{"url":"data:,x"}"#,
            r#"{"url":"http://h/a b"}"#,
            "{\"url\":\"http://h/\\n\"}",
            r#"{"url":"http://h/","fileName":"a/b"}"#,
            r#"{"url":"http://h/","fileName":"a\\b"}"#,
            r#"{"url":"http://h/","fileName":".."}"#,
            r#"{"url":"http://h/","saveDir":null}"#,
            r#"{"url":"http://h/","id":"a b"}"#,
            r#"{"url":"http://h/","cookies":"a\r\nb"}"#,
            "[]",
        ] {
            assert!(refused(wrong).is_some(), "{wrong}");
        }
        let long = format!(r#"{{"url":"http://h/{}"}}"#, "x".repeat(MAX_URL_BYTES));
        assert!(refused(&long).is_some());
    }

    #[test]
    fn secrets_are_sent_only_if_the_sender_agreed() {
        let request = LinkDeviceTaskRequest {
            url: "https://h/f".to_owned(),
            cookies: "a=b".to_owned(),
            ..LinkDeviceTaskRequest::default()
        };
        assert!(Task::of(request.clone(), "i".to_owned()).is_err());
        let agreed = LinkDeviceTaskRequest {
            share_secrets: true,
            ..request
        };
        assert_eq!(Task::of(agreed, "i".to_owned()).unwrap().cookies, "a=b");
    }

    #[test]
    fn info_is_held_to_its_limits() {
        let read = |text: &str| Info::read(text.as_bytes()).is_ok();
        assert!(read(
            r#"{"v":2,"name":"n","addresses":["10.0.0.1:17800","[fd00::1]:1"],"pathStyle":"posix"}"#
        ));
        for wrong in [
            r#"{"v":1}"#,
            r#"{"v":2,"name":null}"#,
            r#"{"v":2,"name":"a\n"}"#,
            r#"{"v":2,"addresses":["host:1"]}"#,
            r#"{"v":2,"addresses":["fd00::1:1"]}"#,
            r#"{"v":2,"addresses":["1.1.1.1:0"]}"#,
            r#"{"v":2,"pathStyle":"vms"}"#,
        ] {
            assert!(!read(wrong), "{wrong}");
        }
    }
}
