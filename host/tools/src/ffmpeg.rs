//! What `ffmpeg` is run for: joining audio and video, and changing the container. Nothing is encoded anew.

use std::{
    ffi::OsString,
    fs::File,
    io,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::fs::FileExt as _,
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rustix::fs::{Mode, OFlags, openat};
use transfer::FileName;

use crate::{
    Tool, ToolError,
    order::{FIRST_INPUT, Limits},
};

/// Wall-clock limit. Copying 100 GiB takes a quarter of an hour from a slow disk.
const MAX_WALL: Duration = Duration::from_mins(30);

/// Copying takes a second of processor time for some GiB.
const MAX_CPU_SECONDS: u64 = 900;

/// The index of a film takes some MiB; the rest is libraries and the stacks of threads.
const MAX_ADDRESS_SPACE_BYTES: u64 = 4 << 30;

/// Memory of its own.
const MAX_DATA_BYTES: u64 = 1 << 30;

/// What a result may be larger than its inputs, apart from an eighth: headers and an index.
const MARGIN_BYTES: u64 = 16 * 1024 * 1024;

/// From the directory of the output, where the inputs are.
const ABOVE: &str = "..";

/// Boxes at the top of an MP4 file: `ffmpeg` writes four.
const MAX_BOXES: usize = 1000;

/// Where the segment of a Matroska file begins at the latest: its header has some fifty bytes.
const MAX_EBML_BYTES: usize = 4096;

/// Output is progress: a few hundred bytes twice a second.
pub(crate) const MAX_OUTPUT_BYTES: u64 = 4 * 1024 * 1024;

/// The longest line of progress.
const MAX_LINE_BYTES: usize = 1024;

/// Containers that are read. Not among them: what only names other files (`hls`, `dash`, `concat`, playlists), because a
/// download could name the user's files that way and have them copied into the result.
const READ: &str = "mov,matroska,webm,mpegts,mpeg,avi,flv,asf,aac,ac3,eac3,mp3,flac,ogg,wav,h264,hevc,ivf,obu";

/// What is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inputs {
    /// Joins the first video stream of one file and the first audio stream of another.
    Mux {
        /// The file with video.
        video: FileName,
        /// The file with audio.
        audio: FileName,
    },
    /// Puts the video and audio streams of a file (a joined HLS stream, for one) into another container.
    Remux {
        /// The file.
        input: FileName,
    },
}

/// The container of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// MP4, with its index at the beginning.
    Mp4,
    /// Matroska, which takes any codec.
    Matroska,
    /// `WebM`, for the codecs VP8, VP9, AV1, Vorbis and Opus.
    WebM,
}

/// A job for `ffmpeg`. Inputs and output are regular files with names of one component.
#[derive(Debug, Clone)]
pub struct Conversion {
    /// The directory that the output is written to, opened: what others put in its place at its path is not used. It should
    /// be one that only the user of this process may write to, because `ffmpeg` would follow a link with the output's name.
    pub directory: Arc<OwnedFd>,
    /// What is read: files in the directory above that one.
    pub inputs: Inputs,
    /// A name that does not exist yet: the caller syncs the file and moves it to its place when it is complete.
    pub output: FileName,
    /// What is written.
    pub container: Container,
}

/// How far a conversion is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// The size of the result so far.
    pub written_bytes: u64,
    /// The position in time up to which it was written.
    pub position: Duration,
}

