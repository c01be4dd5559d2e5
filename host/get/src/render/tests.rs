//! The exact output of every format.

use transfer::FailureKind;

use super::*;

fn file() -> FileView {
    FileView {
        index: 3,
        url: "https://host.test/a/disk.iso?…".to_owned(),
        name: Some("disk.iso".to_owned()),
        stage: Stage::Moving,
        total_bytes: Some(4 << 30),
        done_bytes: 1 << 30,
        bytes_per_second: 50 << 20,
        connections: 8,
    }
}

/// One of each event, in chronological order.
fn with_each_event(mut report: impl FnMut(&Event<'_>)) {
    let failure = Failure::new(FailureKind::Network, "connection reset by\nhost.test");
    let path = Path::new("/data/disk.iso");
    report(&Event::Started);
    report(&Event::Named {
        path,
        total_bytes: Some(4 << 30),
    });
    report(&Event::Notice("the file changed at the server: starting over"));
    report(&Event::Retrying {
        failure: &failure,
        wait: Duration::from_millis(1500),
    });
    let elapsed = Duration::from_secs(64);
    report(&Event::Finished {
        path,
        size_bytes: 4 << 30,
        received_bytes: 4 << 30,
        elapsed,
    });
    report(&Event::Skipped { existing: path });
    report(&Event::Failed(&failure));
}

#[test]
fn people_read_sentences() {
    let mut lines = Vec::new();
    with_each_event(|event| lines.extend(text::event(&file(), event, text::Palette::default())));
    assert_eq!(
        lines,
        [
            "downloading disk.iso (4.0 GiB) from https://host.test/a/disk.iso?…",
            "note disk.iso: the file changed at the server: starting over",
            "retrying disk.iso in 1.5s: connection reset by�host.test",
            "finished disk.iso (4.0 GiB in 1m04s, 64.0 MiB/s)",
            "skipped https://host.test/a/disk.iso?…: /data/disk.iso exists",
            "failed https://host.test/a/disk.iso?…: connection reset by�host.test [network]",
        ]
    );
    assert_eq!(
        text::progress(&file()),
        "disk.iso: 25% of 4.0 GiB, 50.0 MiB/s, 1m02s left, 8 connections"
    );
    let unknown = FileView {
        total_bytes: None,
        connections: 1,
        ..file()
    };
    assert_eq!(text::progress(&unknown), "disk.iso: 1.0 GiB, 50.0 MiB/s, 1 connection");
}

#[test]
fn scripts_read_json_lines() {
    let mut out = Vec::new();
    let mut screen = json::JsonLines::new(&mut out);
    with_each_event(|event| screen.report(&file(), event));
    let totals = Totals {
        count: 4,
        finished: 1,
        failed: 1,
        skipped: 1,
        received_bytes: 5,
        elapsed: Duration::from_millis(1250),
        is_left_to_service: false,
    };
    screen.progress(&[&file()], &totals);
    screen.progress(&[&file()], &totals);
    screen.summary(&totals);
    screen.flush().unwrap();
    drop(screen);
    let output = String::from_utf8(out).unwrap();
    let id = r#""index":3,"url":"https://host.test/a/disk.iso?…""#;
    let expected = [
        format!(r#"{{"event":"started",{id}}}"#),
        format!(r#"{{"event":"named",{id},"path":"/data/disk.iso","total":4294967296}}"#),
        format!(r#"{{"event":"notice",{id},"message":"the file changed at the server: starting over"}}"#),
        format!(
            r#"{{"event":"retrying",{id},"kind":"network","message":"connection reset by\nhost.test","waitMs":1500}}"#
        ),
        format!(
            r#"{{"event":"finished",{id},"path":"/data/disk.iso","sizeBytes":4294967296,"receivedBytes":4294967296}}"#
        ),
        format!(r#"{{"event":"skipped",{id},"existing":"/data/disk.iso"}}"#),
        format!(r#"{{"event":"failed",{id},"kind":"network","message":"connection reset by\nhost.test"}}"#),
        format!(
            r#"{{"event":"progress",{id},"done":1073741824,"total":4294967296,"bytesPerSecond":52428800,"connections":8}}"#
        ),
        r#"{"event":"summary","finished":1,"failed":1,"skipped":1,"unfinished":1,"bytes":5,"seconds":1.25}"#.to_owned(),
    ];
    assert_eq!(output.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_reader_that_has_gone_is_noticed() {
    struct Gone;
    impl io::Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut screen = json::JsonLines::new(Gone);
    screen.report(&file(), &Event::Started);
    for _ in 0..2 {
        assert_eq!(screen.flush().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}

#[test]
fn a_bar_fits_its_terminal() {
    let plain = text::Palette::default();
    let bar = |columns| text::bar(&file(), columns, plain);
    assert_eq!(
        bar(100),
        "disk.iso                   ━━━━━───────────────  25%       1.0 GiB/4.0 GiB   50.0 MiB/s   1m02s   8c"
    );
    assert_eq!(
        bar(79),
        "disk.iso                    25%       1.0 GiB/4.0 GiB   50.0 MiB/s   1m02s   8c"
    );
    assert_eq!(bar(24), "disk.iso             25%");
    assert!(text::bar(&file(), 100, text::Palette { is_colored: true }).contains("\u{1b}[32m━━━━━\u{1b}[0m"));
    for columns in 0..140 {
        for name in ["disk.iso", "日本語のとても長いファイル名です.tar.gz", ""] {
            let file = FileView {
                name: Some(name.repeat(3)),
                ..file()
            };
            let width = unicode_width::UnicodeWidthStr::width(text::bar(&file, columns, plain).as_str());
            assert!(width <= columns.max(5), "{width} columns of {columns}");
        }
    }
}

#[test]
fn nothing_controls_the_terminal() {
    let file = FileView {
        name: Some("a\u{1b}[2Jb\r\u{202e}c".to_owned()),
        ..FileView::default()
    };
    assert_eq!(file.title(), "a�[2Jb��c");
}

#[test]
fn a_summary_comes_only_when_it_says_more_than_the_lines_before() {
    let summary = |count, finished, failed| {
        text::summary(&Totals {
            count,
            finished,
            failed,
            received_bytes: 2048,
            ..Totals::default()
        })
    };
    assert_eq!(summary(1, 1, 0), None);
    assert_eq!(
        summary(1, 0, 0).unwrap(),
        "1 unfinished; received 2.0 KiB in 0s\nsaved; run the same command again to continue"
    );
    assert_eq!(
        summary(5, 3, 2).unwrap(),
        "3 finished, 2 failed; received 2.0 KiB in 0s"
    );
}
