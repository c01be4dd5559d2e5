//! `svc add --pick`: chooses files of a plugin's list, by number, range or pattern. Pure.

use std::{collections::BTreeSet, mem::take};

use command::UsageError;
use protocol::{
    CreateGroupRequest, CreateTaskRequest, GroupItemDto, PreviewItemDto, ResolvePreviewRequest, ResolvePreviewResponse,
};

/// What to take of a list.
#[derive(Debug, clap::Args)]
pub(super) struct PickArgs {
    /// Of a page or folder with several files, only these: numbers, ranges or patterns, such as 1,4-6 or '*.iso'
    ///
    /// "svc plugin preview URL" shows the files with their numbers. A pattern is compared with the name of a file and with
    /// its path in the list; * stands for any characters, ? for one.
    #[arg(long, value_name = "FILES", value_delimiter = ',', help_heading = "Files",
        conflicts_with_all = ["input_file", "wait"])]
    pub(super) pick: Vec<String>,
    /// Variant of the picked files, such as a quality, by its name or id
    #[arg(long, value_name = "NAME", requires = "pick", help_heading = "Files")]
    pub(super) variant: Option<String>,
}

/// The preview that the picked numbers and patterns refer to.
pub(super) fn preview(request: &CreateTaskRequest) -> ResolvePreviewRequest {
    ResolvePreviewRequest {
        url: request.url.clone(),
        cookies: request.cookies.clone(),
        referrer: request.referrer.clone(),
        user_agent: request.user_agent.clone(),
        extra_headers: request.headers.clone().unwrap_or_default(),
    }
}

/// The group of the picked files. Fails for options of `request` that a group does not have.
pub(super) fn group(
    args: &PickArgs,
    request: &CreateTaskRequest,
    found: ResolvePreviewResponse,
) -> Result<CreateGroupRequest, UsageError> {
    let refuse = |problem: String| UsageError::new("--pick", problem);
    if !found.error.is_empty() {
        return Err(refuse(found.error));
    }
    if found.items.is_empty() {
        return Err(refuse(format!("there is no list to pick from: {}", found.message)));
    }
    let items = picked(&args.pick, &found.items)?;
    let items = items.into_iter().map(|item| member(item, args.variant.as_deref()));
    let items = items.collect::<Result<Vec<_>, _>>()?;
    // What a group does not take is left, and refused.
    let mut rest = request.clone();
    let group = CreateGroupRequest {
        source_url: take(&mut rest.url),
        group_name: found.name,
        save_dir: take(&mut rest.save_dir),
        queue_id: take(&mut rest.queue_id),
        segments: take(&mut rest.segments),
        cookies: take(&mut rest.cookies),
        referrer: take(&mut rest.referrer),
        user_agent: take(&mut rest.user_agent),
        proxy_url: take(&mut rest.proxy_url),
        extra_headers: take(&mut rest.headers).unwrap_or_default(),
        ignore_tls_errors: take(&mut rest.ignore_tls_errors),
        start_paused: take(&mut rest.start_paused),
        items,
        left_out: found.left_out,
    };
    if rest != CreateTaskRequest::default() {
        return Err(refuse(
            "besides --variant only --dir, --queue, --segments, --proxy, --insecure, --paused, --header, --cookie, --referer \
             and --user-agent go with it"
                .to_owned(),
        ));
    }
    Ok(group)
}

/// The items in the order of the list. Every number and pattern must choose something.
fn picked<'i>(which: &[String], items: &'i [PreviewItemDto]) -> Result<Vec<&'i PreviewItemDto>, UsageError> {
    let mut places = BTreeSet::new();
    for text in which {
        if let Some((first, last)) = range(text, items.len()) {
            if first == 0 || first > last || last > items.len() {
                let problem = format!("{text} is none of the numbers 1 to {}", items.len());
                return Err(UsageError::new("--pick", problem));
            }
            places.extend(first - 1..last);
            continue;
        }
        let is_meant = |item: &PreviewItemDto| matches(text, &item.name) || matches(text, &path(item));
        let meant = (0..items.len()).filter(|place| is_meant(&items[*place]));
        let meant: Vec<_> = meant.collect();
        if meant.is_empty() {
            let problem = format!(
                "{text} matches none of the {} files; svc plugin preview shows them",
                items.len()
            );
            return Err(UsageError::new("--pick", problem));
        }
        places.extend(meant);
    }
    Ok(places.into_iter().map(|place| &items[place]).collect())
}

/// `3`, `4-6`, `4-` or `-6`; none if the text is a pattern.
fn range(text: &str, count: usize) -> Option<(usize, usize)> {
    let number = |text: &str, default| match text {
        "" => Some(default),
        _ => text.parse().ok(),
    };
    match text.split_once('-') {
        _ if text == "-" => None,
        Some((first, last)) => Some((number(first, 1)?, number(last, count)?)),
        None => text.parse().ok().map(|place| (place, place)),
    }
}

fn path(item: &PreviewItemDto) -> String {
    if item.path.is_empty() {
        item.name.clone()
    } else {
        format!("{}/{}", item.path, item.name)
    }
}

