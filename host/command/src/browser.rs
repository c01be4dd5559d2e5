//! The user's browser.

use std::{
    io,
    process::{Child, Command, Stdio},
};

/// Opens a page of the service in the user's browser. The child is the program that starts the browser, which may end at
/// once or with the browser.
pub fn open(url: &str) -> io::Result<Child> {
    let mut command = if cfg!(target_os = "macos") {
        Command::new("open")
    } else if cfg!(windows) {
        let mut command = Command::new("rundll32");
        command.arg("url.dll,FileProtocolHandler");
        command
    } else {
        Command::new("xdg-open")
    };
    command.arg(url);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn()
}
