use super::*;
use crate::{bitfield::Bitfield, storage::places::Stamp};

const PIECE: u64 = 32 * 1024;

/// A torrent of files with these sizes, with the hashes of `bytes`.
fn info(sizes: &[u64], bytes: &[u8]) -> Info {
    let mut raw = b"d5:filesl".to_vec();
    for (index, size) in sizes.iter().enumerate() {
        raw.extend(format!("d6:lengthi{size}e4:pathl1:d{}:f{index}ee", 1 + index.to_string().len()).into_bytes());
    }
    let hashes: Vec<u8> = bytes
        .chunks(usize::try_from(PIECE).unwrap())
        .flat_map(|piece| Sha1::digest(piece).to_vec())
        .collect();
    raw.extend(format!("e4:name3:top12:piece lengthi{PIECE}e6:pieces{}:", hashes.len()).into_bytes());
    raw.extend(hashes);
    raw.push(b'e');
    Info::parse(&raw).unwrap()
}

fn bytes(count: u64) -> Vec<u8> {
    (0..count)
        .map(|byte| u8::try_from((byte * 7 + byte / 251) % 256).unwrap())
        .collect()
}

fn storage(directory: &Path, info: &Info) -> Storage {
    let target = Target {
        directory: directory.to_owned(),
        name: None,
        paths: Vec::new(),
    };
    Storage::new(
        info.clone(),
        &target,
        Arc::default(),
        Places::new("top".to_owned(), info),
    )
}

