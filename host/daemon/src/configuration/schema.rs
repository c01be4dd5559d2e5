//! What each setting is and may be, for pages that show them. The values are checked where they are set; a test tries every
//! range and choice of this table there.

use engine::Settings;
use protocol::{ConfigSchema, SettingDto, SettingKind};

use crate::configuration::{PASSWORD, keys};

/// The range or the choices of a setting.
enum Is {
    Number(i64, i64),
    /// A number that acts after the next start.
    Restart(i64, i64),
    Choice(&'static [&'static str]),
    Kind(SettingKind),
}

/// The most of a limit of speed: faster than any network.
const MOST_BYTES: i64 = 1 << 50;

/// Key, group, range, unit and meaning of every setting, in the order in which they are shown.
const TABLE: &[(&str, &str, Is, &str, &str)] = &[
    (
        "default_save_dir",
        "downloads",
        Is::Kind(SettingKind::Directory),
        "",
        "Where files are saved; empty: the directory that the service was started with.",
    ),
    (
        "max_concurrent_tasks",
        "downloads",
        Is::Number(1, 1024),
        "",
        "How many downloads run at once, over all queues.",
    ),
    (
        "default_segments",
        "downloads",
        Is::Number(0, 64),
        "",
        "Parts of a file that are downloaded at the same time; 0 chooses by size and server.",
    ),
    (
        "auto_max_connections",
        "downloads",
        Is::Number(0, 128),
        "",
        "The most connections of one download; 0: as many as the protocol allows.",
    ),
    (
        "max_auto_retries",
        "downloads",
        Is::Number(-1, 20),
        "",
        "How often a download that failed is tried again; -1: without end.",
    ),
    (
        "auto_retry_delay_secs",
        "downloads",
        Is::Number(0, 86_400),
        "seconds",
        "The pause before a failed download is tried again.",
    ),
    (
        "auto_resume_on_start",
        "downloads",
        Is::Kind(SettingKind::Switch),
        "",
        "Unfinished downloads go on when the service starts.",
    ),
    (
        "use_server_time",
        "downloads",
        Is::Kind(SettingKind::Switch),
        "",
        "Files get the time that the server says they were changed at.",
    ),
    (
        "dedup_same_url",
        "downloads",
        Is::Kind(SettingKind::Switch),
        "",
        "A link that is downloading already is not added a second time.",
    ),
    (
        "file_exists_behavior",
        "downloads",
        Is::Choice(&["rename", "overwrite", "skip"]),
        "",
        "What happens if a file of the name exists.",
    ),
    (
        "file_missing_action",
        "downloads",
        Is::Choice(&["keep", "delete"]),
        "",
        "What becomes of a finished download whose file is gone.",
    ),
    (
        "default_queue_id",
        "downloads",
        Is::Kind(SettingKind::Queue),
        "",
        "The queue of downloads that name none.",
    ),
    (
        "speed_limit_bytes",
        "speed",
        Is::Number(0, MOST_BYTES),
        "bytesPerSecond",
        "The most that all downloads receive together; 0: no limit.",
    ),
    (
        "upload_limit_bytes",
        "speed",
        Is::Number(0, MOST_BYTES),
        "bytesPerSecond",
        "The most that all torrents upload together; 0: no limit.",
    ),
    (
        "turtle_enabled",
        "speed",
        Is::Kind(SettingKind::Switch),
        "",
        "The two limits below are in force in place of the two above.",
    ),
    (
        "turtle_speed_limit_bytes",
        "speed",
        Is::Number(0, MOST_BYTES),
        "bytesPerSecond",
        "The most that all downloads receive together while the turtle is on; 0: no limit.",
    ),
    (
        "turtle_upload_limit_bytes",
        "speed",
        Is::Number(0, MOST_BYTES),
        "bytesPerSecond",
        "The most that all torrents upload together while the turtle is on; 0: no limit.",
    ),
    (
        "turtle_schedule_enabled",
        "speed",
        Is::Kind(SettingKind::Switch),
        "",
        "The turtle is switched on and off at the times below; by hand at any time between them.",
    ),
    (
        "turtle_schedule_start",
        "speed",
        Is::Kind(SettingKind::Time),
        "",
        "When the turtle is switched on, in the service's local time; empty: never.",
    ),
    (
        "turtle_schedule_stop",
        "speed",
        Is::Kind(SettingKind::Time),
        "",
        "When the turtle is switched off, in the service's local time; empty: never.",
    ),
    (
        "turtle_schedule_days",
        "speed",
        Is::Number(0, 127),
        "days",
        "The days of these times as bits, bit 0 for Monday; 0 or 127: every day.",
    ),
    (
        "bt_follow_torrent_links",
        "torrents",
        Is::Kind(SettingKind::Switch),
        "",
        "A link to a torrent file downloads the torrent in place of that file.",
    ),
    (
        "bt_enable_dht",
        "torrents",
        Is::Kind(SettingKind::Switch),
        "",
        "Peers are found through the distributed hash table, too.",
    ),
    (
        "bt_enable_pex",
        "torrents",
        Is::Kind(SettingKind::Switch),
        "",
        "Peers tell each other of further peers.",
    ),
    (
        "bt_enable_lsd",
        "torrents",
        Is::Kind(SettingKind::Switch),
        "",
        "Peers in the local network are found.",
    ),
    (
        "bt_enable_upnp",
        "torrents",
        Is::Kind(SettingKind::Switch),
        "",
        "The router is asked to pass connections of peers on (UPnP, NAT-PMP).",
    ),
    (
        "bt_port_start",
        "torrents",
        Is::Restart(1, 65_535),
        "",
        "The first port on which peers may connect.",
    ),
    (
        "bt_port_end",
        "torrents",
        Is::Restart(1, 65_535),
        "",
        "The last port that is tried if those before it are taken.",
    ),
    (
        "bt_mse_mode",
        "torrents",
        Is::Choice(&["disabled", "enabled", "forced"]),
        "",
        "Whether connections to peers look like random bytes.",
    ),
    (
        "bt_max_connections",
        "torrents",
        Is::Number(1, 2_000),
        "",
        "The most peers of all torrents together.",
    ),
    (
        "bt_max_connections_per_torrent",
        "torrents",
        Is::Number(1, 2_000),
        "",
        "The most peers of one torrent.",
    ),
    (
        "bt_custom_trackers",
        "torrents",
        Is::Kind(SettingKind::Urls),
        "",
        "Trackers that are asked besides those of public torrents.",
    ),
    (
        "bt_tracker_sub_enabled",
        "torrents",
        Is::Kind(SettingKind::Switch),
        "",
        "Trackers of the lists below are asked, too.",
    ),
    (
        "bt_tracker_sub_urls",
        "torrents",
        Is::Kind(SettingKind::Urls),
        "",
        "Lists of trackers, each read once a day.",
    ),
    (
        "bt_seed_enabled",
        "seeding",
        Is::Kind(SettingKind::Switch),
        "",
        "Finished torrents are uploaded to others.",
    ),
    (
        "bt_auto_reseed",
        "seeding",
        Is::Kind(SettingKind::Switch),
        "",
        "Seeding goes on when the service starts.",
    ),
    (
        "bt_seed_max_active",
        "seeding",
        Is::Number(0, 100_000),
        "",
        "How many finished torrents are uploaded at once; 0: all.",
    ),
    (
        "bt_seed_ratio_limit",
        "seeding",
        Is::Kind(SettingKind::Decimal),
        "",
        "Seeding ends when this many times the size was uploaded; 0: never.",
    ),
    (
        "bt_seed_post_ratio_limit",
        "seeding",
        Is::Kind(SettingKind::Decimal),
        "",
        "The same, counting only what is uploaded after the download was complete; 0: never.",
    ),
    (
        "bt_seed_time_limit_minutes",
        "seeding",
        Is::Number(0, 526_000_000),
        "minutes",
        "Seeding ends after this time; 0: never.",
    ),
    (
        "bt_seed_inactive_time_limit_minutes",
        "seeding",
        Is::Number(0, 526_000_000),
        "minutes",
        "Seeding ends when nothing was uploaded for this time; 0: never.",
    ),
    (
        "bt_seed_limit_operator",
        "seeding",
        Is::Choice(&["or", "and"]),
        "",
        "Whether one limit of seeding is enough or all must be reached.",
    ),
    (
        "bt_seed_then_action",
        "seeding",
        Is::Choice(&["stop", "delete", "delete_files"]),
        "",
        "What becomes of a torrent when its seeding ends.",
    ),
    (
        "proxy_mode",
        "network",
        Is::Choice(&["none", "system", "manual"]),
        "",
        "Whether downloads go through a proxy: none, that of the system, or the one below.",
    ),
    (
        "proxy_type",
        "network",
        Is::Choice(&["http", "https", "socks4", "socks5"]),
        "",
        "The protocol of the proxy.",
    ),
    (
        "proxy_host",
        "network",
        Is::Kind(SettingKind::Text),
        "",
        "The host of the proxy.",
    ),
    (
        "proxy_port",
        "network",
        Is::Number(0, 65_535),
        "",
        "The port of the proxy; empty or 0: the usual one of its protocol.",
    ),
    (
        "proxy_username",
        "network",
        Is::Kind(SettingKind::Text),
        "",
        "The user name for the proxy; empty: none.",
    ),
    (
        "proxy_password",
        "network",
        Is::Kind(SettingKind::Text),
        "",
        "The password for the proxy.",
    ),
    (
        "proxy_no_list",
        "network",
        Is::Kind(SettingKind::Text),
        "",
        "Hosts that are reached without the proxy, separated by commas.",
    ),
    (
        "global_user_agent",
        "network",
        Is::Kind(SettingKind::Text),
        "",
        "The User-Agent header of requests; empty: that of the service.",
    ),
    (
        "link_mdns",
        "link",
        Is::Kind(SettingKind::Switch),
        "",
        "Other devices in the network find this one by mDNS, and it finds them when it searches.",
    ),
    (
        "link_interfaces",
        "link",
        Is::Kind(SettingKind::Text),
        "",
        "Network interfaces on which devices find each other, separated by commas; empty: all.",
    ),
    (
        "link_save_roots",
        "link",
        Is::Kind(SettingKind::Text),
        "",
        "Directories below which paired devices may save besides the usual one, separated like those of PATH.",
    ),
    (
        "plugin_auto_update",
        "plugins",
        Is::Kind(SettingKind::Switch),
        "",
        "New versions of plugins are installed by themselves unless they ask for more.",
    ),
    (
        "tool_ffmpeg",
        "plugins",
        Is::Kind(SettingKind::Program),
        "",
        "Which ffmpeg may be used to join tracks.",
    ),
    (
        "tool_yt_dlp",
        "plugins",
        Is::Kind(SettingKind::Program),
        "",
        "Which yt-dlp plugins may ask about web pages.",
    ),
    (
        "post_chain",
        "after",
        Is::Kind(SettingKind::Json),
        "",
        "What follows finished downloads in queues without steps of their own.",
    ),
    (
        "webhook.endpoints",
        "webhooks",
        Is::Kind(SettingKind::Json),
        "",
        "Where events are delivered.",
    ),
];

