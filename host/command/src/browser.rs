//! The user's browser, and other programs of the desktop.

use std::{
    io,
    process::{Child, Command, Stdio},
};

use crate::environment;

/// A program of the desktop that outlives this process: without its terminal and streams, and without the access key.
pub fn detached(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env_remove(environment::TOKEN);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt as _;
        // Ctrl-C in the terminal of this process is not meant for it.
        command.process_group(0);
    }
    command
}

/// Opens a page of the service in the user's browser. The child is the program that starts the browser, which may end at
/// once or with the browser.
pub fn open(url: &str) -> io::Result<Child> {
    let mut command = if cfg!(target_os = "macos") {
        detached("open")
    } else if cfg!(windows) {
        let mut command = detached("rundll32");
        command.arg("url.dll,FileProtocolHandler");
        command
    } else {
        detached("xdg-open")
    };
    command.arg(url);
    command.spawn()
}
