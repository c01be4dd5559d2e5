//! What yt-dlp finds at pages, and what becomes of it.

use proptest::prelude::*;
use serde_json::{Value, json};
use svc_plugin::{
    Error, FileKind,
    test::{Entry, Host, Listing, replay_all},
    tools::ToolError,
};
use yt_dlp::YtDlp;

const URL: &str = "https://video.example.org/watch?v=1";

fn host(media: &Value) -> Host {
    Host::new()
        .setting("sites", "video.example.org")
        .media(URL, &media.to_string())
}

fn resolve(media: &Value) -> Result<Listing, Error> {
    host(media).resolve::<YtDlp>(URL)
}

fn format(id: &str, extension: &str, more: &Value) -> Value {
    let mut format =
        json!({"id": id, "url": format!("https://cdn.example.org/{id}"), "protocol": "https", "extension": extension});
    for (key, value) in more.as_object().into_iter().flatten() {
        format[key] = value.clone();
    }
    format
}

fn variants(entry: &Entry) -> Vec<&str> {
    entry.variants.iter().map(|variant| &*variant.id).collect()
}

#[test]
fn fixtures() {
    replay_all::<YtDlp>("fixtures");
}

#[test]
fn a_film_is_one_file_in_its_qualities() {
    let media = json!({
        "id": "1", "title": " A film: the\n2nd/3 ", "durationMs": 61_500, "chosen": ["hd"],
        "formats": [
            format("story", "mhtml", &json!({"protocol": "mhtml"})),
            format("list", "mp4", &json!({"protocol": "m3u8_native", "height": 2160})),
            format("locked", "mp4", &json!({"drm": true, "height": 2160})),
            format("hd", "mp4", &json!({"height": 1080, "fps": 60.0, "kilobits": 4000.4, "size": 500, "note": "1080p60"})),
            format("sd", "mp4", &json!({"height": 360, "note": "Medium", "headers": {"referer": "https://video.example.org/"}, "cookies": "a=1; b=2"})),
            format("vp9", "webm", &json!({"height": 720})),
            format("only-picture", "mp4", &json!({"height": 2160, "video": "avc1", "audio": "none"})),
            format("only-sound", "m4a", &json!({"video": "none", "audio": "mp4a"})),
        ],
    });
    let listing = resolve(&media).unwrap();
    assert_eq!(listing.title.as_deref(), Some("A film: the 2nd 3"));
    let names: Vec<_> = listing
        .entries
        .iter()
        .map(|entry| (&*entry.name, entry.is_selected))
        .collect();
    assert_eq!(
        names,
        [
            ("A film: the 2nd 3.mp4", true),
            ("A film: the 2nd 3.webm", false),
            ("A film: the 2nd 3.video.mp4", false),
            ("A film: the 2nd 3.audio.m4a", false),
        ]
    );
    let film = &listing.entries[0];
    assert_eq!(
        (film.kind, film.size, film.duration_ms),
        (FileKind::VideoStream, Some(500), Some(61_500))
    );
    assert_eq!(variants(film), ["sd", "hd"]);
    let labels: Vec<_> = film
        .variants
        .iter()
        .map(|variant| (&*variant.name, variant.rank))
        .collect();
    assert_eq!(labels, [("360p, Medium", 0), ("1080p60, 4000 kbit/s", 1)]);
    let link = film.variants[0].link.as_ref().unwrap();
    let fields: Vec<_> = link.headers.iter().map(|(name, value)| (&**name, &**value)).collect();
    assert_eq!(
        fields,
        [("referer", "https://video.example.org/"), ("cookie", "a=1; b=2")]
    );
    assert_eq!(
        listing.entries[1].link.as_ref().unwrap().url,
        "https://cdn.example.org/vp9"
    );

    // What a variant was chosen by still finds it when the download starts.
    let link = |entry, variant| host(&media).link::<YtDlp>(URL, entry, variant).map(|link| link.url);
    assert_eq!(link("mp4", Some("sd")).unwrap(), "https://cdn.example.org/sd");
    assert_eq!(link("mp4", None).unwrap(), "https://cdn.example.org/hd");
    assert_eq!(link("audio-m4a", None).unwrap(), "https://cdn.example.org/only-sound");
    assert!(matches!(link("mp4", Some("locked")), Err(Error::NotFound(_))));
    assert!(matches!(link("flv", None), Err(Error::NotFound(_))));
}

#[test]
fn picture_and_sound_that_are_apart_are_two_files() {
    let (picture, sound) = (
        json!({"video": "vp9", "audio": "none", "height": 720}),
        json!({"video": "none"}),
    );
    let media = json!({
        "id": "1", "title": "", "chosen": ["v-mp4", "a-m4a"],
        "formats": [
            format("a-m4a", "m4a", &sound), format("a-webm", "webm", &sound),
            format("v-webm", "webm", &json!({"video": "vp9", "audio": "none", "height": 1080})),
            format("v-mp4", "mp4", &picture),
        ],
    });
    let listing = resolve(&media).unwrap();
    let selected: Vec<_> = listing
        .entries
        .iter()
        .filter(|entry| entry.is_selected)
        .map(|entry| &*entry.name)
        .collect();
    assert_eq!(selected, ["1.video.mp4", "1.audio.m4a"], "what yt-dlp would choose");
    assert_eq!(listing.entries.len(), 4);
}

