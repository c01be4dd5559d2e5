//! Archives as programs write them.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, time::Duration, time::SystemTime};

use post::{Reason, is_archive, volumes};

use crate::{
    rig::{Rig, files, names, run_program},
    tar_writer::{entry, gzip, pax, tar},
    zip_writer::{ZipFile, zip},
};

/// A directory with what archives usually hold, in `rig`'s root, and its files.
fn sample(rig: &Rig) -> std::path::PathBuf {
    let root = rig.root.path().join("source");
    fs::create_dir_all(root.join("set/empty")).unwrap();
    fs::create_dir_all(root.join("set/.hidden/deep")).unwrap();
    fs::write(root.join("set/text.txt"), "some text\n".repeat(5000)).unwrap();
    let next = |n: &u64| Some(n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    let noise = std::iter::successors(Some(1), next).take(300_000);
    let noise: Vec<u8> = noise.map(|n| (n >> 56) as u8).collect();
    fs::write(root.join("set/noise.bin"), noise).unwrap();
    fs::write(root.join("set/.hidden/deep/größe 日本.txt"), "x").unwrap();
    fs::write(root.join("set/run.sh"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(root.join("set/run.sh"), fs::Permissions::from_mode(0o6755)).unwrap();
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000);
    fs::File::open(root.join("set/text.txt"))
        .unwrap()
        .set_modified(old)
        .unwrap();
    root
}

/// Packs the sample with a program and expects it back.
async fn round_trip(archive: &str, line: &[&str]) {
    let rig = Rig::new();
    let source = sample(&rig);
    let path = rig.downloads().join(archive);
    let line: Vec<_> = line
        .iter()
        .map(|word| word.replace("{}", path.to_str().unwrap()))
        .collect();
    let line: Vec<_> = line.iter().map(String::as_str).collect();
    run_program(&source, &line);
    let unpacked = rig.unpack(archive, &["wrong", "secret"]).await.unwrap();
    assert_eq!(unpacked.placed.name, "set", "the only directory appears as such");
    let set = rig.downloads().join("set");
    assert_eq!(files(&set), files(&source.join("set")), "{archive}");
    rig.assert_tidy();
    check_attributes(&set);
    assert!(
        unpacked.originals.iter().all(|original| original.path.exists()),
        "the archive is kept"
    );
    // A taken name is numbered.
    let again = rig.unpack(archive, &["secret"]).await.unwrap();
    assert_eq!(again.placed.name, "set (1)");
    post::remove_originals(&again.originals).unwrap();
    post::remove_originals(&again.originals).unwrap();
    assert_eq!(names(&rig.downloads()), ["set", "set (1)"]);
}

fn check_attributes(set: &Path) {
    let mode = |name: &str| fs::metadata(set.join(name)).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode("run.sh") & 0o7000, 0, "no setuid");
    assert_eq!(mode("text.txt") & 0o111, 0);
    let modified = fs::metadata(set.join("text.txt")).unwrap().modified().unwrap();
    let modified = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    assert!(modified.abs_diff(1_600_000_000) <= 2, "{modified}");
}

#[tokio::test]
async fn zip_is_unpacked() {
    round_trip("a.zip", &["zip", "-qr", "{}", "set"]).await;
    round_trip("b.zip", &["zip", "-qr0", "{}", "set"]).await;
    round_trip("old cipher.zip", &["zip", "-qrP", "secret", "{}", "set"]).await;
    round_trip("split.zip", &["zip", "-qrs", "64k", "{}", "set"]).await;
    for method in ["Deflate", "BZip2", "LZMA"] {
        let method = format!("-mm={method}");
        round_trip("m.zip", &["7zz", "a", "-tzip", &method, "{}", "set"]).await;
    }
    for strength in ["AES128", "AES192", "AES256"] {
        let strength = format!("-mem={strength}");
        round_trip("aes.zip", &["7zz", "a", "-tzip", "-psecret", &strength, "{}", "set"]).await;
    }
}

#[tokio::test]
async fn numbered_volumes_are_one_archive() {
    for format in ["zip", "7z"] {
        let rig = Rig::new();
        let source = sample(&rig);
        let path = rig.downloads().join(format!("big.{format}"));
        run_program(
            &source,
            &[
                "7zz",
                "a",
                &format!("-t{format}"),
                "-v60k",
                path.to_str().unwrap(),
                "set",
            ],
        );
        let first = format!("big.{format}.001");
        let third = format!("big.{format}.003");
        assert!(is_archive(&first) && !is_archive(&third));
        let unpacked = rig.unpack(&third, &[]).await.unwrap();
        assert!(unpacked.originals.len() > 3 && unpacked.originals[0].path.ends_with(&first));
        assert_eq!(files(&rig.downloads().join("set")), files(&source.join("set")));
        fs::remove_file(rig.downloads().join(format!("big.{format}.002"))).unwrap();
        let reason = rig.refused(&first, &[]).await;
        assert!(
            matches!(reason, Reason::MissingVolume { ref name } if name.ends_with(".002")),
            "{reason:?}"
        );
    }
}

#[tokio::test]
async fn tar_is_unpacked_whatever_compresses_it() {
    for format in ["gnu", "ustar", "pax"] {
        round_trip("a.tar", &["tar", "--format", format, "-cf", "{}", "set"]).await;
    }
    for (ending, flag) in [("gz", "-z"), ("bz2", "-j"), ("xz", "-J"), ("zst", "--zstd")] {
        round_trip(&format!("a.tar.{ending}"), &["tar", flag, "-cf", "{}", "set"]).await;
    }
}

#[tokio::test]
async fn seven_zip_is_unpacked() {
    round_trip("a.7z", &["7zz", "a", "{}", "set"]).await;
    for method in ["LZMA", "PPMd", "BZip2", "Deflate", "Copy"] {
        let method = format!("-m0={method}");
        round_trip("m.7z", &["7zz", "a", &method, "{}", "set"]).await;
    }
    round_trip("content.7z", &["7zz", "a", "-psecret", "{}", "set"]).await;
    round_trip("names.7z", &["7zz", "a", "-psecret", "-mhe=on", "{}", "set"]).await;
}

#[tokio::test]
async fn links_in_seven_zip_and_tar_are_refused() {
    let rig = Rig::new();
    let source = sample(&rig);
    std::os::unix::fs::symlink("/etc/passwd", source.join("set/link")).unwrap();
    let path = |name: &str| rig.downloads().join(name).to_str().unwrap().to_owned();
    run_program(&source, &["7zz", "a", "-snl", &path("a.7z"), "set"]);
    run_program(&source, &["tar", "-cf", &path("a.tar"), "set"]);
    run_program(&source, &["zip", "-qry", &path("a.zip"), "set"]);
    for name in ["a.7z", "a.tar", "a.zip"] {
        assert_eq!(rig.refused(name, &[]).await, Reason::SymbolicLink, "{name}");
    }
}

#[tokio::test]
async fn without_the_right_password_nothing_appears() {
    let rig = Rig::new();
    let source = sample(&rig);
    let path = |name: &str| rig.downloads().join(name).to_str().unwrap().to_owned();
    run_program(&source, &["zip", "-qrP", "secret", &path("old.zip"), "set"]);
    run_program(
        &source,
        &["7zz", "a", "-tzip", "-psecret", "-mem=AES256", &path("aes.zip"), "set"],
    );
    run_program(&source, &["7zz", "a", "-psecret", &path("content.7z"), "set"]);
    run_program(&source, &["7zz", "a", "-psecret", "-mhe=on", &path("names.7z"), "set"]);
    for name in ["old.zip", "aes.zip", "content.7z", "names.7z"] {
        assert_eq!(rig.refused(name, &[]).await, Reason::Encrypted, "{name}");
        assert_eq!(
            rig.refused(name, &["wrong", "Secret"]).await,
            Reason::WrongPassword,
            "{name}"
        );
    }
}

/// Made by the library's own writer; the content is `text.txt` and `dir/more.txt`.
#[tokio::test]
async fn rar_is_unpacked() {
    for (name, files) in [
        ("v5.rar", vec![("v5.rar", include_bytes!("../data/v5.rar").as_slice())]),
        ("v4.rar", vec![("v4.rar", include_bytes!("../data/v4.rar").as_slice())]),
        (
            "secret.rar",
            vec![("secret.rar", include_bytes!("../data/secret.rar").as_slice())],
        ),
        (
            "set.part2.rar",
            vec![
                ("set.part1.rar", include_bytes!("../data/set.part1.rar").as_slice()),
                ("set.part2.rar", include_bytes!("../data/set.part2.rar").as_slice()),
            ],
        ),
    ] {
        let rig = Rig::new();
        for (name, bytes) in files {
            fs::write(rig.downloads().join(name), bytes).unwrap();
        }
        let content = rig.content(name, &["wrong", "secret"]).await;
        assert_eq!(content["text.txt"], "some text\n".repeat(100).as_bytes(), "{name}");
        assert_eq!(content["dir/more.txt"], b"more", "{name}");
    }
}

#[tokio::test]
async fn tricks_in_rar_are_refused() {
    let up = Rig::with("a.rar", include_bytes!("../data/up.rar"));
    assert_eq!(up.refused("a.rar", &[]).await, Reason::ParentDirectory);
    let link = Rig::with("a.rar", include_bytes!("../data/link.rar"));
    assert_eq!(link.refused("a.rar", &[]).await, Reason::SymbolicLink);
    let secret = Rig::with("a.rar", include_bytes!("../data/secret.rar"));
    assert_eq!(secret.refused("a.rar", &[]).await, Reason::Encrypted);
    assert_eq!(secret.refused("a.rar", &["no"]).await, Reason::WrongPassword);
    let half = Rig::with("set.part1.rar", include_bytes!("../data/set.part1.rar"));
    let reason = half.refused("set.part1.rar", &[]).await;
    assert!(
        matches!(reason, Reason::MissingVolume { .. } | Reason::Damaged { .. }),
        "{reason:?}"
    );
}

#[tokio::test]
async fn what_has_no_common_directory_gets_one() {
    let archive = zip(&[
        ZipFile::new("a.txt", "1"),
        ZipFile::new("b/", ""),
        ZipFile::new("b\\c.txt", "2"),
    ]);
    let rig = Rig::with("My Files (2).tar.zip", &archive);
    let unpacked = rig.unpack("My Files (2).tar.zip", &[]).await.unwrap();
    assert_eq!(unpacked.placed.name, "My Files (2)");
    assert_eq!((unpacked.placed.files, unpacked.placed.bytes), (2, 2));
    let content = files(&rig.downloads().join("My Files (2)"));
    assert_eq!(content.keys().collect::<Vec<_>>(), ["a.txt", "b/", "b/c.txt"]);
    // A hidden directory does not stay hidden: it could look like one of ours.
    let rig = Rig::with("x.zip", &zip(&[ZipFile::new(".x.svcunpack-1/svcunpack.json", "{}")]));
    assert_eq!(rig.unpack("x.zip", &[]).await.unwrap().placed.name, "x.svcunpack-1");
}

#[tokio::test]
async fn names_are_made_safe_or_decoded() {
    let japanese = encoding_rs::SHIFT_JIS.encode("日本語のファイル名.txt").0.into_owned();
    let files = [
        ZipFile::new(japanese, "1").with(|file| file.flags = 0),
        ZipFile::new("what?.txt", "2"),
        ZipFile::new("movie.svcpart", "3"),
        ZipFile::new("gpj.\u{202e}exe", "4"),
        ZipFile::new("_", "5"),
        ZipFile::new("DIR/1", "6"),
        ZipFile::new("dir/2", "7"),
    ];
    let content = Rig::with("a.zip", &zip(&files)).content("a.zip", &[]).await;
    let expected = [
        "DIR/",
        "DIR/1",
        "DIR/2",
        "_",
        "gpj.exe",
        "movie.svcpart_",
        "what_.txt",
        "日本語のファイル名.txt",
    ];
    assert_eq!(content.keys().collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn headers_of_git_and_long_names_are_read() {
    let long = format!("dir/{}.txt", "n".repeat(150));
    let archive = tar(&[
        pax(b'g', "comment", "0123456789abcdef"),
        pax(b'x', "path", &long),
        entry("short", b'0', "1"),
        entry("././@LongLink", b'L', format!("{long}2\0")),
        entry("short", b'0', "2"),
    ]);
    let content = Rig::with("a.tar.gz", &gzip(&archive)).content("a.tar.gz", &[]).await;
    let names: Vec<_> = content.keys().collect();
    assert_eq!(names, [long.strip_prefix("dir/").unwrap(), &format!("{}2", &long[4..])]);
}

#[test]
fn volumes_are_found_by_their_names() {
    let of = |name: &str, names: &[&str]| {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        volumes(name, &names).map_err(|refusal| refusal.reason)
    };
    let rar = ["a.part01.rar", "a.part02.rar", "a.part10.rar", "b.part01.rar"];
    assert!(matches!(of("a.part02.rar", &rar), Err(Reason::MissingVolume { name }) if name == "a.part03.rar"));
    assert_eq!(of("b.part01.rar", &rar).unwrap(), ["b.part01.rar"]);
    let old = ["a.r01", "a.rar", "a.r00", "a.txt"];
    assert_eq!(of("a.rar", &old).unwrap(), ["a.rar", "a.r00", "a.r01"]);
    assert_eq!(of("A.R00", &["A.RAR", "A.R00"]).unwrap(), ["A.RAR", "A.R00"]);
    assert_eq!(
        of("a.z01", &["a.zip", "a.z02", "a.z01"]).unwrap(),
        ["a.z01", "a.z02", "a.zip"]
    );
    assert_eq!(of("a.zip", &["a.zip"]).unwrap(), ["a.zip"]);
    assert_eq!(
        of("a.tar.gz.001", &["a.tar.gz.002", "a.tar.gz.001"]).unwrap(),
        ["a.tar.gz.001", "a.tar.gz.002"]
    );
    assert_eq!(of("photo.001", &["photo.001", "photo.002"]).unwrap(), ["photo.001"]);
    assert!(is_archive("a.rar") && is_archive("A.ZIP") && is_archive("a.part1.rar") && is_archive("x.tgz"));
    assert!(!is_archive("a.part2.rar") && !is_archive("a.r00") && !is_archive("a.z01") && !is_archive("a.iso"));
    assert_eq!(post::directory_name("a b.part01.rar").as_str(), "a b");
    assert_eq!(post::directory_name("x.tar.zst").as_str(), "x");
    assert_eq!(post::directory_name("x.7z.001").as_str(), "x");
}
