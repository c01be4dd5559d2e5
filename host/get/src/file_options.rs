//! Options of a single file in an input file; they override the command line.

use std::{ops::RangeInclusive, path::Path};

use command::{UsageError, amount};
use engine::{ProxyChoice, TaskSpec};
use transfer::{Checksum, Credentials, FileName, InvalidFingerprint, Secret};

use crate::{
    args::{MAX_CONNECTIONS, SEGMENTS, parse_min_split},
    input_file::{FileOption, OptionName},
    request,
};

/// Applies `options` to `task`. The last of repeated options wins, except that headers accumulate.
pub(super) fn apply(task: &mut TaskSpec, options: &[FileOption<'_>]) -> Result<(), UsageError> {
    // `out` is relative to `dir`, in either order.
    let (last, first): (Vec<_>, Vec<_>) = options.iter().partition(|option| option.name == OptionName::Out);
    for option in first.into_iter().chain(last) {
        apply_one(task, option)?;
    }
    Ok(())
}

fn apply_one(task: &mut TaskSpec, option: &FileOption<'_>) -> Result<(), UsageError> {
    let value = option.value;
    let field = format!("--input-file, line {}, {}", option.line, option.name.as_str());
    let request = &mut task.request;
    let refuse = |problem: String| UsageError::new(field.clone(), problem);
    match option.name {
        OptionName::Out => set_path(&field, task, Path::new(value))?,
        OptionName::Dir => task.save_dir = Some(std::path::absolute(value).map_err(|error| refuse(error.to_string()))?),
        OptionName::Checksum => task.checksum = Some(checksum(&field, value)?),
        OptionName::Header => request.headers.push(request::header(&field, value)?),
        OptionName::Referer => request.referrer = request::header_value(&field, value)?,
        OptionName::UserAgent => request.user_agent = request::header_value(&field, value)?,
        OptionName::HttpUser => value.clone_into(&mut credentials(&mut request.credentials).user),
        OptionName::HttpPassword => credentials(&mut request.credentials).password = Secret::new(value),
        OptionName::AllProxy if value.is_empty() => task.proxy = ProxyChoice::Direct,
        OptionName::AllProxy => task.proxy = ProxyChoice::Through(request::proxy(&field, value)?),
        OptionName::Split => task.segments = number(value, &SEGMENTS).map_err(refuse)?,
        OptionName::MaxConnectionPerServer => {
            task.max_connections = Some(number(value, &MAX_CONNECTIONS).map_err(refuse)?);
        }
        OptionName::MinSplitSize => task.min_split_bytes = Some(parse_min_split(value).map_err(refuse)?),
        OptionName::MaxDownloadLimit => task.speed_limit_bytes = amount::parse_rate(value).map_err(refuse)?,
        OptionName::CheckCertificate => task.ignore_tls_errors = !parse_bool(value).map_err(refuse)?,
        OptionName::RemoteTime => task.use_server_time = Some(parse_bool(value).map_err(refuse)?),
        OptionName::LowestSpeedLimit => task.lowest_speed_bytes = amount::parse_rate(value).map_err(refuse)?,
        OptionName::MaxFileNotFound => {
            task.max_not_found = value.parse().map_err(|_| refuse("write a number from 0".to_owned()))?;
        }
        OptionName::CheckIntegrity => task.check_integrity = parse_bool(value).map_err(refuse)?,
        OptionName::SshHostKey => {
            let key: Result<_, InvalidFingerprint> = value.parse();
            request.ssh_host_key = Some(key.map_err(|error| refuse(error.to_string()))?);
        }
        OptionName::NoNetrc => task.no_netrc = parse_bool(value).map_err(refuse)?,
    }
    Ok(())
}

/// Sets the file name of `task` to `out`, which may contain directories.
pub(super) fn set_path(field: &str, task: &mut TaskSpec, out: &Path) -> Result<(), UsageError> {
    let refuse = || UsageError::new(field, "write the name of a file, not of a directory");
    let is_directory = out.to_string_lossy().ends_with(std::path::is_separator);
    let name = out.file_name().filter(|_| !is_directory).ok_or_else(refuse)?;
    task.file_name = Some(FileName::sanitise_or_none(&name.to_string_lossy()).ok_or_else(refuse)?);
    if let (Some(dir), Some(parent)) = (&mut task.save_dir, out.parent()) {
        dir.push(parent);
    }
    Ok(())
}

pub(super) fn checksum(field: &str, text: &str) -> Result<Checksum, UsageError> {
    text.parse().map_err(|error| UsageError::new(field, format!("{error}")))
}

fn credentials(credentials: &mut Option<Credentials>) -> &mut Credentials {
    credentials.get_or_insert_with(|| Credentials {
        user: String::new(),
        password: Secret::default(),
    })
}

fn number(text: &str, range: &RangeInclusive<u16>) -> Result<u16, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("write a number from {} to {}", range.start(), range.end()))
}

fn parse_bool(text: &str) -> Result<bool, String> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("write true or false".to_owned()),
    }
}
