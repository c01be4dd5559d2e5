//! `ffmpeg`: one that misbehaves, and the real one.

use std::{fs, os::fd::OwnedFd, path::Path, process::Command, sync::Arc, time::Duration};

use tokio::{sync::watch, time::timeout};
use tools::{Choice, Container, Conversion, Inputs, Isolation, Progress, Settings, Tool, ToolError};
use transfer::FileName;

use super::rig::{PATIENCE, Rig, gone, is_running};

/// Beginning of a script that names its output.
const OUTPUT: &str = "out = sys.argv[-1].removeprefix('file:')\n";

/// Files are made in the directory for downloads, as ours of which others see nothing is, and read above it.
fn opened(directory: &Path) -> Arc<OwnedFd> {
    Arc::new(fs::File::open(directory).unwrap().into())
}

fn remux(directory: &Path) -> Conversion {
    fs::write(directory.join("../a.ts"), [0; 4096]).unwrap();
    Conversion {
        directory: opened(directory),
        inputs: Inputs::Remux {
            input: FileName::sanitise("a.ts"),
        },
        output: FileName::sanitise("a.mp4.muxing"),
        container: Container::Mp4,
    }
}

async fn convert(rig: &Rig, job: &Conversion) -> Result<(), ToolError> {
    let (progress, _) = watch::channel(Progress::default());
    let converted = timeout(PATIENCE, rig.tools.convert(job.clone(), progress)).await;
    converted.expect("it ends")
}

/// Runs a script as `ffmpeg`; nothing is left afterwards.
async fn run(script: &str) -> Result<(), ToolError> {
    let rig = Rig::new(&[("ffmpeg", &format!("{OUTPUT}{script}"))]);
    let job = remux(&rig.downloads());
    let outcome = convert(&rig, &job).await;
    assert!(rig.is_clean());
    assert_eq!(rig.downloads().join("a.mp4.muxing").exists(), outcome.is_ok());
    outcome
}

#[tokio::test]
async fn a_tool_that_is_not_allowed_is_not_started() {
    let rig = Rig::new(&[("ffmpeg", "open('started', 'w')")]);
    rig.settings.send_replace(Settings::default());
    let refused = convert(&rig, &remux(&rig.downloads())).await;
    assert!(
        matches!(refused, Err(ToolError::Off { tool: Tool::Ffmpeg })),
        "{refused:?}"
    );
    let ffmpeg = rig.folder.path().join("nowhere");
    rig.settings
        .send_modify(|settings| settings.ffmpeg = Choice::At(ffmpeg));
    let refused = convert(&rig, &remux(&rig.downloads())).await;
    assert!(matches!(refused, Err(ToolError::NotExecutable { .. })), "{refused:?}");
    assert!(!rig.downloads().join("started").exists());
}

#[tokio::test]
async fn progress_is_passed_on() {
    let rig = Rig::new(&[(
        "ffmpeg",
        &format!(
            "{OUTPUT}open(out, 'wb').write(b'\\0\\0\\0\\x08moov')\nprint('total_size=77\\nout_time_us=1500000\\nprogress=continue', flush=True)"
        ),
    )]);
    let (progress, seen) = watch::channel(Progress::default());
    rig.tools.convert(remux(&rig.downloads()), progress).await.unwrap();
    let expected = Progress {
        written_bytes: 77,
        position: Duration::from_millis(1500),
    };
    assert_eq!(*seen.borrow(), expected);
}

#[tokio::test]
async fn a_failure_says_why_and_leaves_nothing() {
    let failed = run("open(out, 'w').write('half')\nprint('no such\\x1b codec', file=sys.stderr)\nsys.exit(69)").await;
    assert_eq!(
        failed.unwrap_err().to_string(),
        "ffmpeg failed (exit code 69): no such codec"
    );
    let failed = run("os.kill(os.getpid(), signal.SIGKILL) or os.abort()").await;
    assert!(matches!(failed, Err(ToolError::Failed { .. })), "{failed:?}");
    for nothing_whole in [
        "sys.exit(0)",
        "open(out, 'wb').write(b'\\0\\0\\0\\x09moov')",
        "os.symlink('x', out)",
    ] {
        let failed = run(nothing_whole).await;
        assert!(matches!(failed, Err(ToolError::Run { .. })), "{failed:?}");
    }
}

