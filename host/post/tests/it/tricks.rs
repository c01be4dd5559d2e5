//! Archives that are made to harm. Each is refused by name and leaves nothing.

use post::Reason;

use crate::{
    rig::{MIB, Rig},
    tar_writer::{entry, gzip, pax, sized, tar},
    zip_writer::{ZipFile, end, zip},
};

async fn refused_zip(files: &[ZipFile]) -> Reason {
    Rig::with("a.zip", &zip(files)).refused("a.zip", &[]).await
}

async fn refused_name(name: impl AsRef<[u8]>) -> Reason {
    refused_zip(&[ZipFile::new("first.txt", "1"), ZipFile::new(name, "x")]).await
}

macro_rules! assert_refused {
    ($reason:expr, $pattern:pat) => {
        let reason = $reason;
        assert!(matches!(reason, $pattern), "{reason:?}");
    };
}

#[tokio::test]
async fn names_that_lead_elsewhere_are_refused() {
    assert_refused!(refused_name("/etc/passwd").await, Reason::Absolute);
    assert_refused!(refused_name("\\windows\\x").await, Reason::Absolute);
    assert_refused!(refused_name("../x").await, Reason::ParentDirectory);
    assert_refused!(refused_name("a/../../x").await, Reason::ParentDirectory);
    assert_refused!(refused_name("..\\x").await, Reason::ParentDirectory);
    assert_refused!(refused_name("a/.. ./x").await, Reason::ParentDirectory);
    assert_refused!(refused_name("C:\\x").await, Reason::DriveLetter);
    assert_refused!(refused_name("c:x").await, Reason::DriveLetter);
    assert_refused!(refused_name("\\\\host\\share\\x").await, Reason::NetworkPath);
    assert_refused!(refused_name("//host/share/x").await, Reason::NetworkPath);
}

#[tokio::test]
async fn names_that_some_system_takes_for_something_else_are_refused() {
    assert_refused!(refused_name("a\0b").await, Reason::ControlCharacter);
    assert_refused!(refused_name("a\x1b[2Jb").await, Reason::ControlCharacter);
    assert_refused!(refused_name("a\nb").await, Reason::ControlCharacter);
    assert_refused!(refused_name("CON").await, Reason::DeviceName);
    assert_refused!(refused_name("dir/nul.txt").await, Reason::DeviceName);
    assert_refused!(refused_name("COM1.log").await, Reason::DeviceName);
    assert_refused!(refused_name("a/ /b").await, Reason::NoName);
    assert_refused!(refused_name("").await, Reason::NoName);
    assert_refused!(refused_name(b"\xff\xfe.txt").await, Reason::NameEncoding);
}

#[tokio::test]
async fn names_without_measure_are_refused() {
    assert_refused!(
        refused_name("d/".repeat(32) + "x").await,
        Reason::TooDeep { depth: 33, limit: 32 }
    );
    assert_refused!(
        refused_name("n".repeat(256)).await,
        Reason::NameTooLong { bytes: 256, limit: 255 }
    );
    assert_refused!(
        refused_name("long/".repeat(410)).await,
        Reason::PathTooLong { bytes: 2050, .. }
    );
}

#[tokio::test]
async fn two_entries_of_one_name_are_refused() {
    assert_refused!(refused_name("first.txt").await, Reason::Duplicate);
    assert_refused!(refused_name("FIRST.TXT").await, Reason::Duplicate);
    assert_refused!(refused_name("./first.txt").await, Reason::Duplicate);
    assert_refused!(refused_name("first.txt ").await, Reason::Duplicate);
    assert_refused!(refused_name("fir\u{17f}t.txt").await, Reason::Duplicate);
    let composed = [ZipFile::new("\u{e9}", "1"), ZipFile::new("e\u{301}", "2")];
    assert_refused!(refused_zip(&composed).await, Reason::Duplicate);
    assert_refused!(refused_name("first.txt/below").await, Reason::FileAndDirectory);
    let late = [ZipFile::new("a/b", "1"), ZipFile::new("A", "2")];
    assert_refused!(refused_zip(&late).await, Reason::FileAndDirectory);
}