fn names(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(directory_at) = pending.pop() {
        for entry in fs::read_dir(&directory_at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else {
                found.push(path.strip_prefix(directory).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_file_has_its_name_only_when_it_is_finished() {
    let directory = tempfile::tempdir().unwrap();
    let all = bytes(100_000);
    let info = info(&[40_000, 0, 60_000], &all);
    let storage = storage(directory.path(), &info);
    for (index, piece) in all.chunks(usize::try_from(PIECE).unwrap()).enumerate() {
        assert!(storage.is_right(u32::try_from(index).unwrap(), piece));
        storage.write(index as u64 * PIECE, piece).unwrap();
    }
    assert_eq!(names(directory.path()), ["top/d/f0.svcpart", "top/d/f2.svcpart"]);
    storage.finish_file(0).unwrap();
    assert!(storage.is_to_be_empty(1) && !storage.is_to_be_empty(2));
    storage.finish_file(1).unwrap();
    assert_eq!(names(directory.path()), ["top/d/f0", "top/d/f1", "top/d/f2.svcpart"]);
    let mut read = vec![0; all.len()];
    assert!(storage.read(0, &mut read).unwrap());
    assert_eq!(read, all);
    assert!(storage.is_right_on_disk(1, &mut Vec::new()).unwrap());
    storage.reopen_file(0).unwrap();
    assert_eq!(
        names(directory.path()),
        ["top/d/f0.svcpart", "top/d/f1", "top/d/f2.svcpart"]
    );
    storage.delete().unwrap();
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn bytes_of_unwanted_files_are_kept_in_the_parts_file_and_move_when_they_are_wanted() {
    let directory = tempfile::tempdir().unwrap();
    let all = bytes(100_000);
    let info = info(&[40_000, 60_000], &all);
    let storage = storage(directory.path(), &info);
    let mut have = Bitfield::new(4);
    storage.select(&[true, false], &have).unwrap();
    storage.write(PIECE, &all[32_768..65_536]).unwrap();
    have.insert(1);
    let parts = format!(".{}.svcparts", info.hash());
    assert_eq!(names(directory.path()), [parts.as_str(), "top/d/f0.svcpart"]);
    assert!(storage.is_right_on_disk(1, &mut Vec::new()).unwrap());
    storage.select(&[true, true], &have).unwrap();
    assert!(storage.is_right_on_disk(1, &mut Vec::new()).unwrap());
    assert!(names(directory.path()).contains(&"top/d/f1.svcpart".to_owned()));
    assert_eq!(storage.select(&[true, true], &have).unwrap(), [] as [u32; 0]);
    storage.drop_parts(&[true, true]).unwrap();
    assert_eq!(names(directory.path()), ["top/d/f0.svcpart", "top/d/f1.svcpart"]);
    storage.drop_parts(&[true, false]).unwrap();
    assert_eq!(names(directory.path()), ["top/d/f0.svcpart"]);
    assert_eq!(
        storage.select(&[true, true], &have).unwrap(),
        [1],
        "what was removed is lost"
    );
}

#[test]
fn a_name_that_was_taken_meanwhile_is_numbered() {
    let directory = tempfile::tempdir().unwrap();
    let all = bytes(1000);
    let info = info(&[1000], &all);
    let storage = storage(directory.path(), &info);
    storage.write(0, &all).unwrap();
    fs::write(directory.path().join("top/d/f0"), b"the user's").unwrap();
    storage.finish_file(0).unwrap();
    assert_eq!(names(directory.path()), ["top/d/f0", "top/d/f0 (1)"]);
    assert_eq!(fs::read(directory.path().join("top/d/f0")).unwrap(), b"the user's");
    assert_eq!(storage.places().final_relative(&info, 0), "top/d/f0 (1)");
}

#[cfg(unix)]
#[test]
fn symbolic_links_are_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let all = bytes(1000);
    let info = info(&[1000], &all);
    let storage = storage(directory.path(), &info);
    fs::create_dir(directory.path().join("top")).unwrap();
    std::os::unix::fs::symlink(outside.path(), directory.path().join("top/d")).unwrap();
    assert!(storage.write(0, &all).is_err());
    fs::remove_file(directory.path().join("top/d")).unwrap();
    fs::create_dir(directory.path().join("top/d")).unwrap();
    let victim = outside.path().join("victim");
    fs::write(&victim, b"old").unwrap();
    std::os::unix::fs::symlink(&victim, directory.path().join("top/d/f0.svcpart")).unwrap();
    assert!(storage.write(0, &all).is_err());
    assert_eq!(fs::read(&victim).unwrap(), b"old");
}

#[test]
fn files_and_the_top_can_be_renamed_before_and_after_they_are_finished() {
    let directory = tempfile::tempdir().unwrap();
    let all = bytes(2000);
    let info = info(&[1000, 1000], &all);
    let storage = storage(directory.path(), &info);
    storage.write(0, &all).unwrap();
    storage.rename(0, "else/where").unwrap();
    storage.rename_top(&FileName::sanitise("other")).unwrap();
    storage.finish_file(0).unwrap();
    assert_eq!(names(directory.path()), ["other/d/f1.svcpart", "other/else/where"]);
    storage.rename(0, "third").unwrap();
    assert_eq!(names(directory.path()), ["other/d/f1.svcpart", "other/third"]);
    for path in ["../x", "", "/x", "a//b", "d/f1", "third", "D/F1"] {
        assert!(storage.rename(0, path).is_err(), "{path:?}");
    }
    let mut read = vec![0; all.len()];
    assert!(storage.read(0, &mut read).unwrap());
    assert_eq!(read, all);
}

#[test]
fn few_files_are_open_however_many_there_are() {
    let directory = tempfile::tempdir().unwrap();
    let sizes = vec![100; 500];
    let all = bytes(50_000);
    let info = info(&sizes, &all);
    let storage = storage(directory.path(), &info);
    storage.write(0, &all).unwrap();
    assert!(storage.handles.len() <= 128);
    let mut read = vec![0; all.len()];
    assert!(storage.read(0, &mut read).unwrap());
    assert_eq!(read, all);
    storage.close();
    assert_eq!(storage.handles.len(), 0);
    assert_eq!(
        storage
            .stamps()
            .iter()
            .filter(|stamp| **stamp != Stamp::default())
            .count(),
        500
    );
}

#[test]
fn a_taken_top_is_numbered() {
    let directory = tempfile::tempdir().unwrap();
    let info = info(&[10], &bytes(10));
    let target = Target {
        directory: directory.path().to_owned(),
        name: None,
        paths: Vec::new(),
    };
    assert_eq!(free_top(&info, &target).unwrap(), "top");
    fs::create_dir(directory.path().join("top")).unwrap();
    assert_eq!(free_top(&info, &target).unwrap(), "top (1)");
    let named = Target {
        name: Some(FileName::sanitise("top")),
        ..target
    };
    assert_eq!(free_top(&info, &named).unwrap_err().kind, FailureKind::Exists);
}
