//! Unsupported methods and unusual spellings of paths are never authorized.

use std::collections::BTreeSet;

use super::{Guard, ROUTES, Setting};
use crate::world::{KEY, World};

const METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "TRACE", "BREW"];

async fn status(world: &World, line: &str, has_key: bool) -> u16 {
    let bearer = format!("Bearer {KEY}");
    let key = [
        ("Authorization", bearer.as_str()),
        ("X-Svc-Token", KEY),
        ("X-Svc-Client", "test"),
    ];
    world.send(line, if has_key { &key } else { &[] }, "").await.status
}

#[tokio::test]
async fn a_method_that_a_path_does_not_have_is_guarded_like_those_that_it_has() {
    let world = Setting::Headless.start().await;
    let paths: BTreeSet<_> = ROUTES.iter().map(|(_, path, _)| *path).collect();
    for path in paths {
        let of_path = || ROUTES.iter().filter(move |(_, row, _)| *row == path);
        for method in METHODS
            .into_iter()
            .filter(|method| of_path().all(|(row, ..)| row != method))
        {
            // On this path, only XML-RPC is not a WebSocket.
            let guard = of_path()
                .map(|(_, _, guard)| *guard)
                .find(|guard| !(path == "/rpc" && guard.is_aria2()));
            let guard = guard.unwrap();
            let line = format!("{method} {path}");
            let needs_key = !guard.ways().is_empty();
            let without = status(&world, &line, false).await;
            match guard {
                Guard::Takeover => assert_eq!(without, 403, "{line}"),
                _ if needs_key => assert_eq!(without, 401, "{line}"),
                _ => assert!([200, 403, 404, 405, 426].contains(&without), "{line}: {without}"),
            }
            let with = status(&world, &line, true).await;
            let is_read = method == "HEAD" && of_path().any(|(row, ..)| *row == "GET");
            assert_eq!(with == 405, !is_read, "{line}: {with}");
        }
    }
    world.end().await;
}

#[tokio::test]
async fn a_path_that_is_written_otherwise_is_no_way_in() {
    for setting in [
        Setting::Headless,
        Setting::Unset,
        Setting::Desktop,
        Setting::FreshDesktop,
    ] {
        let world = setting.start().await;
        for (method, path, guard) in ROUTES.iter().filter(|(_, path, _)| *path != "/") {
            let last = path.chars().last().unwrap();
            let otherwise = [
                format!("{path}/"),
                format!("/{path}"),
                format!("/.{path}"),
                format!("/x/..{path}"),
                format!("{path};x"),
                format!("{path}%00"),
                format!("{path}%2f"),
                path.replacen('/', "/%2e/", 1),
                path.to_uppercase(),
                path.replace(last, &format!("%{:02x}", last as u32)),
                path.replacen('/', "\\", 1),
            ];
            for path in otherwise.iter().filter(|other| *other != path) {
                let line = format!("{method} {path}");
                let without = status(&world, &line, false).await;
                assert!(
                    [400, 401, 403, 404].contains(&without),
                    "{line} in {setting:?}: {without}"
                );
                // Ids and file names may contain any characters.
                let is_parameter = path.contains('{') || path.contains("%7") || *guard == Guard::Open;
                let with = status(&world, &line, true).await;
                assert!(
                    is_parameter || [400, 403, 404, 405].contains(&with),
                    "{line} in {setting:?}: {with}"
                );
            }
        }
        world.end().await;
    }
}