#[tokio::test]
async fn an_input_that_others_exchange_for_a_link_is_not_followed() {
    let read = run("given = sys.argv[sys.argv.index('-i') + 1].removeprefix('file:')\n\
         open('../secret', 'w').write('secret')\n\
         os.unlink('../a.ts')\nos.symlink('secret', '../a.ts')\n\
         if open(given, 'rb').read() != bytes(4096): sys.exit('it read another file')\n\
         open(out, 'wb').write(b'\\0\\0\\0\\x08moov')")
    .await;
    assert!(read.is_ok(), "{read:?}");
}

#[tokio::test]
async fn floods_are_cut_off() {
    for stream in ["stdout", "stderr"] {
        let flooded = run(&format!(
            "open(out, 'w').write('half')\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
             while True: sys.{stream}.write('x' * 65536 + '\\n')"
        ))
        .await;
        assert!(
            matches!(flooded, Err(ToolError::TooMuchOutput { .. })),
            "{stream}: {flooded:?}"
        );
    }
}

#[tokio::test]
async fn a_result_cannot_be_much_larger_than_its_inputs() {
    let failed = run("f = open(out, 'wb')\nwhile True: f.write(b'x' * (1 << 20))").await;
    assert!(matches!(failed, Err(ToolError::Failed { .. })), "{failed:?}");
}

#[tokio::test]
async fn a_dropped_conversion_ends_with_all_that_it_started() {
    let rig = Rig::new(&[(
        "ffmpeg",
        &format!(
            "{OUTPUT}signal.signal(signal.SIGTERM, signal.SIG_IGN)\nopen(out, 'w').write('half')\n\
             if os.fork() == 0: os.setsid()\n\
             open('numbers', 'a').write(os.readlink('/proc/self') + '\\n')\n\
             while len(open('numbers').readlines()) < 2: time.sleep(0.01)\n\
             open('ready', 'w').write('end\\n')\ntime.sleep(1000)"
        ),
    )]);
    let job = remux(&rig.downloads());
    let (progress, _) = watch::channel(Progress::default());
    tokio::select! {
        ended = rig.tools.convert(job.clone(), progress) => panic!("{ended:?}"),
        _ = rig.written("ready") => {}
    }
    let numbers = fs::read_to_string(rig.downloads().join("numbers")).unwrap();
    assert_eq!(
        numbers.lines().filter(|number| is_running(number)).count(),
        2,
        "{numbers}"
    );
    timeout(PATIENCE, rig.tools.shutdown()).await.unwrap();
    assert_eq!(
        numbers.lines().filter(|number| is_running(number)).count(),
        0,
        "{numbers}"
    );
    assert!(rig.is_clean() && !rig.downloads().join("a.mp4.muxing").exists());
}

#[tokio::test]
async fn two_run_at_once_and_others_wait() {
    let rig = Rig::new(&[(
        "ffmpeg",
        &format!(
            "{OUTPUT}open(out, 'wb').write(b'\\0\\0\\0\\x08moov')\nwhile not os.path.exists('go'): time.sleep(0.01)"
        ),
    )]);
    let jobs = ["a", "b", "c"].map(|name| Conversion {
        output: FileName::sanitise(name),
        ..remux(&rig.downloads())
    });
    let [one, two, three] = &jobs;
    let observed = async {
        let exists = |name: &str| rig.downloads().join(name).exists();
        while !(exists("a") && exists("b")) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!exists("c"));
        fs::write(rig.downloads().join("go"), "").unwrap();
    };
    let (one, two, three, ()) = tokio::join!(convert(&rig, one), convert(&rig, two), convert(&rig, three), observed);
    one.and(two).and(three).unwrap();
}

#[tokio::test]
async fn a_killed_supervisor_leaves_nothing() {
    let rig = Rig::new(&[(
        "ffmpeg",
        "open('numbers', 'w').write(os.readlink('/proc/self'))\nopen('ready', 'w').write('end\\n')\ntime.sleep(1000)",
    )]);
    let killed = async {
        rig.written("ready").await;
        let number = fs::read_to_string(rig.downloads().join("numbers")).unwrap();
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap();
        let parent = stat
            .rsplit(')')
            .next()
            .unwrap()
            .split_whitespace()
            .nth(1)
            .unwrap()
            .to_owned();
        Command::new("kill").args(["-9", &parent]).status().unwrap();
        number
    };
    let job = remux(&rig.downloads());
    let (outcome, number) = tokio::join!(convert(&rig, &job), killed);
    assert!(matches!(outcome, Err(ToolError::Run { .. })), "{outcome:?}");
    gone([number]).await;
}

