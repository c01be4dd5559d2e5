//! A desktop beside its agent: notifications with buttons, keeping the computer awake, and what follows the last download.
//! [`state`] decides, [`bus`] talks to the desktop, this module is the driver between them.

mod bus;
mod files;
mod state;
#[cfg(feature = "tray")]
mod tray;
mod window;

use std::{path::PathBuf, time::Duration};

use agent::{Desk, OpenRequest};
use command::{browser, environment::Environment};
use message_bus::BusAddress;
use tokio::{
    process,
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::{Instant, sleep_until},
};

use self::{
    bus::{Bus, Buses, Command, Report},
    state::{AfterFinish, COUNTDOWN, Effect, Input, State},
};

/// How often a view is looked at when it changes all the time.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Files that are being opened at once.
const MAX_OPENING: usize = 8;

const NOT_ADDED: &str = "Svc could not add the download";
const NOT_OPENED: &str = "Svc did not open the file";
#[cfg(feature = "tray")]
const NOT_PAUSED: &str = "Svc could not pause the downloads";
#[cfg(feature = "tray")]
const NOT_RESUMED: &str = "Svc could not resume the downloads";

/// The usual place of the system's bus.
const SYSTEM_BUS: &str = "unix:path=/run/dbus/system_bus_socket";

/// Attends to the desktop of `agent`, whose page is at `page`, until the user wants the service to end. Dropping it is safe.
pub async fn attend(mut desk: Desk, page: String, environment: &Environment) {
    let system = environment.system_bus.clone().unwrap_or_else(|| SYSTEM_BUS.to_owned());
    let buses = Buses {
        session: BusAddress {
            address: environment.session_bus.clone(),
            runtime_dir: environment.runtime_dir.clone(),
        },
        system: BusAddress {
            address: Some(system),
            runtime_dir: None,
        },
    };
    // The thread ends when the bus is dropped with this future.
    let (bus, mut reports, _thread) = match Bus::start(buses) {
        Ok(started) => started,
        Err(error) => {
            tracing::warn!(%error, "nothing is shown on the desktop");
            return std::future::pending().await;
        }
    };
    let mut driver = Driver {
        page,
        bus,
        has_display: environment.has_display,
        countdown: None,
        browser: None,
        window: None,
        window_deadline: None,
        opening: JoinSet::new(),
    };
    let mut state = State::default();
    // Tasks of before are none that end now.
    desk.connected().await;
    let mut input = Input::View(desk.view());
    loop {
        let mut effects = state.apply(input);
        while !effects.is_empty() {
            let mut failed = Vec::new();
            for effect in effects {
                match driver.carry_out(effect, &desk).await {
                    Done::Yes => {}
                    Done::NoWindow => failed.extend(state.apply(Input::WindowFailed)),
                    Done::Failed(what, message) => failed.extend(state.apply(Input::Failed(what, message))),
                    Done::Quit => return,
                }
            }
            effects = failed;
        }
        input = next(&mut desk, &mut reports, &mut driver).await;
    }
}

/// The next thing that happens.
async fn next(desk: &mut Desk, reports: &mut mpsc::Receiver<Report>, driver: &mut Driver) -> Input {
    loop {
        return tokio::select! {
            request = next_from(desk) => match request {
                Some(request) => {
                    driver.answer(request);
                    continue;
                }
                None => Input::View(desk.view()),
            },
            Some(opened) = driver.opening.join_next() => match opened {
                Ok(Err(message)) => Input::Failed(NOT_OPENED, message),
                Ok(Ok(())) | Err(_) => continue,
            },
            Some(report) = reports.recv() => match report {
                Report::Pressed(topic, button) => Input::Pressed { topic, button },
                Report::Closed(topic) => Input::Closed(topic),
                Report::Unseen(topic) => Input::Unseen(topic),
                #[cfg(feature = "tray")]
                Report::Chosen(choice) => Input::Chosen(choice),
                Report::NotSuspended(why) => {
                    tracing::warn!(why, "the computer cannot be suspended");
                    continue;
                }
            },
            () = over(driver.countdown) => {
                driver.countdown = None;
                Input::CountdownOver
            }
            has_failed = ended(&mut driver.window) => {
                driver.window = None;
                if !has_failed {
                    continue;
                }
                Input::WindowFailed
            }
            () = over(driver.window_deadline) => {
                driver.window_deadline = None;
                Input::WindowFailed
            }
        };
    }
}

/// A request to open a file, or none after a change, but that not more often than the interval.
async fn next_from(desk: &mut Desk) -> Option<OpenRequest> {
    let earliest = Instant::now() + LOOK_EVERY;
    tokio::select! {
        request = desk.open_requested() => return Some(request),
        () = sleep_until(earliest) => {}
    }
    desk.open_requested_or_changed().await
}

/// Resolves when the program that opens a window has ended; whether it failed. Cancel-safe.
async fn ended(window: &mut Option<process::Child>) -> bool {
    match window {
        Some(child) => !child.wait().await.is_ok_and(|status| status.success()),
        None => std::future::pending().await,
    }
}

