//! `svc torrent show`.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use anyhow::Context as _;
use command::{Exit, UsageError, amount};
use jiff::Timestamp;
use metainfo::{MAX_METAINFO_BYTES, Magnet, Metainfo};
use serde::Serialize;
use transfer::SafeUrl;

#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// A .torrent file, - for standard input, or a magnet link
    #[arg(value_name = "FILE|MAGNET", value_hint = clap::ValueHint::FilePath)]
    torrent: String,
    /// Print a JSON record
    #[arg(long)]
    json: bool,
}

/// A torrent, for scripts. What a magnet link does not say is `null`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shown {
    info_hash: String,
    name: Option<String>,
    total_bytes: Option<u64>,
    piece_bytes: Option<u32>,
    pieces: Option<u32>,
    is_private: Option<bool>,
    source: Option<String>,
    files: Option<Vec<ShownFile>>,
    /// Tiers.
    trackers: Vec<Vec<String>>,
    webseeds: Vec<String>,
    nodes: Vec<String>,
    peers: Vec<String>,
    comment: Option<String>,
    created_by: Option<String>,
    created_at: Option<i64>,
    magnet: String,
}

/// A file of a torrent.
#[derive(Debug, Serialize)]
struct ShownFile {
    /// As magnet links number it (`so=`).
    index: u32,
    /// Below the directory to download to.
    path: String,
    bytes: u64,
}

fn texts<'a>(urls: impl IntoIterator<Item = &'a SafeUrl>) -> Vec<String> {
    urls.into_iter().map(|url| url.expose().to_owned()).collect()
}

fn address((host, port): &(String, u16)) -> String {
    format!("{host}:{port}")
}

impl Shown {
    pub(super) fn of(torrent: &Metainfo) -> Self {
        let info = &torrent.info;
        let name = info.name().as_str();
        let files = info.files().iter().map(|file| ShownFile {
            index: file.index(),
            path: match file.shown() {
                "" => name.to_owned(),
                path => format!("{name}/{path}"),
            },
            bytes: file.length(),
        });
        Self {
            info_hash: info.hash().to_string(),
            name: Some(name.to_owned()),
            total_bytes: Some(info.files().iter().map(metainfo::File::length).sum()),
            piece_bytes: Some(info.piece_length()),
            pieces: Some(info.piece_count()),
            is_private: Some(info.is_private()),
            source: info.source().map(str::to_owned),
            files: Some(files.collect()),
            trackers: torrent.trackers.iter().map(texts).collect(),
            webseeds: texts(&torrent.webseeds),
            nodes: torrent.nodes.iter().map(address).collect(),
            peers: Vec::new(),
            comment: torrent.comment.as_deref().map(str::to_owned),
            created_by: torrent.created_by.as_deref().map(str::to_owned),
            created_at: torrent.created_at,
            magnet: torrent.magnet().to_string(),
        }
    }

    fn of_magnet(magnet: &Magnet) -> Self {
        Self {
            info_hash: magnet.info_hash.to_string(),
            name: magnet.name.clone(),
            total_bytes: magnet.length,
            piece_bytes: None,
            pieces: None,
            is_private: None,
            source: None,
            files: None,
            trackers: magnet.trackers.iter().map(|url| texts([url])).collect(),
            webseeds: texts(&magnet.webseeds),
            nodes: Vec::new(),
            peers: magnet.peers.iter().map(ToString::to_string).collect(),
            comment: None,
            created_by: None,
            created_at: None,
            magnet: magnet.to_string(),
        }
    }

    /// For people: a line for each thing that is known, then the files.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut line = |label: &str, value: Option<String>| {
            lines.extend(value.map(|value| format!("{label:<11}{value}")));
        };
        line("Name", self.name.clone());
        line("Info hash", Some(self.info_hash.clone()));
        line("Size", self.total_bytes.map(amount::bytes));
        let pieces = self.pieces.zip(self.piece_bytes);
        line(
            "Pieces",
            pieces.map(|(count, bytes)| format!("{count} of {}", amount::bytes(bytes.into()))),
        );
        let private = self.is_private.filter(|is_private| *is_private);
        line(
            "Private",
            private.map(|_| "yes: peers come from its trackers only".to_owned()),
        );
        line("Source", self.source.clone());
        line("Comment", self.comment.clone());
        line("Created by", self.created_by.clone());
        let moment = self.created_at.and_then(|seconds| Timestamp::from_second(seconds).ok());
        line(
            "Created",
            moment.map(|moment| moment.strftime("%Y-%m-%d %H:%M UTC").to_string()),
        );
        for tier in &self.trackers {
            line("Tracker", Some(tier.join(", ")));
        }
        for (label, urls) in [
            ("Webseed", &self.webseeds),
            ("Node", &self.nodes),
            ("Peer", &self.peers),
        ] {
            for url in urls {
                line(label, Some(url.clone()));
            }
        }
        line("Magnet", Some(self.magnet.clone()));
        let files = self.files.iter().flatten();
        // Counted as --select-file and "svc torrent files" count them.
        let rows = files.map(|file| {
            [
                (file.index + 1).to_string(),
                amount::bytes(file.bytes),
                file.path.clone(),
            ]
        });
        if self.files.is_some() {
            lines.push(String::new());
            lines.extend(crate::table::lines([">NUMBER", ">SIZE", "PATH"], rows));
        }
        lines
    }
}

pub(super) fn run(args: &ShowArgs) -> anyhow::Result<Exit> {
    let shown = if Magnet::is_magnet(&args.torrent) {
        let magnet = args.torrent.parse();
        Shown::of_magnet(
            &magnet.map_err(|problem: metainfo::InvalidMagnet| UsageError::new("MAGNET", problem.to_string()))?,
        )
    } else {
        let path = Path::new(&args.torrent);
        let bytes = read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let torrent = Metainfo::parse(&bytes).map_err(|problem| {
            let problem = format!("{}: {}", path.display(), chain(&problem));
            UsageError::new("FILE", problem)
        })?;
        Shown::of(&torrent)
    };
    if args.json {
        command::print_json(&shown)
    } else {
        command::print_lines(shown.lines())
    }
}

/// At most a byte more than any torrent has, so that a larger file is refused by its size.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = MAX_METAINFO_BYTES as u64 + 1;
    if path == Path::new("-") {
        io::stdin().take(limit).read_to_end(&mut bytes)?;
    } else {
        File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
}
