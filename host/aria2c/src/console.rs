//! The console output of `svc aria2c`, in aria2's format, because scripts parse it. Pure except for [`Console`], which
//! writes it.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal as _, Write},
};

use aria2::option::Options;
use command::terminal;
use jiff::Zoned;

/// Downloads listed in a readout; for the rest only their number is shown.
const MAX_SHOWN: usize = 5;

/// The threshold for the next unit: nine tenths of it, as in aria2.
const NEXT_UNIT_FROM: u64 = 922;

/// Least severe first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Debug,
    Info,
    Notice,
    Warn,
    Error,
}

impl Level {
    pub(super) fn of(name: &str) -> Self {
        match name {
            "debug" => Self::Debug,
            "info" => Self::Info,
            "warn" => Self::Warn,
            "error" => Self::Error,
            _ => Self::Notice,
        }
    }

    /// Its name, and the escape sequence of its colour on a terminal.
    fn look(self) -> (&'static str, &'static str) {
        match self {
            Self::Debug => ("DEBUG", "\x1b[1;37m"),
            Self::Info => ("INFO", "\x1b[1;36m"),
            Self::Notice => ("NOTICE", "\x1b[1;32m"),
            Self::Warn => ("WARN", "\x1b[1;33m"),
            Self::Error => ("ERROR", "\x1b[1;31m"),
        }
    }
}

/// The result of a download, in the order of the table's legend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End {
    Complete,
    Failed,
    Unfinished,
    Removed,
}

impl End {
    /// The abbreviation in the table, and its meaning in the legend.
    pub(super) fn label(self) -> (&'static str, &'static str) {
        match self {
            Self::Complete => ("OK", "download completed"),
            Self::Failed => ("ERR", "error occurred"),
            Self::Unfinished => ("INPR", "download in-progress"),
            Self::Removed => ("RM", "download removed"),
        }
    }
}

/// A row of the results table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DownloadResult {
    pub(super) gid: String,
    pub(super) end: End,
    pub(super) done: u64,
    pub(super) total: u64,
    /// Bytes per second on average; `None` if it never began.
    pub(super) speed: Option<u64>,
    /// The path, or the URI if there is none yet.
    pub(super) name: String,
}

/// An active download at the time of a readout.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Active {
    pub(super) gid: String,
    pub(super) done: u64,
    pub(super) total: u64,
    pub(super) connections: u64,
    pub(super) speed: u64,
    pub(super) path: String,
    pub(super) torrent: Option<Swarm>,
}

/// What is shown of an active torrent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Swarm {
    /// Peers that have everything.
    pub(super) seeds: u64,
    pub(super) uploaded: u64,
    pub(super) upload_speed: u64,
    /// Whether it is complete.
    pub(super) is_seeding: bool,
}

/// The format of sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sizes {
    Short,
    Plain,
}

impl Sizes {
    /// A number of bytes, without the `B`: `525Ki`, `1.0Mi`. Truncated and not rounded, as aria2 does.
    pub(super) fn write(self, bytes: u64) -> String {
        const UNITS: [&str; 4] = ["", "Ki", "Mi", "Gi"];
        if self == Self::Plain {
            return bytes.to_string();
        }
        let (mut number, mut rest, mut unit) = (bytes, 0, 0);
        while number >= 1024 && unit + 1 < UNITS.len() {
            (number, rest, unit) = (number / 1024, number % 1024, unit + 1);
        }
        if unit + 1 < UNITS.len() && number >= NEXT_UNIT_FROM {
            (number, rest, unit) = (0, number, unit + 1);
        }
        if number < 10 && unit > 0 {
            format!("{number}.{}{}", rest * 10 / 1024, UNITS[unit])
        } else {
            format!("{number}{}", UNITS[unit])
        }
    }
}

impl Active {
    fn sizes(&self, sizes: Sizes) -> String {
        if let Some(swarm) = self.torrent.as_ref().filter(|swarm| swarm.is_seeding) {
            return match ratio(swarm.uploaded, self.done) {
                Some(ratio) => format!("SEED({ratio})"),
                None => "SEED(--)".to_owned(),
            };
        }
        let percent = (u128::from(self.done) * 100).checked_div(self.total.into());
        let percent = percent.map(|percent| format!("({percent}%)")).unwrap_or_default();
        format!("{}B/{}B{percent}", sizes.write(self.done), sizes.write(self.total))
    }

