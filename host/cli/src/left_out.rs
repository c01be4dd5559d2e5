//! What a list of a plugin leaves out, for people. Pure.

use command::amount::counted;
use protocol::LeftOutDto;

/// What a list leaves out, as a sentence.
pub(crate) fn line(left_out: &LeftOutDto) -> String {
    let LeftOutDto { kind, name, count } = left_out;
    let some = |what: &str| match count {
        0 => format!("{what}s"),
        count => counted(usize::try_from(*count).unwrap_or(usize::MAX), what),
    };
    let place = if name.is_empty() {
        String::new()
    } else {
        format!(" in {name}")
    };
    match kind.as_str() {
        "unreadable" if name.is_empty() => format!("left out: {} that cannot be read", some("folder")),
        "unreadable" => format!("left out: {name}, which cannot be read"),
        "tooManyFiles" => format!("left out: {}{place}, beyond what is listed", some("more file")),
        "tooManyFolders" => format!("left out: {}{place}, beyond what is read", some("more folder")),
        "tooDeep" => format!("left out: {}{place}, too deep in other folders", some("folder")),
        other => format!("left out: {other} {name} ({count})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_a_sentence() {
        let said = |kind: &str, name: &str, count| {
            line(&LeftOutDto {
                kind: kind.into(),
                name: name.into(),
                count,
            })
        };
        assert_eq!(said("unreadable", "a", 1), "left out: a, which cannot be read");
        assert_eq!(said("unreadable", "", 2), "left out: 2 folders that cannot be read");
        assert_eq!(
            said("tooManyFiles", "", 0),
            "left out: more files, beyond what is listed"
        );
        assert_eq!(
            said("tooManyFolders", "a", 1),
            "left out: 1 more folder in a, beyond what is read"
        );
        assert_eq!(said("tooDeep", "", 3), "left out: 3 folders, too deep in other folders");
    }
}