#[tokio::test]
async fn links_and_devices_in_zip_are_refused() {
    let of_mode = |mode| [ZipFile::new("entry", "/etc/passwd").with(|file| file.mode = mode)];
    assert_refused!(refused_zip(&of_mode(0o120_777)).await, Reason::SymbolicLink);
    assert_refused!(refused_zip(&of_mode(0o020_666)).await, Reason::SpecialFile);
    assert_refused!(refused_zip(&of_mode(0o010_666)).await, Reason::SpecialFile);
    assert_refused!(refused_zip(&of_mode(0o140_666)).await, Reason::SpecialFile);
    assert_refused!(refused_zip(&of_mode(0o040_755)).await, Reason::Mismatch { .. });
    assert_refused!(
        refused_zip(&[ZipFile::new("dir/", "content")]).await,
        Reason::Mismatch { .. }
    );
}

#[tokio::test]
async fn sizes_and_checksums_that_lie_are_refused() {
    let text = || ZipFile::new("a.txt", "some text, some text, some text").deflated();
    assert_refused!(
        refused_zip(&[text().with(|file| file.size = Some(5))]).await,
        Reason::Size { declared: 5 }
    );
    assert_refused!(
        refused_zip(&[text().with(|file| file.size = Some(500))]).await,
        Reason::Size { declared: 500 }
    );
    assert_refused!(
        refused_zip(&[text().with(|file| file.checksum = Some(1))]).await,
        Reason::Checksum
    );
    assert_refused!(
        refused_zip(&[text().with(|file| file.packed = Some(4))]).await,
        Reason::Damaged { .. } | Reason::Size { .. }
    );
    assert_refused!(
        refused_zip(&[text().with(|file| file.packed = Some(4000))]).await,
        Reason::Overlap
    );
    let noise = text().with(|file| file.data = vec![7; 40]).with(|file| file.flags |= 8);
    assert_refused!(
        refused_zip(&[noise.with(|file| file.size = Some(41))]).await,
        Reason::Size { .. }
    );
}

#[tokio::test]
async fn bombs_are_refused() {
    let zeros = vec![0; 80 * MIB as usize];
    let bomb = zip(&[ZipFile::new("zeros", &zeros).deflated()]);
    assert_refused!(
        Rig::with("a.zip", &bomb).refused("a.zip", &[]).await,
        Reason::Ratio { .. }
    );
    let bomb = gzip(&tar(&[entry("zeros", b'0', &zeros)]));
    assert_refused!(
        Rig::with("a.tgz", &bomb).refused("a.tgz", &[]).await,
        Reason::Ratio { .. }
    );
    let mut rig = Rig::with(
        "a.zip",
        &zip(&[ZipFile::new("1", [1; 600]), ZipFile::new("2", [2; 600])]),
    );
    rig.max_bytes = 1000;
    assert_refused!(rig.refused("a.zip", &[]).await, Reason::TotalSize { limit: 1000 });
    let mut rig = Rig::with("a.tar", &tar(&[entry("1", b'0', [1; 600]), entry("2", b'0', [2; 600])]));
    rig.max_bytes = 1000;
    assert_refused!(rig.refused("a.tar", &[]).await, Reason::TotalSize { limit: 1000 });
}

#[tokio::test]
async fn entries_without_number_are_refused() {
    let deep = (0..4000).map(|index| ZipFile::new(format!("{index}{}/x", "/d".repeat(28)), ""));
    assert_refused!(refused_zip(&deep.collect::<Vec<_>>()).await, Reason::Entries { .. });
    let many = (0..51_000).map(|index| ZipFile::new(format!("{index}/x"), ""));
    assert_refused!(refused_zip(&many.collect::<Vec<_>>()).await, Reason::Entries { .. });
}

#[tokio::test]
async fn bytes_that_belong_to_two_entries_are_refused() {
    let same = [
        ZipFile::new("a", "kernel").deflated(),
        ZipFile::new("a2", "kernel")
            .with(|file| file.offset = Some(0))
            .with(|file| file.local_name = Some("a2".into())),
    ];
    assert_refused!(refused_zip(&same).await, Reason::Mismatch { .. });
    let twice = zip(&[ZipFile::new("a", "kernel")]);
    let central = twice.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    let record = &twice[central..twice.len() - 22];
    let mut archive = [&twice[..central], record, record].concat();
    let (bytes, offset) = (record.len() as u32 * 2, central as u32);
    end(&mut archive, 2, bytes, offset);
    assert_refused!(
        Rig::with("a.zip", &archive).refused("a.zip", &[]).await,
        Reason::Overlap
    );
    // The content of the first is the second with its header, as in Fifield's bomb.
    let inner = zip(&[ZipFile::new("b", "kernel")]);
    let local = inner.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    let quoted = [
        ZipFile::new("a", &inner[..local]),
        ZipFile::new("b", "kernel").with(|file| file.offset = Some(31)),
    ];
    assert_refused!(refused_zip(&quoted).await, Reason::Overlap);
}