    /// `[#2089b0 400KiB/33MiB(1%) CN:1 DL:115KiB ETA:4m51s]`
    fn line(&self, sizes: Sizes) -> String {
        let mut text = format!("[#{} {}", short(&self.gid), self.sizes(sizes));
        let _infallible = write!(text, " CN:{}", self.connections);
        if let Some(swarm) = &self.torrent {
            let _infallible = write!(text, " SD:{}", swarm.seeds);
        }
        if !self.is_seeding() {
            let _infallible = write!(text, " DL:{}B", sizes.write(self.speed));
        }
        if let Some(swarm) = self.torrent.as_ref().filter(|swarm| swarm.uploaded > 0) {
            let (speed, all) = (sizes.write(swarm.upload_speed), sizes.write(swarm.uploaded));
            let _infallible = write!(text, " UL:{speed}B({all}B)");
        }
        if let Some(left) = self.total.saturating_sub(self.done).checked_div(self.speed)
            && left > 0
        {
            let _infallible = write!(text, " ETA:{}", time(left));
        }
        text.push(']');
        text
    }
}

impl Active {
    fn is_seeding(&self) -> bool {
        self.torrent.as_ref().is_some_and(|swarm| swarm.is_seeding)
    }
}

/// Uploaded by downloaded bytes, with one digit as aria2 has it; none if nothing was downloaded.
pub(super) fn ratio(uploaded: u64, downloaded: u64) -> Option<String> {
    let tenths = (u128::from(uploaded) * 10).checked_div(downloaded.into())?;
    Some(format!("{}.{}", tenths / 10, tenths % 10))
}

/// The abbreviated GID.
fn short(gid: &str) -> &str {
    gid.get(..6).unwrap_or(gid)
}

/// `1h2m3s`, without zero parts.
fn time(seconds: u64) -> String {
    let parts = [(seconds / 3600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
    let mut text = String::new();
    for (number, unit) in parts.into_iter().filter(|(number, _)| *number > 0) {
        let _infallible = write!(text, "{number}{unit}");
    }
    text
}

/// The line with the progress of all active downloads.
pub(super) fn readout(active: &[Active], sizes: Sizes) -> String {
    if let [only] = active {
        return only.line(sizes);
    }
    let speed = active.iter().map(|download| download.speed).sum();
    let uploads = active
        .iter()
        .filter_map(|download| Some(download.torrent.as_ref()?.upload_speed));
    let mut text = format!("[DL:{}B", sizes.write(speed));
    match uploads.sum() {
        0 => text.push(']'),
        upload => {
            let _infallible = write!(text, " UL:{}B]", sizes.write(upload));
        }
    }
    for download in active.iter().take(MAX_SHOWN) {
        let _infallible = write!(text, "[#{} {}]", short(&download.gid), download.sizes(sizes));
    }
    if active.len() > MAX_SHOWN {
        let _infallible = write!(text, "(+{})", active.len() - MAX_SHOWN);
    }
    text
}

/// The periodic summary.
pub(super) fn summary(active: &[Active], sizes: Sizes, now: &Zoned) -> String {
    const WIDTH: usize = 79;
    let date = now.strftime("%a %b %e %H:%M:%S %Y");
    let mut text = format!(
        " *** Download Progress Summary as of {date} *** \n{}\n",
        "=".repeat(WIDTH)
    );
    for download in active {
        let (line, rule) = (download.line(sizes), "-".repeat(WIDTH));
        let _infallible = write!(text, "{line}\nFILE: {}\n{rule}\n\n", download.path);
    }
    text
}

/// The results table; empty if it is disabled.
pub(super) fn results<'a>(form: &str, results: impl Iterator<Item = &'a DownloadResult>, sizes: Sizes) -> String {
    let is_full = form == "full";
    let mut text = String::from("\nDownload Results:\ngid   |stat|avg speed  |");
    text.push_str(if is_full { "  %|path/URI\n" } else { "path/URI\n" });
    text.push_str("======+====+===========+");
    text.push_str(if is_full { "===+" } else { "====" });
    text.push_str(&"=".repeat(51));
    text.push('\n');
    let mut seen = std::collections::BTreeSet::new();
    for result in results {
        let speed = result.speed.map(|speed| format!("{}B/s", sizes.write(speed)));
        let (code, _) = result.end.label();
        let _infallible = write!(
            text,
            "{}|{code:<4}|{:>11}|",
            short(&result.gid),
            speed.as_deref().unwrap_or("n/a")
        );
        if is_full {
            let percent = (u128::from(result.done) * 100).checked_div(result.total.into());
            let percent = percent.map_or_else(|| "-".to_owned(), |percent| percent.to_string());
            let _infallible = write!(text, "{percent:>3}|");
        }
        let _infallible = writeln!(text, "{}", result.name);
        seen.insert(result.end);
    }
    if !seen.is_empty() {
        text.push_str("\nStatus Legend:\n");
        for end in seen {
            let (code, meaning) = end.label();
            let _infallible = write!(text, "({code}):{meaning}.");
        }
        text.push('\n');
    }
    if form == "hide" { String::new() } else { text }
}

/// Writes output at the configured level. A closed standard output is not an error.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own, or a fact about the terminal"
)]
pub(super) struct Console {
    out: Box<dyn Write + Send>,
    is_quiet: bool,
    is_terminal: bool,
    is_colored: bool,
    is_cut: bool,
    level: Level,
    pub(super) sizes: Sizes,
    pub(super) shows_readout: bool,
    /// Whether a readout occupies the terminal's last line.
    is_line_taken: bool,
}