/// Whether `text` matches: `*` stands for any characters, `?` for one. Linear in memory, and at most quadratic in time.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut place) = (0, 0);
    // The last star, and where what follows it was tried.
    let mut star = None;
    while place < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, place));
                at += 1;
            }
            Some(wanted) if *wanted == '?' || *wanted == text[place] => (at, place) = (at + 1, place + 1),
            _ => match star {
                Some((begin, tried)) => {
                    star = Some((begin, tried + 1));
                    (at, place) = (begin + 1, tried + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|rest| *rest == '*')
}

fn member(item: &PreviewItemDto, wanted: Option<&str>) -> Result<GroupItemDto, UsageError> {
    let variant = match wanted {
        Some(wanted) if !item.variants.is_empty() => {
            let is_wanted = |id: &str, label: &str| id == wanted || label.eq_ignore_ascii_case(wanted);
            let found = item
                .variants
                .iter()
                .find(|variant| is_wanted(&variant.id, &variant.label));
            let found = found.ok_or_else(|| {
                let labels: Vec<_> = item.variants.iter().map(|variant| variant.label.as_str()).collect();
                let problem = format!("{} has no {wanted}; it has {}", item.name, labels.join(", "));
                UsageError::new("--variant", problem)
            })?;
            Some(found)
        }
        _ => None,
    };
    // What the server told is a hint, and no promise that the file must keep.
    let (size, is_hint) = variant.map_or((item.size, item.size_from_server), |variant| {
        (variant.size, variant.size_from_server)
    });
    let promised = if is_hint { 0 } else { size };
    Ok(GroupItemDto {
        resolver_item: format!("{}@{}", item.id, variant.map_or("", |variant| &variant.id)),
        file_name: item.name.clone(),
        rel_path: item.path.clone(),
        size: promised,
        checksum: variant.map_or(&item.checksum, |variant| &variant.checksum).clone(),
    })
}

#[cfg(test)]
mod tests {
    use protocol::PreviewVariantDto;

    use super::*;

    fn item(path: &str, name: &str) -> PreviewItemDto {
        PreviewItemDto {
            id: format!("id-{name}"),
            name: name.into(),
            path: path.into(),
            ..PreviewItemDto::default()
        }
    }

    fn pick(which: &[&str]) -> Result<Vec<String>, String> {
        let items = [
            item("", "a.iso"),
            item("", "b.txt"),
            item("old", "a.iso"),
            item("old", "c.txt"),
        ];
        let which: Vec<_> = which.iter().map(|text| (*text).to_owned()).collect();
        let found = picked(&which, &items).map_err(|error| error.to_string())?;
        Ok(found.into_iter().map(path).collect())
    }

    #[test]
    fn files_are_picked_by_number_range_and_pattern_in_their_order() {
        assert_eq!(pick(&["4", "1"]).unwrap(), ["a.iso", "old/c.txt"]);
        assert_eq!(pick(&["2-3"]).unwrap(), ["b.txt", "old/a.iso"]);
        assert_eq!(pick(&["-2", "4-"]).unwrap(), ["a.iso", "b.txt", "old/c.txt"]);
        assert_eq!(pick(&["*.iso"]).unwrap(), ["a.iso", "old/a.iso"]);
        assert_eq!(pick(&["old/*", "?.txt"]).unwrap(), ["b.txt", "old/a.iso", "old/c.txt"]);
    }

    #[test]
    fn what_picks_nothing_is_refused() {
        for (which, told) in [
            ("0", "1 to 4"),
            ("5", "1 to 4"),
            ("3-2", "1 to 4"),
            ("*.zip", "none of the 4"),
        ] {
            let refused = pick(&[which]).unwrap_err();
            assert!(refused.contains(told), "{refused}");
        }
    }

    #[test]
    fn patterns_stop_at_both_ends() {
        for (pattern, text) in [("*", ""), ("a*b*c", "aXbYbZc"), ("*.tar.?z", "x.tar.gz")] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a", "ab"), ("*b", "abc"), ("?", ""), ("a*b", "ac")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn a_variant_is_named_by_label_or_id_and_must_exist() {
        let variant = |id: &str, label: &str| PreviewVariantDto {
            id: id.into(),
            label: label.into(),
            size: 7,
            ..PreviewVariantDto::default()
        };
        let mut film = item("", "film");
        film.variants = vec![variant("v1", "1080p"), variant("v2", "720p")];
        assert_eq!(member(&film, Some("720P")).unwrap().resolver_item, "id-film@v2");
        assert_eq!(member(&film, Some("v1")).unwrap().size, 7);
        assert_eq!(member(&film, None).unwrap().resolver_item, "id-film@");
        assert!(
            member(&film, Some("4k"))
                .unwrap_err()
                .to_string()
                .contains("it has 1080p, 720p")
        );
        assert_eq!(
            member(&item("", "plain"), Some("720p")).unwrap().resolver_item,
            "id-plain@"
        );
    }

    #[test]
    fn options_that_a_group_does_not_have_are_refused() {
        let args = PickArgs {
            pick: vec!["1".into()],
            variant: None,
        };
        let request = |limit| CreateTaskRequest {
            url: "http://a.test/".into(),
            speed_limit_bytes: limit,
            ..CreateTaskRequest::default()
        };
        let found = || ResolvePreviewResponse {
            name: "Share".into(),
            items: vec![item("", "a.iso")],
            ..ResolvePreviewResponse::default()
        };
        let made = group(&args, &request(0), found()).unwrap();
        assert_eq!((made.group_name.as_str(), made.items.len()), ("Share", 1));
        assert!(group(&args, &request(1), found()).is_err());
        let none = group(&args, &request(0), ResolvePreviewResponse::default()).unwrap_err();
        assert!(none.to_string().contains("no list"), "{none}");
    }
}