#[tokio::test]
async fn zip_that_two_readers_read_differently_is_refused() {
    let file = || ZipFile::new("harmless.txt", "text");
    let renamed = file().with(|file| file.local_name = Some("harmful.exe".into()));
    assert_refused!(refused_zip(&[renamed]).await, Reason::Mismatch { .. });
    let method = file().with(|file| file.local_method = Some(8));
    assert_refused!(refused_zip(&[method]).await, Reason::Mismatch { .. });
    let size = file().with(|file| file.local_size = Some(3));
    assert_refused!(refused_zip(&[size]).await, Reason::Mismatch { .. });
    let nowhere = file().with(|file| file.offset = Some(7));
    assert_refused!(refused_zip(&[nowhere]).await, Reason::Mismatch { .. });
    let mut count = zip(&[file(), ZipFile::new("b", "2")]);
    let at = count.len() - 22 + 10;
    count[at] = 1;
    assert_refused!(
        Rig::with("a.zip", &count).refused("a.zip", &[]).await,
        Reason::Mismatch { .. }
    );
    let mut before = b"PK\x03\x04 something before".to_vec();
    before.extend(zip(&[file()]));
    assert_refused!(
        Rig::with("a.zip", &before).refused("a.zip", &[]).await,
        Reason::Mismatch { .. }
    );
    let mut twice = zip(&[file()]);
    let second = zip(&[ZipFile::new("other.txt", "other")]);
    twice.extend(second);
    assert_refused!(
        Rig::with("a.zip", &twice).refused("a.zip", &[]).await,
        Reason::Mismatch { .. }
    );
    let strong = file().with(|file| file.flags |= 0x40);
    assert_refused!(refused_zip(&[strong]).await, Reason::Method { .. });
    let method = file().with(|file| file.method = 1);
    assert_refused!(refused_zip(&[method]).await, Reason::Method { .. });
}

#[tokio::test]
async fn what_is_no_archive_or_half_of_one_is_refused() {
    assert_refused!(
        Rig::with("a.zip", b"").refused("a.zip", &[]).await,
        Reason::UnknownFormat
    );
    assert_refused!(
        Rig::with("a.7z", b"hello").refused("a.7z", &[]).await,
        Reason::UnknownFormat
    );
    assert_refused!(
        Rig::with("a.tgz", &gzip(b"no tar")).refused("a.tgz", &[]).await,
        Reason::UnknownFormat
    );
    let whole = zip(&[ZipFile::new("a", "1")]);
    let half = &whole[..whole.len() - 9];
    assert_refused!(
        Rig::with("a.zip", half).refused("a.zip", &[]).await,
        Reason::Damaged { .. }
    );
    let whole = tar(&[entry("a", b'0', [1; 2000])]);
    assert_refused!(
        Rig::with("a.tar", &whole[..1500]).refused("a.tar", &[]).await,
        Reason::Size { .. }
    );
    let mut flipped = gzip(&whole);
    let last = flipped.len() - 6;
    flipped[last] ^= 1;
    assert_refused!(
        Rig::with("a.tgz", &flipped).refused("a.tgz", &[]).await,
        Reason::Damaged { .. }
    );
    let mut damaged = tar(&[entry("a", b'0', "1"), entry("b", b'0', "2")]);
    damaged[1024 + 3] ^= 1;
    assert_refused!(
        Rig::with("a.tar", &damaged).refused("a.tar", &[]).await,
        Reason::Damaged { .. }
    );
    assert_refused!(
        Rig::with("a.7z", b"7z\xbc\xaf\x27\x1c\0\x04")
            .refused("a.7z", &[])
            .await,
        Reason::Damaged { .. }
    );
    assert_refused!(
        Rig::with("a.rar", b"Rar!\x1a\x07\x01\0\0\0")
            .refused("a.rar", &[])
            .await,
        Reason::Damaged { .. }
    );
}

