//! A torrent as another client left it: which files there are, under which names, and which of them are wanted.

use std::path::{Path, PathBuf};

use metainfo::{Info, InfoHash, MAX_TRACKERS, MAX_WEBSEEDS, Magnet, Metainfo, bencode::Value};
use protocol::{CreateTaskRequest, TorrentFilePath, TorrentRequest};
use transfer::SafeUrl;

use crate::{Download, Found, ImportError};

/// What another client says of a torrent.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent choices of the user")]
pub(crate) struct Client {
    /// Where its file, or the directory of its files, is.
    pub(crate) directory: PathBuf,
    /// Paths of files below that directory; empty for those that have the torrent's own.
    pub(crate) paths: Vec<String>,
    /// For each file whether it is wanted; files beyond are.
    pub(crate) wanted: Vec<bool>,
    pub(crate) is_paused: bool,
    pub(crate) is_sequential: bool,
    pub(crate) edges_first: bool,
    pub(crate) download_limit: u64,
    pub(crate) upload_limit: u64,
    /// In thousandths; -1: none.
    pub(crate) ratio_milli: Option<i64>,
    /// -1: none.
    pub(crate) seed_secs: Option<i64>,
    pub(crate) trackers: Vec<String>,
    pub(crate) webseeds: Vec<String>,
}

/// What a torrent is, besides its files.
pub(crate) enum Content {
    File(Vec<u8>),
    Link(Magnet),
}

/// Where a torrent goes in terms of this service: one name in a directory, and paths below it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Place {
    directory: PathBuf,
    name: Option<String>,
    paths: Vec<TorrentFilePath>,
}

/// Adds the task of a torrent, or why there can be none.
pub(crate) fn add(found: &mut Found, title: &str, content: Content, client: Client) -> Result<(), ImportError> {
    let own = |list: &[Vec<SafeUrl>]| -> Vec<String> {
        let urls = list.iter().flatten().map(|url| url.expose().to_owned());
        urls.collect()
    };
    let mut place = Place {
        directory: client.directory.clone(),
        ..Place::default()
    };
    let (mut files, mut is_paused) = (Vec::new(), client.is_paused);
    let (title, hash, url, torrent, known) = match content {
        Content::File(bytes) => match Metainfo::parse(&bytes) {
            Ok(metainfo) => {
                let info = &metainfo.info;
                place = self::place(info, &client);
                files = wanted(info, &client.wanted);
                if wants_nothing(&client.wanted, info.files().len()) {
                    is_paused = true;
                    found.note(format!("{}: no file of it was wanted; it is paused", info.name()));
                }
                let title = info.name().as_str().to_owned();
                let trackers = own(&metainfo.trackers);
                (title, info.hash(), String::new(), Some(bytes), trackers)
            }
            Err(error) => {
                found.refuse(title, format!("its torrent file is refused: {error}"));
                return Ok(());
            }
        },
        Content::Link(magnet) => {
            let title = magnet.name.clone().unwrap_or_else(|| title.to_owned());
            let known = own(std::slice::from_ref(&magnet.trackers));
            (title, magnet.info_hash, magnet.to_string(), None, known)
        }
    };
    let is_new = |url: &String| !known.contains(url);
    let trackers = client
        .trackers
        .into_iter()
        .filter(|url| metainfo::tracker(url).is_some());
    let webseeds = client
        .webseeds
        .into_iter()
        .filter(|url| metainfo::webseed(url).is_some());
    let request = CreateTaskRequest {
        url,
        file_name: place.name.unwrap_or_default(),
        save_dir: place.directory.display().to_string(),
        start_paused: is_paused,
        check_integrity: true,
        speed_limit_bytes: client.download_limit,
        upload_limit_bytes: client.upload_limit,
        seed_ratio_limit_milli: client.ratio_milli,
        seed_time_limit_secs: client.seed_secs,
        torrent: Some(TorrentRequest {
            files,
            paths: place.paths,
            // Of other schemes than these, a task refuses them.
            trackers: trackers.filter(is_new).take(MAX_TRACKERS).collect(),
            webseeds: webseeds.take(MAX_WEBSEEDS).collect(),
            sequential: client.is_sequential,
            first_last_piece_first: client.edges_first,
            ..TorrentRequest::default()
        }),
        ..CreateTaskRequest::default()
    };
    found.add(Download {
        title,
        request,
        torrent,
        key: key(hash),
    })
}

/// The same for every client, because a torrent can be there once only.
fn key(hash: InfoHash) -> Vec<u8> {
    [b"torrent\0", &hash.as_bytes()[..]].concat()
}

/// The places of wanted files; empty if all are, or none: a task wants at least one.
fn wanted(info: &Info, wanted: &[bool]) -> Vec<u32> {
    let places = info.files().iter().map(metainfo::File::index);
    let places: Vec<_> = places
        .filter(|place| wanted.get(*place as usize) != Some(&false))
        .collect();
    if places.len() == info.files().len() {
        Vec::new()
    } else {
        places
    }
}

/// Whether a client says that no file is wanted, which a task cannot.
fn wants_nothing(wanted: &[bool], files: usize) -> bool {
    files > 0 && wanted.len() >= files && wanted[..files].iter().all(|is_wanted| !is_wanted)
}

