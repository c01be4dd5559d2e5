//! The small window with the downloads that wait: a browser's app mode, which shows a page without tabs and address. Browsers
//! of the Chromium family have it; others are not used.

use std::{io, time::Duration};

use command::browser::detached;
use tokio::process::{Child, Command};

/// In the order in which they are tried. A running browser of the user opens the window at once.
const BROWSERS: [&str; 9] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "brave-browser",
    "brave",
    "microsoft-edge",
    "microsoft-edge-stable",
    "vivaldi",
];

/// Width and height in pixels. The page sets them again, because a browser that runs already ignores the option.
const SIZE: (u32, u32) = (480, 400);

/// How long a browser may take from its start to the connection of its page.
pub(super) const CONNECT_TIME: Duration = Duration::from_secs(30);

/// Opens `url` in a window of its own. The child ends at once if the user's browser runs already, else with the browser.
/// Fails with `NotFound` if no such browser is installed.
pub(super) fn open(url: &str) -> io::Result<Child> {
    let (width, height) = SIZE;
    let options = [
        format!("--app={url}"),
        format!("--window-size={width},{height}"),
        "--no-first-run".to_owned(),
        "--no-default-browser-check".to_owned(),
    ];
    for browser in BROWSERS {
        let mut command = Command::from(detached(browser));
        match command.args(&options).spawn() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            started => return started,
        }
    }
    Err(io::ErrorKind::NotFound.into())
}