async fn refused_tar(entries: &[crate::tar_writer::TarEntry]) -> Reason {
    Rig::with("a.tar", &tar(entries)).refused("a.tar", &[]).await
}

#[tokio::test]
async fn entries_of_tar_that_are_no_files_are_refused() {
    assert_refused!(refused_tar(&[entry("a", b'1', "")]).await, Reason::HardLink);
    assert_refused!(refused_tar(&[entry("a", b'2', "")]).await, Reason::SymbolicLink);
    assert_refused!(refused_tar(&[entry("a", b'3', "")]).await, Reason::SpecialFile);
    assert_refused!(refused_tar(&[entry("a", b'4', "")]).await, Reason::SpecialFile);
    assert_refused!(refused_tar(&[entry("a", b'6', "")]).await, Reason::SpecialFile);
    assert_refused!(refused_tar(&[entry("a", b'S', "")]).await, Reason::Kind { .. });
    assert_refused!(refused_tar(&[entry("a", b'V', "")]).await, Reason::Kind { .. });
    assert_refused!(
        refused_tar(&[entry("a", b'5', "content")]).await,
        Reason::Mismatch { .. }
    );
    // What a link would be used for.
    let through = [entry("a", b'2', ""), entry("a/b", b'0', "1")];
    assert_refused!(refused_tar(&through).await, Reason::SymbolicLink);
}

#[tokio::test]
async fn extended_headers_of_tar_do_not_evade_the_checks() {
    let file = || entry("a", b'0', "1");
    assert_refused!(
        refused_tar(&[pax(b'x', "path", "/etc/x"), file()]).await,
        Reason::Absolute
    );
    assert_refused!(
        refused_tar(&[entry("L", b'L', "../x\0"), file()]).await,
        Reason::ParentDirectory
    );
    assert_refused!(
        refused_tar(&[pax(b'x', "size", "-1"), file()]).await,
        Reason::Damaged { .. }
    );
    assert_refused!(
        refused_tar(&[pax(b'x', "size", "5000"), file()]).await,
        Reason::Size { .. }
    );
    assert_refused!(
        refused_tar(&[pax(b'x', "GNU.sparse.major", "1"), file()]).await,
        Reason::Kind { .. }
    );
    assert_refused!(
        refused_tar(&[pax(b'g', "path", "b"), file()]).await,
        Reason::Kind { .. }
    );
    assert_refused!(
        refused_tar(&[entry("x", b'x', "not a record"), file()]).await,
        Reason::Damaged { .. }
    );
    assert_refused!(
        refused_tar(&[sized("L", b'L', b"x", 1 << 30), file()]).await,
        Reason::Damaged { .. }
    );
    assert_refused!(
        refused_tar(&[sized("a", b'0', b"1", 1 << 32)]).await,
        Reason::TotalSize { .. }
    );
}

#[tokio::test]
async fn what_follows_the_end_of_a_tar_archive_is_refused() {
    let mut archive = tar(&[entry("a", b'0', "1")]);
    let end = archive.len() - 1024;
    assert!(archive[end..].iter().all(|byte| *byte == 0));
    let hidden = tar(&[entry("hidden", b'0', "2")]);
    // A reader that skips a lone block of zeros finds another entry behind it.
    let lone = [&archive[..end + 512], &hidden].concat();
    assert_refused!(Rig::with("a.tar", &lone).refused("a.tar", &[]).await, Reason::AfterEnd);
    assert_refused!(
        Rig::with("a.tgz", &gzip(&lone)).refused("a.tgz", &[]).await,
        Reason::AfterEnd
    );
    let after = [archive.as_slice(), &hidden].concat();
    assert_refused!(Rig::with("a.tar", &after).refused("a.tar", &[]).await, Reason::AfterEnd);
    archive.extend(vec![0; 20 * 512]);
    assert_eq!(Rig::with("a.tar", &archive).content("a.tar", &[]).await.len(), 1);
}

/// All directories down to it are open while it is removed for the next password.
#[tokio::test]
async fn the_deepest_directories_are_removed_after_a_wrong_password() {
    let deep = ZipFile::new(format!("{}x", "d/".repeat(31)), "1");
    let encrypted = ZipFile::new("secret", "0123456789abcdef").with(|file| file.flags |= 1);
    let rig = Rig::with("a.zip", &zip(&[deep, encrypted]));
    assert_eq!(rig.refused("a.zip", &[]).await, Reason::Encrypted);
}