impl Conversion {
    /// The directory, for as long as this job lives.
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.directory.as_raw_fd()))
    }

    pub(crate) fn output_path(&self) -> PathBuf {
        self.path().join(self.output.as_str())
    }

    fn inputs(&self) -> Vec<&FileName> {
        match &self.inputs {
            Inputs::Mux { video, audio } => vec![video, audio],
            Inputs::Remux { input } => vec![input],
        }
    }

    /// Opens the inputs, and returns what the run may use. Blocks on the disk.
    pub(crate) fn open(&self) -> Result<(Limits, Vec<OwnedFd>), ToolError> {
        let output = self.output_path();
        if output.symlink_metadata().is_ok() {
            let path = PathBuf::from(self.output.as_str());
            return Err(ToolError::OutputExists { path });
        }
        let opened = self.inputs().into_iter().map(|name| {
            let path = PathBuf::from(name.as_str());
            open_input(&self.directory, name).map_err(|source| ToolError::Input { path, source })
        });
        let (sizes, inputs): (Vec<u64>, Vec<OwnedFd>) = opened.collect::<Result<_, _>>()?;
        let bytes: u64 = sizes.into_iter().sum();
        let limits = Limits {
            wall: MAX_WALL,
            cpu_seconds: MAX_CPU_SECONDS,
            address_space_bytes: Some(MAX_ADDRESS_SPACE_BYTES),
            data_bytes: MAX_DATA_BYTES,
            file_bytes: bytes.saturating_add(bytes / 8).saturating_add(MARGIN_BYTES),
        };
        Ok((limits, inputs))
    }

    /// The arguments, for a process in the directory that has the inputs open: others may change what their names are.
    /// `file:` makes a name a file, whatever it begins with.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<String> = Vec::new();
        let mut add = |more: &[&str]| arguments.extend(more.iter().map(|&argument| argument.to_owned()));
        add(&["-nostdin", "-hide_banner", "-loglevel", "error", "-n"]);
        add(&["-nostats", "-progress", "pipe:1"]);
        for (_, number) in self.inputs().into_iter().zip(FIRST_INPUT..) {
            add(&[
                "-protocol_whitelist",
                "file",
                "-format_whitelist",
                READ,
                "-i",
                &format!("file:/proc/self/fd/{number}"),
            ]);
        }
        match self.inputs {
            Inputs::Mux { .. } => add(&["-map", "0:v:0", "-map", "1:a:0"]),
            Inputs::Remux { .. } => add(&["-map", "0:v?", "-map", "0:a?"]),
        }
        add(&["-c", "copy", "-map_metadata", "0", "-map_chapters", "0"]);
        match self.container {
            Container::Mp4 => add(&["-movflags", "+faststart", "-f", "mp4"]),
            Container::Matroska => add(&["-f", "matroska"]),
            Container::WebM => add(&["-f", "webm"]),
        }
        add(&[&format!("file:{}", self.output)]);
        arguments.into_iter().map(OsString::from).collect()
    }
}

/// The size of a regular file in the directory above `directory`, and the file, opened not through a link.
fn open_input(directory: &OwnedFd, name: &FileName) -> io::Result<(u64, OwnedFd)> {
    // Without blocking, should it be a pipe.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(
        directory,
        Path::new(ABOVE).join(name.as_str()),
        flags,
        Mode::empty(),
    )?);
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    Ok((found.len(), file.into()))
}

/// Whether a result is complete. On a full disk `ffmpeg` succeeds nevertheless; its option that tells of that (`-xerror`)
/// refuses joined streams too, whose counters jump.
pub(crate) fn is_whole(file: &File, container: Container) -> io::Result<bool> {
    let length = file.metadata()?.len();
    match container {
        Container::Mp4 => is_whole_mp4(file, length),
        Container::Matroska | Container::WebM => is_whole_matroska(file, length),
    }
}

/// Boxes of which one is the index, and that end where the file ends.
fn is_whole_mp4(file: &File, length: u64) -> io::Result<bool> {
    let (mut at, mut has_index) = (0, false);
    for _ in 0..MAX_BOXES {
        if at == length {
            return Ok(has_index);
        }
        let mut head = [0; 8];
        if length - at < 8 {
            return Ok(false);
        }
        file.read_exact_at(&mut head, at)?;
        let [a, b, c, d, kind @ ..] = head;
        has_index |= kind == *b"moov";
        let size = match u32::from_be_bytes([a, b, c, d]) {
            1 if length - at >= 16 => {
                let mut size = [0; 8];
                file.read_exact_at(&mut size, at + 8)?;
                u64::from_be_bytes(size)
            }
            size => u64::from(size),
        };
        if size < 8 || size > length - at {
            return Ok(false);
        }
        at += size;
    }
    Ok(false)
}

