use proptest::prelude::*;

use super::*;

fn check(input: &str, expected: &str) {
    assert_eq!(FileName::sanitise(input).as_str(), expected, "of {input:?}");
}

#[test]
fn separators_and_climbing_cannot_leave_the_directory() {
    check("../../etc/passwd", "_.._etc_passwd");
    check("..\\..\\boot.ini", "_.._boot.ini");
    check("/abs/path", "_abs_path");
    check("C:\\x.exe", "C__x.exe");
    check("..", "download");
    check(".", "download");
    check("///", "download");
    check("", "download");
}

#[test]
fn control_and_invisible_characters_are_taken_out() {
    check("a\0b\nc\u{1b}[31m.txt", "a_b_c_[31m.txt");
    check("photo\u{202e}gpj.exe", "photogpj.exe");
}

#[test]
fn reserved_device_names_are_made_plain() {
    check("CON", "_CON");
    check("nul.txt", "_nul.txt");
    check("com1.tar.gz", "_com1.tar.gz");
    check("LPT³", "_LPT³");
    check("console.txt", "console.txt");
    check("com10", "com10");
}

#[test]
fn dots_and_spaces_at_the_ends_go() {
    check(" name. . ", "name");
    check(".hidden", "hidden");
}

#[test]
fn names_are_composed() {
    check("e\u{301}te\u{301}.txt", "été.txt");
}

#[test]
fn long_names_keep_their_extension() {
    let name = FileName::sanitise(&format!("{}.tar.gz", "ü".repeat(300)));
    assert!(name.as_str().len() <= MAX_NAME_BYTES && name.as_str().ends_with("ü.tar.gz"));
    let numbered = name.numbered(12);
    assert!(numbered.as_str().len() <= MAX_NAME_BYTES && numbered.as_str().ends_with(" (12).tar.gz"));
}

#[test]
fn numbers_go_before_the_extension() {
    assert_eq!(FileName::sanitise("a.tar.gz").numbered(1).as_str(), "a (1).tar.gz");
    assert_eq!(FileName::sanitise("a").numbered(2).as_str(), "a (2)");
    assert_eq!(FileName::sanitise("v1. final").numbered(2).as_str(), "v1. final (2)");
}

#[test]
fn a_number_is_counted_on_and_a_year_is_none() {
    let numbered = |name: &str, n| FileName::sanitise(name).numbered(n).as_str().to_owned();
    assert_eq!(numbered("a (1).bin", 1), "a (2).bin");
    assert_eq!(numbered("a (1).bin", 2), "a (3).bin");
    assert_eq!(numbered("a (9).tar.gz", 1), "a (10).tar.gz");
    assert_eq!(numbered("Film (1999).mkv", 1), "Film (1999) (1).mkv");
    assert_eq!(numbered("a (007).bin", 1), "a (007) (1).bin");
    assert_eq!(numbered("a (x).bin", 1), "a (x) (1).bin");
    assert_eq!(numbered("a(1).bin", 1), "a(1) (1).bin");
}

#[test]
fn a_directory_has_its_number_at_its_end() {
    let second = |name: &str| FileName::sanitise(name).directories().nth(1).unwrap().to_string();
    assert_eq!(second("v1.2"), "v1.2 (1)");
    assert_eq!(second("a (2)"), "a (3)");
    let long = second(&"x".repeat(300));
    assert!(long.len() <= MAX_NAME_BYTES && long.ends_with("x (1)"), "{long}");
}

#[test]
fn no_name_from_outside_ends_like_a_part_file_or_a_journal() {
    check("x.svcpart", "x.svcpart_");
    check("x.svcpart.journal", "x.svcpart.journal_");
    check("x.svcpart.journal-new", "x.svcpart.journal-new_");
    check("x.SvcPart.JOURNAL", "x.SvcPart.JOURNAL_");
    check("x.svcpart. .", "x.svcpart_");
    check("x.svc\u{200d}part", "x.svcpart_");
    check("x.\u{17f}vcpart", "x.\u{17f}vcpart_");
    check("x.svcpart\u{fe0f}", "x.svcpart\u{fe0f}_");
    check("x.svc\u{ad}part", "x.svc\u{ad}part_");
    check("x.svcpart.zip", "x.svcpart.zip");
    let long = FileName::sanitise(&format!("{}.svcpart. not an extension", "x".repeat(192)));
    assert!(
        long.as_str().len() <= MAX_NAME_BYTES && !long.as_str().ends_with(".svcpart"),
        "{long}"
    );
}

proptest! {
    #[test]
    fn no_name_is_taken_for_one_of_ours(
        stem in "[a-z. ()]{0,12}|[a-z]{185,195}",
        tail in "[.][sS\u{17f}][vV]\u{200b}?[cC]part([.]journal(-new)?)?[. \u{fe0f}\u{ad}]{0,2}( x y)?",
        n in 1_u32..9999,
    ) {
        let name = FileName::sanitise(&format!("{stem}{tail}"));
        prop_assert!(!ends_like_part_file(name.as_str()), "{name}");
        prop_assert!(!ends_like_part_file(name.numbered(n).as_str()), "{name}");
        prop_assert!(name.as_str().len() <= MAX_NAME_BYTES);
        prop_assert_eq!(&FileName::sanitise(name.as_str()), &name);
    }

    #[test]
    fn every_name_is_one_safe_component(text in any::<String>()) {
        let sanitised = FileName::sanitise(&text);
        let name = sanitised.as_str();
        prop_assert!(!name.is_empty() && name.len() <= MAX_NAME_BYTES);
        prop_assert!(!name.chars().any(is_forbidden));
        prop_assert!(name != "." && name != ".." && !name.ends_with(['.', ' ']));
        prop_assert!(!is_reserved(name));
        prop_assert_eq!(std::path::Path::new(name).components().count(), 1);
        prop_assert_eq!(&FileName::sanitise(name), &sanitised, "sanitising twice changes nothing");
    }
}