/// Runs the real program for a test, outside of everything that is tested.
fn real(name: &str, directory: &Path, arguments: &str) -> String {
    let ran = Command::new(name)
        .args(arguments.split_whitespace())
        .current_dir(directory)
        .output()
        .expect("tests/run installs ffmpeg");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

#[tokio::test]
async fn the_real_one_joins_and_remuxes() {
    let rig = Rig::new(&[]);
    let directory = rig.downloads();
    let quiet = "-hide_banner -loglevel error -y";
    real(
        "ffmpeg",
        &directory,
        &format!("{quiet} -f lavfi -i testsrc=d=2:s=64x48 -c:v mpeg4 -f mp4 file:../-video.mp4"),
    );
    real(
        "ffmpeg",
        &directory,
        &format!("{quiet} -f lavfi -i sine=d=2 -c:a aac ../audio.m4a"),
    );
    let mux = Conversion {
        directory: opened(&directory),
        inputs: Inputs::Mux {
            video: FileName::sanitise("-video.mp4"),
            audio: FileName::sanitise("audio.m4a"),
        },
        output: FileName::sanitise("-both %d.mp4.muxing"),
        container: Container::Mp4,
    };
    let (progress, seen) = watch::channel(Progress::default());
    rig.tools.convert(mux.clone(), progress).await.unwrap();
    assert!(seen.borrow().written_bytes > 1000, "{:?}", *seen.borrow());
    let streams = |name: &str| {
        let probe = format!("-v error -show_entries stream=codec_name -of default=nw=1:nk=1 file:{name}");
        real("ffprobe", &directory, &probe)
    };
    fs::rename(directory.join("-both %d.mp4.muxing"), directory.join("both.mp4")).unwrap();
    assert_eq!(streams("both.mp4"), "mpeg4\naac\n");

    real(
        "ffmpeg",
        &directory,
        &format!("{quiet} -i both.mp4 -c:v mpeg2video -c:a aac ../joined.ts"),
    );
    for (container, output) in [(Container::Mp4, "r.mp4"), (Container::Matroska, "r.mkv")] {
        let job = Conversion {
            directory: opened(&directory),
            inputs: Inputs::Remux {
                input: FileName::sanitise("joined.ts"),
            },
            output: FileName::sanitise(output),
            container,
        };
        convert(&rig, &job).await.unwrap();
        assert_eq!(streams(output), "mpeg2video\naac\n");
        let refused = convert(&rig, &job).await;
        assert!(matches!(refused, Err(ToolError::OutputExists { .. })), "{refused:?}");
    }

    let found = rig.tools.find(Tool::Ffmpeg).await;
    assert!(
        found
            .version
            .as_deref()
            .is_some_and(|version| version.starts_with(|c: char| c.is_ascii_alphanumeric()))
    );
    assert_eq!(
        (found.tool, found.is_enabled, &found.problem),
        (Tool::Ffmpeg, true, &None)
    );
    assert!(matches!(
        found.isolation,
        Some(Isolation::Namespaces | Isolation::LimitsOnly { .. })
    ));
}

#[tokio::test]
async fn the_real_one_reads_no_other_files() {
    let rig = Rig::new(&[]);
    let directory = rig.downloads().join("..").canonicalize().unwrap();
    let quiet = "-hide_banner -loglevel error -y";
    fs::create_dir(directory.join("private")).unwrap();
    real(
        "ffmpeg",
        &directory,
        &format!("{quiet} -f lavfi -i sine=d=1 -c:a aac private/secret.ts"),
    );
    let secret = directory.join("private/secret.ts");
    let secret = secret.display();
    let playlists = [
        format!("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile://{secret}\n#EXT-X-ENDLIST\n"),
        "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nprivate/secret.ts\n#EXT-X-ENDLIST\n".to_owned(),
        "ffconcat version 1.0\nfile private/secret.ts\n".to_owned(),
        format!("v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nm=audio 5004 RTP/AVP 96\na={secret}\n"),
    ];
    for playlist in playlists {
        let job = remux(&rig.downloads());
        fs::write(directory.join("a.ts"), &playlist).unwrap();
        let refused = convert(&rig, &job).await;
        assert!(
            matches!(refused, Err(ToolError::Failed { .. })),
            "{playlist}: {refused:?}"
        );
    }
    std::os::unix::fs::symlink("private/secret.ts", directory.join("link.ts")).unwrap();
    let job = Conversion {
        inputs: Inputs::Remux {
            input: FileName::sanitise("link.ts"),
        },
        ..remux(&rig.downloads())
    };
    let refused = convert(&rig, &job).await;
    assert!(matches!(refused, Err(ToolError::Input { .. })), "{refused:?}");
}