/// A header, and a segment whose size was written at the end and is the rest of the file.
fn is_whole_matroska(file: &File, length: u64) -> io::Result<bool> {
    let mut head = vec![0; usize::try_from(length).unwrap_or(usize::MAX).min(MAX_EBML_BYTES)];
    file.read_exact_at(&mut head, 0)?;
    let element = |at: usize, id: [u8; 4]| {
        let rest = head.get(at..)?.strip_prefix(&id)?;
        // The first bit that is set is after as many as bytes follow.
        let bytes = rest.first()?.leading_zeros() as usize + 1;
        let size = rest.get(..bytes.min(8))?;
        let size = size.iter().fold(0_u64, |size, byte| size << 8 | u64::from(*byte));
        let size = size & ((1 << (7 * bytes.min(8))) - 1);
        Some((at + 4 + bytes, size))
    };
    let segment = element(0, [0x1a, 0x45, 0xdf, 0xa3])
        .and_then(|(at, size)| element(at.checked_add(usize::try_from(size).ok()?)?, [0x18, 0x53, 0x80, 0x67]));
    Ok(segment.is_some_and(|(at, size)| (at as u64).checked_add(size) == Some(length)))
}

/// Reads `-progress`: lines of `key=value`, of which `progress` ends a block.
#[derive(Debug, Default)]
pub(crate) struct ProgressReader {
    line: Vec<u8>,
    current: Progress,
}

impl ProgressReader {
    /// The state after the last block that `piece` completes.
    pub(crate) fn read(&mut self, piece: &[u8]) -> Option<Progress> {
        let mut complete = None;
        for byte in piece {
            match byte {
                b'\n' => complete = self.end_line().or(complete),
                byte if self.line.len() < MAX_LINE_BYTES => self.line.push(*byte),
                _ => {}
            }
        }
        complete
    }

    fn end_line(&mut self) -> Option<Progress> {
        let line = String::from_utf8_lossy(&self.line).into_owned();
        self.line.clear();
        let (key, value) = line.split_once('=')?;
        // A value that is not known yet is `N/A`.
        match (key.trim(), value.trim().parse::<u64>()) {
            ("total_size", Ok(bytes)) => self.current.written_bytes = bytes,
            ("out_time_us", Ok(position)) => self.current.position = Duration::from_micros(position),
            ("progress", _) => return Some(self.current),
            _ => {}
        }
        None
    }
}

