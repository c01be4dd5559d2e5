use proptest::prelude::*;

use super::*;

fn origin() -> Origin {
    Origin {
        source: "ab".into(),
        total_bytes: Some(100),
        etag: Some("\"x\"".into()),
        last_modified: None,
        lent_bytes: None,
    }
}

fn journal_bytes(records: &[Record], boot: &str) -> Vec<u8> {
    let json = serde_json::to_vec(&Header {
        origin: origin(),
        boot: Some(boot.into()),
    })
    .unwrap();
    let mut bytes = MAGIC.to_vec();
    bytes.extend(u32::try_from(json.len()).unwrap().to_le_bytes());
    bytes.extend(crc32fast::hash(&json).to_le_bytes());
    bytes.extend(json);
    for record in records {
        // A test says "everything so far" with the largest number.
        let record = match record {
            Record::Synced(u64::MAX) => Record::Synced(bytes.len() as u64),
            other => *other,
        };
        bytes.extend(record.encode());
    }
    bytes
}

fn written(start: u64, end: u64) -> Record {
    Record::Written(ByteRange::new(start, end))
}

fn done(bytes: &[u8], boot: &str) -> Vec<ByteRange> {
    parse(bytes, Some(boot)).unwrap().0.done.iter().collect()
}

#[test]
fn after_a_kill_every_record_counts() {
    let bytes = journal_bytes(&[written(0, 10), Record::Synced(u64::MAX), written(20, 30)], "one");
    assert_eq!(done(&bytes, "one"), [ByteRange::new(0, 10), ByteRange::new(20, 30)]);
}

#[test]
fn after_a_power_cut_only_synced_records_count() {
    let bytes = journal_bytes(&[written(0, 10), Record::Synced(u64::MAX), written(20, 30)], "one");
    assert_eq!(done(&bytes, "two"), [ByteRange::new(0, 10)]);
    assert!(parse(&bytes, None).unwrap().0.done.iter().eq([ByteRange::new(0, 10)]));
}

#[test]
fn a_sync_covers_only_what_was_recorded_before_it_began() {
    let before = journal_bytes(&[written(0, 10)], "one");
    let bytes = journal_bytes(
        &[written(0, 10), written(20, 30), Record::Synced(before.len() as u64)],
        "one",
    );
    assert_eq!(done(&bytes, "two"), [ByteRange::new(0, 10)]);
}

#[test]
fn dropped_bytes_are_not_believed_again() {
    let bytes = journal_bytes(&[written(0, 30), Record::Dropped(ByteRange::new(10, 20))], "one");
    assert_eq!(done(&bytes, "one"), [ByteRange::new(0, 10), ByteRange::new(20, 30)]);
}

#[test]
fn a_mark_holds_after_a_kill_and_after_a_power_cut_if_it_was_synced() {
    let mark = |end| Mark { end, segments: end * 7 };
    let records = [
        Record::Joined(mark(10)),
        Record::Synced(u64::MAX),
        Record::Joined(mark(20)),
    ];
    let bytes = journal_bytes(&records, "one");
    for (boot, end) in [("one", 20), ("two", 10)] {
        let begun = parse(&bytes, Some(boot)).unwrap().0;
        assert_eq!(begun.mark, Some(mark(end)));
        assert!(begun.done.iter().eq([ByteRange::new(0, end)]));
    }
}

#[test]
fn a_journal_survives_being_reopened_and_appended_to() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f.svcpart.journal");
    let mut journal = Journal::create(&path, &origin(), &RangeSet::new()).unwrap();
    journal.written(ByteRange::new(0, 5)).unwrap();
    drop(journal);
    // A torn record, as a crash leaves it.
    OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap()
        .write_all(&[1, 2, 3])
        .unwrap();
    let (mut journal, recorded) = Journal::open(&path, |_| true).unwrap().unwrap();
    assert_eq!((recorded.origin, recorded.done.len()), (origin(), 5));
    journal.written(ByteRange::new(5, 9)).unwrap();
    drop(journal);
    assert_eq!(Journal::open(&path, |_| true).unwrap().unwrap().1.done.len(), 9);
}

#[test]
fn what_is_no_journal_is_not_believed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f.svcpart.journal");
    assert!(Journal::open(&path, |_| true).unwrap().is_none());
    std::fs::write(&path, b"SVCJ1\nnonsense").unwrap();
    assert!(Journal::open(&path, |_| true).unwrap().is_none());
}

#[test]
fn a_journal_that_we_cannot_have_written_is_no_journal() {
    let with = |change: fn(&mut Origin)| {
        let mut header = Header {
            origin: origin(),
            boot: Some("one".into()),
        };
        change(&mut header.origin);
        let json = serde_json::to_vec(&header).unwrap();
        let mut bytes = MAGIC.to_vec();
        bytes.extend(u32::try_from(json.len()).unwrap().to_le_bytes());
        bytes.extend(crc32fast::hash(&json).to_le_bytes());
        bytes.extend(json);
        bytes.extend(written(0, 50).encode());
        parse(&bytes, Some("one"))
    };
    assert!(with(|_| {}).is_some());
    assert!(with(|origin| origin.etag = Some("\"x\"\r\nX-Evil: 1".into())).is_none());
    assert!(with(|origin| origin.etag = Some("\"x\r\n y\"".into())).is_none());
    assert!(with(|origin| origin.last_modified = Some("Sun, 06 Nov 1994\r\nX: 1".into())).is_none());
    assert!(with(|origin| origin.source = "ab\n".into()).is_none());
    assert!(
        with(|origin| origin.total_bytes = Some(49)).is_none(),
        "more bytes than the file has"
    );
}

proptest! {
    #[test]
    fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ignored = parse(&bytes, Some("one"));
    }

    #[test]
    fn a_damaged_journal_never_claims_more(at in 0usize..400, value: u8) {
        let records: Vec<_> = (0..10).map(|n| written(n * 10, n * 10 + 5)).collect();
        let mut bytes = journal_bytes(&records, "one");
        let whole = parse(&bytes, Some("one")).unwrap().0.done;
        let at = at % bytes.len();
        bytes[at] = value;
        if let Some((recorded, _)) = parse(&bytes, Some("one")) {
            prop_assert!(recorded.done.iter().all(|range| whole.covers(range)));
        }
    }
}