impl Console {
    pub(super) fn new(options: &Options) -> Self {
        let is_off = |name: &str| options.get(name) == Some("false");
        let to_errors = options.is_on("stderr");
        let is_terminal = if to_errors {
            io::stderr().is_terminal()
        } else {
            io::stdout().is_terminal()
        };
        Self {
            out: if to_errors {
                Box::new(io::stderr())
            } else {
                Box::new(io::stdout())
            },
            is_quiet: options.is_on("quiet"),
            is_terminal,
            is_colored: is_terminal && !is_off("enable-color"),
            is_cut: !is_off("truncate-console-readout"),
            level: Level::of(options.get("console-log-level").unwrap_or_default()),
            sizes: if is_off("human-readable") {
                Sizes::Plain
            } else {
                Sizes::Short
            },
            shows_readout: !is_off("show-console-readout"),
            is_line_taken: false,
        }
    }

    /// Prints a message with its time, and logs it.
    pub(super) fn message(&mut self, level: Level, message: &str) {
        match level {
            Level::Debug => tracing::debug!("{message}"),
            Level::Info | Level::Notice => tracing::info!("{message}"),
            Level::Warn => tracing::warn!("{message}"),
            Level::Error => tracing::error!("{message}"),
        }
        if level < self.level {
            return;
        }
        let time = Zoned::now().strftime("%m/%d %H:%M:%S").to_string();
        let (name, color) = level.look();
        let name = if self.is_colored {
            format!("{color}{name}\x1b[0m")
        } else {
            name.to_owned()
        };
        // It may repeat what a server or a client said.
        let lines: Vec<_> = message.split('\n').map(terminal::printable).collect();
        self.print(&format!("\n{time} [{name}] {}\n", lines.join("\n")));
    }

    /// Prints the readout, which replaces the previous one on a terminal.
    pub(super) fn read_out(&mut self, line: &str) {
        if !self.is_terminal {
            self.print(&format!("{line}\n"));
            return;
        }
        let (columns, _) = terminal::size();
        let line: String = if self.is_cut {
            line.chars().take(columns).collect()
        } else {
            line.to_owned()
        };
        self.print(&line);
        self.is_line_taken = true;
    }