async fn over(deadline: Option<Instant>) {
    match deadline {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

enum Done {
    Yes,
    /// No small window can be opened here.
    NoWindow,
    /// The user learns of it: a summary, and why.
    Failed(&'static str, String),
    Quit,
}

#[cfg(feature = "tray")]
impl Done {
    fn of(what: &'static str, done: Result<(), String>) -> Self {
        match done {
            Ok(()) => Self::Yes,
            Err(message) => Self::Failed(what, message),
        }
    }
}

struct Driver {
    page: String,
    bus: Bus,
    /// Programs can open windows.
    has_display: bool,
    countdown: Option<Instant>,
    /// What opened the page last; it ends by itself.
    browser: Option<std::process::Child>,
    /// What opened the small window last. Dropping it leaves the browser running.
    window: Option<process::Child>,
    /// When the page in the small window must have connected.
    window_deadline: Option<Instant>,
    /// Files that are being opened for the user, who learns why one is not.
    opening: JoinSet<Result<(), String>>,
}

impl Driver {
    async fn carry_out(&mut self, effect: Effect, desk: &Desk) -> Done {
        match effect {
            Effect::Show(topic, notice) => self.bus.send(Command::Show(topic, notice)),
            Effect::Withdraw(topic) => self.bus.send(Command::Withdraw(topic)),
            Effect::KeepAwake(is_awake) => self.bus.send(Command::KeepAwake(is_awake)),
            Effect::Resolve { id, is_accepted } => {
                if let Err(message) = desk.resolve(&id, is_accepted).await {
                    return Done::Failed(NOT_ADDED, message);
                }
            }
            Effect::OpenFile { task, is_revealed } => match desk.finished_file(&task) {
                Ok(path) => self.open_file(path, is_revealed, None),
                Err(message) => return Done::Failed(NOT_OPENED, message),
            },
            Effect::OpenPage => self.open_page(desk),
            Effect::OpenWindow => return self.open_window(desk),
            #[cfg(feature = "tray")]
            Effect::Tray(state) => self.bus.send(Command::Tray(state)),
            #[cfg(not(feature = "tray"))]
            Effect::Tray(_) => {}
            #[cfg(feature = "tray")]
            Effect::PauseAll => return Done::of(NOT_PAUSED, desk.pause_all().await),
            #[cfg(feature = "tray")]
            Effect::ResumeAll => return Done::of(NOT_RESUMED, desk.resume_all().await),
            #[cfg(feature = "tray")]
            Effect::Quit => return Done::Quit,
            Effect::StartCountdown => self.countdown = Some(Instant::now() + COUNTDOWN),
            Effect::StopCountdown => self.countdown = None,
            Effect::ClearAfterFinish => {
                if let Err(error) = desk.clear_after_finish().await {
                    tracing::warn!(error, "what follows the last download stays set");
                }
            }
            Effect::Finish(AfterFinish::Suspend) => self.bus.send(Command::Suspend),
            Effect::Finish(AfterFinish::Quit) => return Done::Quit,
        }
        Done::Yes
    }

    fn answer(&mut self, request: OpenRequest) {
        self.open_file(request.path, request.reveal, Some(request.answer));
    }

    /// Opens a file, or shows it in its directory. `answer` gets the result; without one, the user does.
    fn open_file(&mut self, path: PathBuf, is_revealed: bool, answer: Option<oneshot::Sender<Result<(), String>>>) {
        if self.opening.len() >= MAX_OPENING {
            tracing::warn!("too many files are being opened");
            if let Some(answer) = answer {
                // The client is gone.
                let _gone = answer.send(Err("the desktop is still opening other files".to_owned()));
            }
            return;
        }
        let bus = self.bus.clone();
        self.opening.spawn(async move {
            let show = || {
                let (shown, answered) = oneshot::channel();
                bus.send(Command::ShowFile(files::uri(&path), shown));
                answered
            };
            let opened = if is_revealed {
                files::reveal(&path, show).await
            } else {
                files::open(&path).await
            };
            match answer {
                Some(answer) => {
                    // The client is gone.
                    let _gone = answer.send(opened);
                    Ok(())
                }
                None => opened,
            }
        });
    }

    fn open_window(&mut self, desk: &Desk) -> Done {
        let Some(ticket) = desk.confirmation_ticket().ok().filter(|_| self.has_display) else {
            return Done::NoWindow;
        };
        match window::open(&format!("{}{ticket}", self.page)) {
            Ok(child) => {
                self.window = Some(child);
                self.window_deadline = Some(Instant::now() + window::CONNECT_TIME);
                Done::Yes
            }
            Err(error) => {
                tracing::debug!(%error, "no browser opens a small window");
                Done::NoWindow
            }
        }
    }

    fn open_page(&mut self, desk: &Desk) {
        if let Some(before) = &mut self.browser {
            let _still_open = before.try_wait();
        }
        // Without one, the page asks for the key.
        let ticket = desk.page_ticket().unwrap_or_default();
        match browser::open(&format!("{}{ticket}", self.page)) {
            Ok(child) => self.browser = Some(child),
            Err(error) => tracing::warn!(%error, "the page cannot be opened in a browser"),
        }
    }
}