pub(crate) fn schema() -> ConfigSchema {
    let usual = Settings::default();
    let setting = |(key, group, is, unit, meaning): &(&str, &str, Is, &str, &str)| {
        let (kind, range, choices, restart) = match is {
            Is::Number(least, most) => (SettingKind::Number, Some((*least, *most)), &[][..], false),
            Is::Restart(least, most) => (SettingKind::Number, Some((*least, *most)), &[][..], true),
            Is::Choice(choices) => (SettingKind::Choice, None, *choices, false),
            Is::Kind(kind) => (*kind, None, &[][..], false),
        };
        SettingDto {
            key: (*key).to_owned(),
            group: (*group).to_owned(),
            kind,
            default: usual.value(key).unwrap_or_else(|| keys::default(key).into_owned()),
            min: range.map(|(least, _)| least),
            max: range.map(|(_, most)| most),
            choices: choices.iter().map(|choice| (*choice).to_owned()).collect(),
            unit: (*unit).to_owned(),
            restart,
            secret: *key == PASSWORD,
            meaning: (*meaning).to_owned(),
        }
    };
    ConfigSchema {
        settings: TABLE.iter().map(setting).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Whether the key takes the value where it is set.
    fn takes(key: &str, value: &str) -> bool {
        if key == keys::WEBHOOK_ENDPOINTS {
            return hooks::Endpoints::check(value, &hooks::Endpoints::default()).is_ok();
        }
        let is_engines = Settings::has_key(key);
        (is_engines && Settings::default().set(key, value).is_ok()) || (!is_engines && keys::check(key, value).is_ok())
    }

    #[test]
    fn every_setting_is_there_once_and_its_default_is_allowed() {
        let described: Vec<_> = TABLE.iter().map(|(key, ..)| *key).collect();
        let known: BTreeSet<_> = Settings::keys().chain(keys::names()).collect();
        assert_eq!(described.iter().copied().collect::<BTreeSet<_>>(), known);
        assert_eq!(described.len(), known.len());
        for setting in schema().settings {
            assert!(takes(&setting.key, &setting.default), "{}", setting.key);
            assert!(setting.meaning.ends_with('.'), "{}", setting.key);
        }
    }

    #[test]
    fn ranges_and_choices_are_exactly_what_is_taken() {
        for SettingDto {
            key,
            kind,
            min,
            max,
            choices,
            ..
        } in schema().settings
        {
            match kind {
                SettingKind::Number => {
                    let (least, most) = (min.unwrap(), max.unwrap());
                    for (value, expected) in [(least, true), (most, true), (least - 1, false), (most + 1, false)] {
                        assert_eq!(takes(&key, &value.to_string()), expected, "{key} {value}");
                    }
                }
                SettingKind::Choice => {
                    assert!(choices.iter().all(|choice| takes(&key, choice)), "{key}");
                    assert!(!takes(&key, "another one"), "{key}");
                }
                SettingKind::Switch => {
                    assert!(
                        takes(&key, "true") && takes(&key, "false") && !takes(&key, "2"),
                        "{key}"
                    );
                }
                SettingKind::Decimal => {
                    assert!(takes(&key, "1.125") && !takes(&key, "-1") && !takes(&key, "x"), "{key}");
                }
                SettingKind::Directory => assert!(takes(&key, "/srv") && !takes(&key, "srv"), "{key}"),
                SettingKind::Program => {
                    assert!(
                        takes(&key, "auto") && takes(&key, "/opt/x") && !takes(&key, "x y"),
                        "{key}"
                    );
                }
                SettingKind::Time => assert!(takes(&key, "07:30") && takes(&key, "") && !takes(&key, "7:30"), "{key}"),
                SettingKind::Queue => assert!(takes(&key, "main") && !takes(&key, "no queue"), "{key}"),
                SettingKind::Urls => {
                    assert!(
                        takes(&key, "https://a.test/x\nhttps://b.test/") && !takes(&key, "nothing"),
                        "{key}"
                    );
                }
                SettingKind::Json => assert!(!takes(&key, "{"), "{key}"),
                SettingKind::Text if key == "link_save_roots" => {
                    assert!(takes(&key, "/srv:/mnt") && !takes(&key, "srv"), "{key}");
                }
                SettingKind::Text => assert!(takes(&key, "text") && !takes(&key, "a\u{1}b"), "{key}"),
            }
        }
    }
}