    pub(super) fn print(&mut self, text: &str) {
        if self.is_quiet {
            return;
        }
        let clear = if std::mem::take(&mut self.is_line_taken) {
            "\r\x1b[K"
        } else {
            ""
        };
        let _reader_gone = self
            .out
            .write_all([clear, text].concat().as_bytes())
            .and_then(|()| self.out.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn active(done: u64, total: u64, speed: u64) -> Active {
        Active {
            gid: "582fc9aa00000000".into(),
            done,
            total,
            speed,
            connections: 1,
            path: "/d/s".into(),
            torrent: None,
        }
    }

    fn seeding(uploaded: u64) -> Active {
        let swarm = Swarm {
            seeds: 2,
            uploaded,
            upload_speed: 2048,
            is_seeding: true,
        };
        Active {
            torrent: Some(swarm),
            ..active(3_000_000, 3_000_000, 0)
        }
    }

    #[test]
    fn a_readout_of_a_torrent_names_seeds_and_what_it_uploaded() {
        let line = |download: &Active| readout(std::slice::from_ref(download), Sizes::Short);
        assert_eq!(line(&seeding(0)), "[#582fc9 SEED(0.0) CN:1 SD:2]");
        assert_eq!(
            line(&seeding(4_500_000)),
            "[#582fc9 SEED(1.5) CN:1 SD:2 UL:2.0KiB(4.2MiB)]"
        );
        let mut leeching = seeding(0);
        leeching.torrent.as_mut().unwrap().is_seeding = false;
        leeching.done = 0;
        assert_eq!(line(&leeching), "[#582fc9 0B/2.8MiB(0%) CN:1 SD:2 DL:0B]");
        let both = [seeding(1), active(0, 0, 1024)];
        assert_eq!(
            readout(&both, Sizes::Short),
            "[DL:1.0KiB UL:2.0KiB][#582fc9 SEED(0.0)][#582fc9 0B/0B]"
        );
        assert_eq!((ratio(19, 10), ratio(1, 0)), (Some("1.9".to_owned()), None));
    }

    #[test]
    fn sizes_are_written_as_aria2_writes_them() {
        for (bytes, expect) in [
            (0, "0"),
            (921, "921"),
            (922, "0.9Ki"),
            (1024, "1.0Ki"),
            (16 << 10, "16Ki"),
            (3_000_000, "2.8Mi"),
            (178 << 20, "178Mi"),
            (5 << 40, "5120Gi"),
        ] {
            assert_eq!(Sizes::Short.write(bytes), expect);
        }
        assert_eq!(Sizes::Plain.write(3_000_000), "3000000");
    }

    #[test]
    fn a_readout_of_one_says_more_than_one_of_many() {
        let one = active(1 << 20, 3_000_000, 525 << 10);
        assert_eq!(
            readout(std::slice::from_ref(&one), Sizes::Short),
            "[#582fc9 1.0MiB/2.8MiB(34%) CN:1 DL:525KiB ETA:3s]"
        );
        assert_eq!(readout(&[active(0, 0, 0)], Sizes::Short), "[#582fc9 0B/0B CN:1 DL:0B]");
        assert_eq!(
            readout(&[one.clone(), one.clone()], Sizes::Short),
            "[DL:1.0MiB][#582fc9 1.0MiB/2.8MiB(34%)][#582fc9 1.0MiB/2.8MiB(34%)]"
        );
        assert!(readout(&vec![one; 7], Sizes::Short).ends_with("(+2)"));
        assert_eq!(time(182), "3m2s");
        assert_eq!(time(3600), "1h");
    }

    #[test]
    fn a_summary_names_the_file_under_its_readout() {
        let now = "2026-11-21T12:10:50[UTC]".parse().unwrap();
        let text = summary(&[active(16384, 3_000_000, 15 << 10)], Sizes::Short, &now);
        assert_eq!(
            text,
            format!(
                " *** Download Progress Summary as of Sat Nov 21 12:10:50 2026 *** \n{}\n\
                [#582fc9 16KiB/2.8MiB(0%) CN:1 DL:15KiB ETA:3m14s]\nFILE: /d/s\n{}\n\n",
                "=".repeat(79),
                "-".repeat(79)
            )
        );
    }

    #[test]
    fn the_table_of_results_is_aria2s() {
        let result = |end: End, speed: Option<u64>, name: &str| DownloadResult {
            gid: "80a26f73dd649257".into(),
            end,
            done: 1,
            total: 2,
            speed,
            name: name.into(),
        };
        let all = [
            result(End::Failed, None, "http://h/nope"),
            result(End::Complete, Some(53 << 20), "/d/f.1.bin"),
        ];
        assert_eq!(
            results("default", all.iter(), Sizes::Short),
            "\nDownload Results:\ngid   |stat|avg speed  |path/URI\n\
            ======+====+===========+=======================================================\n\
            80a26f|ERR |        n/a|http://h/nope\n80a26f|OK  |    53MiB/s|/d/f.1.bin\n\n\
            Status Legend:\n(OK):download completed.(ERR):error occurred.\n"
        );
        let full = results("full", all[1..].iter(), Sizes::Short);
        assert!(full.contains("gid   |stat|avg speed  |  %|path/URI\n"), "{full}");
        assert!(
            full.contains("======+====+===========+===+===================================================\n"),
            "{full}"
        );
        assert!(full.contains("80a26f|OK  |    53MiB/s| 50|/d/f.1.bin\n"), "{full}");
        assert_eq!(results("hide", all.iter(), Sizes::Short), "");
    }
}