fn place(info: &Info, client: &Client) -> Place {
    let path_of = |index: usize| {
        client
            .paths
            .get(index)
            .map(String::as_str)
            .filter(|path| !path.is_empty())
    };
    if info.is_single_file() {
        let path = path_of(0).unwrap_or(info.name().as_str());
        let (below, name) = path.rsplit_once('/').unwrap_or(("", path));
        return Place {
            directory: client.directory.join(below),
            name: (name != info.name().as_str()).then(|| name.to_owned()),
            paths: Vec::new(),
        };
    }
    let full = |index: usize, file: &metainfo::File| {
        let own = || format!("{}/{}", info.name().as_str(), file.shown());
        path_of(index).map_or_else(own, str::to_owned)
    };
    let paths: Vec<_> = info
        .files()
        .iter()
        .enumerate()
        .map(|(index, file)| full(index, file))
        .collect();
    let top = paths.first().and_then(|path| path.split_once('/')).map(|(top, _)| top);
    let top = top.filter(|top| {
        let is_below = |path: &String| path.strip_prefix(top).is_some_and(|rest| rest.starts_with('/'));
        paths.iter().all(is_below)
    });
    let (directory, name, below) = if let Some(top) = top {
        (client.directory.clone(), Some(top.to_owned()), top.len() + 1)
    } else {
        // The files are in the client's directory itself, which is then the torrent's.
        let parent = client.directory.parent().unwrap_or(Path::new("/")).to_owned();
        let name = client.directory.file_name();
        (parent, name.map(|name| name.to_string_lossy().into_owned()), 0)
    };
    let renamed = info.files().iter().zip(&paths).filter_map(|(file, path)| {
        let path = &path[below..];
        (path != file.shown()).then(|| TorrentFilePath {
            index: file.index(),
            path: path.to_owned(),
        })
    });
    Place {
        paths: renamed.collect(),
        name: name.filter(|name| name != info.name().as_str()),
        directory,
    }
}

/// A magnet link; its trackers are those that are URLs of trackers.
pub(crate) fn link(info_hash: InfoHash, name: Option<&str>, trackers: &[String]) -> Magnet {
    Magnet {
        info_hash,
        name: name.map(str::to_owned),
        trackers: trackers.iter().filter_map(|text| metainfo::tracker(text)).collect(),
        webseeds: Vec::new(),
        peers: Vec::new(),
        selected: Vec::new(),
        length: None,
    }
}

/// Texts of a list; empty for what is none.
pub(crate) fn texts(list: Option<Value<'_>>) -> Vec<String> {
    let list = list.and_then(Value::as_list).into_iter().flatten();
    list.map(|text| text.as_text().unwrap_or_default().to_owned()).collect()
}

/// Numbers of a list; 0 for what is none.
pub(crate) fn numbers(list: Option<Value<'_>>) -> Vec<i64> {
    let list = list.and_then(Value::as_list).into_iter().flatten();
    list.map(|number| number.as_integer().unwrap_or_default()).collect()
}

/// Texts of a list of lists: tiers of trackers.
pub(crate) fn tiers(list: Option<Value<'_>>) -> Vec<String> {
    let list = list.and_then(Value::as_list).into_iter().flatten();
    list.flat_map(|tier| texts(Some(tier)))
        .filter(|text| !text.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use metainfo::create::{Options, Plan};

    use super::*;

    fn info(files: &[&str]) -> Info {
        let entry = |path: &&str| (path.split('/').map(str::to_owned).collect(), 1);
        let plan = match files {
            [] => Plan::of_file("top", 1, Options::default()),
            files => Plan::of_directory("top", files.iter().map(entry).collect(), Options::default()),
        };
        let mut hasher = plan.unwrap().hasher();
        hasher.update(&vec![0; files.len().max(1)]).unwrap();
        hasher.finish().unwrap().info
    }

    fn at(info: &Info, paths: &[&str]) -> Place {
        let client = Client {
            directory: "/d/e".into(),
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
            ..Client::default()
        };
        place(info, &client)
    }

    fn expected(directory: &str, name: Option<&str>, paths: &[(u32, &str)]) -> Place {
        let path = |(index, path): &(u32, &str)| TorrentFilePath {
            index: *index,
            path: (*path).to_owned(),
        };
        Place {
            directory: directory.into(),
            name: name.map(str::to_owned),
            paths: paths.iter().map(path).collect(),
        }
    }

    #[test]
    fn files_are_found_where_a_client_has_put_them() {
        let two = info(&["a", "s/b"]);
        assert_eq!(at(&two, &[]), expected("/d/e", None, &[]));
        assert_eq!(at(&two, &["", "top/c"]), expected("/d/e", None, &[(1, "c")]));
        assert_eq!(
            at(&two, &["new/a", "new/s/b"]),
            expected("/d/e", Some("new"), &[]),
            "another directory"
        );
        assert_eq!(at(&two, &["a", "s/b"]), expected("/d", Some("e"), &[]), "no directory");
        assert_eq!(
            at(&two, &["a", "top/x"]),
            expected("/d", Some("e"), &[(1, "top/x")]),
            "one of them outside"
        );
        let one = info(&[]);
        assert_eq!(at(&one, &[]), expected("/d/e", None, &[]));
        assert_eq!(at(&one, &["n/other"]), expected("/d/e/n", Some("other"), &[]));
    }

    #[test]
    fn all_files_are_wanted_or_some() {
        let three = info(&["a", "b", "c"]);
        assert_eq!(wanted(&three, &[true, true, true]), [0; 0]);
        assert_eq!(wanted(&three, &[false]), [1, 2]);
        assert!(wants_nothing(&[false; 3], 3) && !wants_nothing(&[false; 2], 3));
    }
}
