//! What `ffmpeg` is run for: joining audio and video, and changing the container. Nothing is encoded anew.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use transfer::FileName;

use crate::{Tool, ToolError, order::Limits};

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

/// A job for `ffmpeg`. Inputs and output are in one directory, and are regular files with names of one component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversion {
    /// The directory, an absolute path.
    pub directory: PathBuf,
    /// What is read.
    pub inputs: Inputs,
    /// A temporary name that does not exist yet: the caller renames the file when it is complete.
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
    pub(crate) fn output_path(&self) -> PathBuf {
        self.directory.join(self.output.as_str())
    }

    fn inputs(&self) -> Vec<&FileName> {
        match &self.inputs {
            Inputs::Mux { video, audio } => vec![video, audio],
            Inputs::Remux { input } => vec![input],
        }
    }

    /// Checks the files, and returns what the run may use. Blocks on the disk.
    pub(crate) fn limits(&self) -> Result<Limits, ToolError> {
        let output = self.output_path();
        if output.symlink_metadata().is_ok() {
            return Err(ToolError::OutputExists { path: output });
        }
        let sizes = self.inputs().into_iter().map(|name| size(&self.directory, name));
        let bytes = sizes.sum::<Result<u64, ToolError>>()?;
        Ok(Limits {
            wall: MAX_WALL,
            cpu_seconds: MAX_CPU_SECONDS,
            address_space_bytes: Some(MAX_ADDRESS_SPACE_BYTES),
            data_bytes: MAX_DATA_BYTES,
            file_bytes: bytes.saturating_add(bytes / 8).saturating_add(MARGIN_BYTES),
        })
    }

    /// The arguments, for a process in the directory. `file:` makes a name a file, whatever it begins with.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let file = |name: &FileName| format!("file:{name}");
        let mut arguments: Vec<String> = Vec::new();
        let mut add = |more: &[&str]| arguments.extend(more.iter().map(|&argument| argument.to_owned()));
        add(&["-nostdin", "-hide_banner", "-loglevel", "error", "-n"]);
        add(&["-nostats", "-progress", "pipe:1"]);
        for input in self.inputs() {
            add(&[
                "-protocol_whitelist",
                "file",
                "-format_whitelist",
                READ,
                "-i",
                &file(input),
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
        add(&[&file(&self.output)]);
        arguments.into_iter().map(OsString::from).collect()
    }
}

fn size(directory: &Path, name: &FileName) -> Result<u64, ToolError> {
    let path = directory.join(name.as_str());
    match path.symlink_metadata() {
        Ok(found) if found.is_file() => Ok(found.len()),
        Ok(_) => Err(ToolError::Input {
            path,
            source: io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"),
        }),
        Err(source) => Err(ToolError::Input { path, source }),
    }
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

    fn job(inputs: Inputs, output: &str) -> Conversion {
        Conversion {
            directory: "/downloads".into(),
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
            "-nostdin -hide_banner -loglevel error -n -nostats -progress pipe:1 {input} file:-i evil.mp4 {input} \
             file:http___x.m4a -map 0:v:0 -map 1:a:0 -c copy -map_metadata 0 -map_chapters 0 -movflags +faststart \
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
        let inputs = Inputs::Remux {
            input: FileName::sanitise("a.ts"),
        };
        let job = Conversion {
            directory: folder.path().to_owned(),
            ..job(inputs, "a.mp4")
        };
        let refused = job.limits();
        assert!(matches!(refused, Err(ToolError::Input { .. })), "{refused:?}");
        std::fs::create_dir(folder.path().join("a.ts")).unwrap();
        let refused = job.limits();
        assert!(matches!(refused, Err(ToolError::Input { .. })), "{refused:?}");
        std::fs::remove_dir(folder.path().join("a.ts")).unwrap();
        std::fs::write(folder.path().join("a.ts"), [0; 800]).unwrap();
        assert_eq!(job.limits().unwrap().file_bytes, 900 + MARGIN_BYTES);
        std::fs::write(folder.path().join("a.mp4"), "").unwrap();
        let refused = job.limits();
        assert!(matches!(refused, Err(ToolError::OutputExists { .. })), "{refused:?}");
    }
}