/// The version in what `-version` prints.
pub(crate) fn version(output: &str) -> Option<String> {
    let rest = output
        .strip_prefix(Tool::Ffmpeg.name())?
        .trim_start()
        .strip_prefix("version ")?;
    rest.split_whitespace().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn opened(directory: &Path) -> Arc<OwnedFd> {
        Arc::new(File::open(directory).unwrap().into())
    }

    fn job(inputs: Inputs, output: &str) -> Conversion {
        Conversion {
            directory: opened(Path::new("/")),
            inputs,
            output: FileName::sanitise(output),
            container: Container::Mp4,
        }
    }

    #[test]
    fn the_arguments_of_a_mux_are_these() {
        let inputs = Inputs::Mux {
            video: FileName::sanitise("-i evil.mp4"),
            audio: FileName::sanitise("http:||x.m4a"),
        };
        let arguments = job(inputs, "out.mp4").arguments();
        let arguments: Vec<_> = arguments.iter().map(|argument| argument.to_str().unwrap()).collect();
        let input = format!("-protocol_whitelist file -format_whitelist {READ} -i");
        let expected = format!(
            "-nostdin -hide_banner -loglevel error -n -nostats -progress pipe:1 {input} \
             file:/proc/self/fd/100 {input} file:/proc/self/fd/101 -map 0:v:0 -map 1:a:0 -c copy -map_metadata 0 -map_chapters 0 -movflags +faststart \
             -f mp4 file:out.mp4"
        );
        assert_eq!(arguments.join(" "), expected);
    }

    proptest! {
        #[test]
        fn no_name_adds_or_becomes_an_option(input in ".{1,40}", output in ".{1,40}") {
            let plain = job(Inputs::Remux { input: FileName::sanitise("a") }, "b").arguments();
            let inputs = Inputs::Remux { input: FileName::sanitise(&input) };
            let arguments = job(inputs, &output).arguments();
            prop_assert_eq!(arguments.len(), plain.len());
            for (argument, plain) in arguments.iter().zip(&plain) {
                let is_file = argument.to_str().unwrap().starts_with("file:");
                prop_assert!(is_file || argument == plain, "{:?}", argument);
            }
        }

        #[test]
        fn progress_does_not_depend_on_how_it_is_cut(pieces in prop::collection::vec(1_usize..9, 1..60)) {
            let text = b"frame=1\ntotal_size=N/A\nout_time_us=-5\nprogress=continue\nbitrate= 1kbits/s\n\
                total_size=4096\nout_time_us=2500000\nprogress=continue\ntotal_size=9000\nprogress=end\n";
            let (mut reader, mut last, mut rest) = (ProgressReader::default(), None, &text[..]);
            for length in pieces {
                let (piece, after) = rest.split_at(length.min(rest.len()));
                last = reader.read(piece).or(last);
                rest = after;
            }
            last = reader.read(rest).or(last);
            let position = Duration::from_millis(2500);
            prop_assert_eq!(last, Some(Progress { written_bytes: 9000, position }));
        }
    }

    #[test]
    fn a_flood_without_lines_is_not_kept() {
        let mut reader = ProgressReader::default();
        assert_eq!(reader.read(&vec![b'x'; 1 << 20]), None);
        assert!(reader.line.len() <= MAX_LINE_BYTES);
    }

    #[test]
    fn versions_are_read() {
        let printed = "ffmpeg version 5.1.9-0+deb12u1 Copyright (c) 2000-2026 the FFmpeg developers\nbuilt with gcc";
        assert_eq!(version(printed).as_deref(), Some("5.1.9-0+deb12u1"));
        assert_eq!(version("avconv version 9"), None);
        assert_eq!(version("ffmpeg"), None);
    }

    #[test]
    fn inputs_are_files_and_an_output_that_exists_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("made")).unwrap();
        let inputs = Inputs::Remux {
            input: FileName::sanitise("a.ts"),
        };
        let job = Conversion {
            directory: opened(&folder.path().join("made")),
            ..job(inputs, "a.mp4")
        };
        let refused = job.open();
        assert!(matches!(refused, Err(ToolError::Input { .. })), "{refused:?}");
        std::fs::create_dir(folder.path().join("a.ts")).unwrap();
        let refused = job.open();
        assert!(matches!(refused, Err(ToolError::Input { .. })), "{refused:?}");
        std::fs::remove_dir(folder.path().join("a.ts")).unwrap();
        std::fs::write(folder.path().join("a.ts"), [0; 800]).unwrap();
        assert_eq!(job.open().unwrap().0.file_bytes, 900 + MARGIN_BYTES);
        std::fs::write(folder.path().join("made/a.mp4"), "").unwrap();
        let refused = job.open();
        assert!(matches!(refused, Err(ToolError::OutputExists { .. })), "{refused:?}");
    }

    #[test]
    fn what_a_full_disk_cut_off_is_not_whole() {
        let whole = |bytes: &[u8], container| {
            let mut file = tempfile::tempfile().unwrap();
            io::Write::write_all(&mut file, bytes).unwrap();
            is_whole(&file, container).unwrap()
        };
        let index = b"\0\0\0\x08moov";
        let data = b"\0\0\0\x01mdat\0\0\0\0\0\0\0\x14four";
        let all = [&index[..], data].concat();
        assert!(whole(&all, Container::Mp4));
        for length in (0..all.len()).filter(|length| *length != index.len()) {
            assert!(!whole(&all[..length], Container::Mp4), "{length}");
        }
        assert!(!whole(data, Container::Mp4), "without its index");
        assert!(!whole(b"\0\0\0\0moov", Container::Mp4));
        let header = b"\x1a\x45\xdf\xa3\x81x";
        let segment = b"\x18\x53\x80\x67\x01\0\0\0\0\0\0\x04four";
        let all = [&header[..], segment].concat();
        for container in [Container::Matroska, Container::WebM] {
            assert!(whole(&all, container));
            assert!((0..all.len()).all(|length| !whole(&all[..length], container)));
            let unknown = [&header[..], b"\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xfffour"].concat();
            assert!(!whole(&unknown, container), "its size was never written");
        }
    }
}