#[test]
fn a_list_is_its_pages_and_their_links_are_found_when_they_start() {
    let page = "https://video.example.org/watch?v=2";
    let media = json!({"title": "All", "entries": [
        {"id": "2", "title": "Two", "url": page, "durationMs": 1000},
        {"id": "3", "title": "", "url": "https://video.example.org/watch?v=3"},
        {"id": "4", "title": "long", "url": format!("https://video.example.org/{}", "x".repeat(2000))},
    ]});
    let listing = resolve(&media).unwrap();
    let names: Vec<_> = listing.entries.iter().map(|entry| (&*entry.id, &*entry.name)).collect();
    assert_eq!(
        names,
        [(page, "Two.mp4"), ("https://video.example.org/watch?v=3", "3.mp4")]
    );
    assert_eq!(listing.left_out[0].count, 1);
    let formats = json!({"formats": [format("w", "webm", &json!({"height": 2160})), format("m", "mp4", &json!({}))]});
    let link = host(&media)
        .media(page, &formats.to_string())
        .link::<YtDlp>(URL, page, None);
    assert_eq!(link.unwrap().url, "https://cdn.example.org/m");
    let formats = json!({"formats": [format("w", "webm", &json!({}))]});
    let link = host(&media)
        .media(page, &formats.to_string())
        .link::<YtDlp>(URL, page, None);
    assert!(matches!(link, Err(Error::Unsupported(_))), "{link:?}");
}

#[test]
fn what_cannot_be_downloaded_is_told() {
    let live = json!({"live": true, "formats": [format("1", "mp4", &json!({}))]});
    assert!(matches!(resolve(&live), Err(Error::Unsupported(_))));
    let playlists = json!({"formats": [
        format("1", "mp4", &json!({"protocol": "m3u8_native"})), format("2", "mp4", &json!({"drm": true})),
    ]});
    let Err(Error::Unsupported(reason)) = resolve(&playlists) else {
        panic!()
    };
    assert!(reason.contains("copy-protected and m3u8_native"), "{reason}");
    assert!(matches!(resolve(&json!({})), Err(Error::NotFound(_))));
    let file = json!({"formats": [{"id": "0", "url": URL, "protocol": "https", "extension": "mp4"}]});
    assert_eq!(resolve(&file), Err(Error::NotMatched), "the page is the file");
}

#[test]
fn errors_of_a_named_site_are_told_and_those_of_all_pages_are_not() {
    for (sites, is_told) in [
        ("video.example.org", true),
        ("example.org\n*", true),
        ("*.EXAMPLE.org", true),
        ("*", false),
        ("other.org\n*", false),
        ("video.example.org:8443\n*", false),
    ] {
        let host = Host::new()
            .setting("sites", sites)
            .no_media(URL, ToolError::NotAllowed("set tool_yt_dlp".to_owned()));
        let told = host.resolve::<YtDlp>(URL);
        let expected = if is_told {
            Error::Unsupported("set tool_yt_dlp".to_owned())
        } else {
            Error::NotMatched
        };
        assert_eq!(told, Err(expected), "{sites}");
    }
}

fn any_format() -> impl Strategy<Value = Value> {
    let codec = || prop::sample::select(vec![Value::Null, json!("none"), json!("avc1")]);
    let extension = prop::sample::select(vec!["mp4", "webm", "", "../x", "unknown_video"]);
    let protocol = prop::sample::select(vec!["https", "http", "m3u8", ""]);
    ("[a-c]{0,2}", protocol, extension, codec(), codec(), 0_u32..3000, -5.0..1e12_f64, any::<bool>()).prop_map(
        |(id, protocol, extension, video, audio, height, kilobits, drm)| {
            json!({"id": id, "url": format!("https://cdn.example.org/{id}"), "protocol": protocol, "extension": extension,
                "video": video, "audio": audio, "height": height, "kilobits": kilobits, "drm": drm})
        },
    )
}

proptest! {
    #[test]
    fn whatever_is_listed_can_be_linked(formats in prop::collection::vec(any_format(), 0..12)) {
        let media = json!({"id": "1", "title": "T", "formats": formats});
        let Ok(listing) = resolve(&media) else { return Ok(()) };
        let selected = listing.entries.iter().filter(|entry| entry.is_selected).count();
        prop_assert!((1..=2).contains(&selected));
        let host = host(&media);
        for entry in &listing.entries {
            prop_assert!(!entry.name.contains('/'));
            let ids: Vec<_> = if entry.variants.is_empty() { vec![None] } else { variants(entry).into_iter().map(Some).collect() };
            for variant in ids {
                let listed = entry.variants.iter().find(|other| Some(&*other.id) == variant).unwrap_or(entry);
                let linked = host.link::<YtDlp>(URL, &entry.id, variant);
                prop_assert_eq!(&linked.unwrap(), listed.link.as_ref().unwrap());
            }
        }
    }
}
