//! The desktop's services on the session bus: notifications (Desktop Notifications Specification 1.2), inhibitors of
//! suspending, and suspending itself. Calls block, so they are made on a thread of their own.

use std::{
    collections::BTreeMap,
    io::{self, Read as _, Write as _},
    os::{fd::AsFd as _, unix::net::UnixStream},
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
};

use message_bus::{BusAddress, BusError, Call, Connection, Event, Method, Signal, Writer};
use rustix::event::{PollFd, PollFlags, poll};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use super::state::{Notice, Topic};
#[cfg(feature = "tray")]
use super::tray::{self, Choice, Tray};

/// Commands that wait while a service of the desktop is slow to answer.
const MAX_COMMANDS: usize = 64;

/// Notifications whose buttons work.
const MAX_SHOWN: usize = 128;

const NOTIFICATIONS: &str = "org.freedesktop.Notifications";

/// Signals of the program that shows notifications, and of no other.
const RULE: &str = "type='signal',sender='org.freedesktop.Notifications',interface='org.freedesktop.Notifications'";

/// What the thread does.
#[derive(Debug)]
pub(super) enum Command {
    Show(Topic, Notice),
    Withdraw(Topic),
    KeepAwake(bool),
    Suspend,
    /// Asks the file manager to show the file with this URI in its directory, and reports whether it did.
    ShowFile(String, oneshot::Sender<bool>),
    /// Shows the icon in the tray with this text, or removes it.
    #[cfg(feature = "tray")]
    Tray(Option<String>),
}

/// What it reports.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Report {
    Pressed(Topic, String),
    Closed(Topic),
    /// A notification cannot be shown.
    Unseen(Topic),
    /// The computer cannot be suspended.
    NotSuspended(String),
    /// The user chose an entry of the tray's menu.
    #[cfg(feature = "tray")]
    Chosen(Choice),
}

/// Where the buses are.
#[derive(Debug, Clone, Default)]
pub(super) struct Buses {
    pub(super) session: BusAddress,
    pub(super) system: BusAddress,
}

/// The thread. It ends when all clones of this are dropped.
#[derive(Debug, Clone)]
pub(super) struct Bus {
    commands: SyncSender<Command>,
    wake: Arc<UnixStream>,
}

impl Bus {
    /// Starts the thread. Nothing is connected before the first command.
    pub(super) fn start(buses: Buses) -> io::Result<(Self, mpsc::Receiver<Report>, JoinHandle<()>)> {
        let (commands, received) = sync_channel(MAX_COMMANDS);
        let (wake, woken) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        wake.set_nonblocking(true)?;
        let (reports, reported) = mpsc::channel(MAX_COMMANDS);
        let worker = Worker {
            buses,
            connection: None,
            awake: None,
            shown: BTreeMap::new(),
            #[cfg(feature = "tray")]
            tray: None,
            reports,
        };
        let thread = tokio::task::spawn_blocking(move || worker.run(&received, &woken));
        let wake = Arc::new(wake);
        Ok((Self { commands, wake }, reported, thread))
    }

    /// Queues a command. If the desktop is too slow to take them, it is dropped: nothing depends on what it shows.
    pub(super) fn send(&self, command: Command) {
        match self.commands.try_send(command) {
            // A full pipe wakes the thread, too.
            Ok(()) => drop((&*self.wake).write(&[0])),
            Err(TrySendError::Full(_)) => tracing::warn!("the desktop does not answer; a notification is dropped"),
            Err(TrySendError::Disconnected(_)) => {}
        }
    }
}

/// What keeps the computer awake.
#[derive(Debug)]
enum Inhibitor {
    /// The object of the portal's request.
    Portal(String),
    /// The cookie of another service.
    Cookie(&'static Fallback, u32),
}

/// A service that hands out cookies.
#[derive(Debug)]
struct Fallback {
    destination: &'static str,
    path: &'static str,
    begin: &'static str,
    end: &'static str,
    /// Whether `begin` also takes a window and flags.
    is_gnome: bool,
}

const FALLBACKS: [Fallback; 2] = [
    Fallback {
        destination: "org.gnome.SessionManager",
        path: "/org/gnome/SessionManager",
        begin: "Inhibit",
        end: "Uninhibit",
        is_gnome: true,
    },
    Fallback {
        destination: "org.freedesktop.PowerManagement.Inhibit",
        path: "/org/freedesktop/PowerManagement/Inhibit",
        begin: "Inhibit",
        end: "UnInhibit",
        is_gnome: false,
    },
];

/// "Suspending" among the flags of the portal and of GNOME's session manager.
const SUSPENDING: u32 = 4;

const REASON: &str = "Downloads are running";

struct Worker {
    buses: Buses,
    connection: Option<Connection>,
    awake: Option<Inhibitor>,
    shown: BTreeMap<Topic, u32>,
    /// The icon in the tray, unless the user wants none.
    #[cfg(feature = "tray")]
    tray: Option<Tray>,
    reports: mpsc::Sender<Report>,
}

impl Worker {
    fn run(mut self, commands: &Receiver<Command>, mut woken: &UnixStream) {
        loop {
            loop {
                match commands.try_recv() {
                    Ok(command) => self.carry_out(command),
                    Err(std::sync::mpsc::TryRecvError::Empty) => break,
                    Err(std::sync::mpsc::TryRecvError::Disconnected) => return,
                }
            }
            if let Some(connection) = &mut self.connection {
                match connection.wait(woken.as_fd()) {
                    Ok(Event::Signal(signal)) => self.read(signal),
                    Ok(Event::Call(mut call)) => self.answer(&mut call),
                    Ok(Event::Woken) => {}
                    Err(error) => self.lose(&error),
                }
            } else if wait_for(woken).is_err() {
                return;
            }
            let mut bytes = [0; MAX_COMMANDS];
            let _nothing = woken.read(&mut bytes);
        }
    }

    fn carry_out(&mut self, command: Command) {
        match command {
            Command::Show(topic, notice) => match self.show(&topic, &notice) {
                Ok(id) => self.remember(topic, id),
                Err(error) => {
                    tracing::info!(%error, "no notification can be shown");
                    self.report(Report::Unseen(topic));
                    self.lose_if_broken(&error);
                }
            },
            Command::Withdraw(topic) => {
                if let Some(id) = self.shown.remove(&topic) {
                    let mut arguments = Writer::default();
                    arguments.number(id);
                    // It is gone already, or its program is.
                    let _gone = self.call(of_notifications("CloseNotification"), "u", &arguments, "");
                }
            }
            Command::KeepAwake(true) => {
                if let Err(error) = self.inhibit() {
                    tracing::info!(%error, "the computer cannot be kept awake");
                }
            }
            Command::KeepAwake(false) => self.release(),
            Command::ShowFile(uri, answer) => {
                let is_shown = self.show_file(&uri);
                if let Err(error) = &is_shown {
                    tracing::info!(%error, "no file manager shows the file");
                    self.lose_if_broken(error);
                }
                // The request was given up.
                let _gone = answer.send(is_shown.is_ok());
            }
            #[cfg(feature = "tray")]
            Command::Tray(state) => self.set_tray(state),
            Command::Suspend => {
                if let Err(error) = self.suspend() {
                    self.report(Report::NotSuspended(error.to_string()));
                }
            }
        }
    }

    fn remember(&mut self, topic: Topic, id: u32) {
        self.shown.insert(topic, id);
        // Some programs keep notifications in a list for days. The buttons of the oldest then do nothing.
        if self.shown.len() > MAX_SHOWN
            && let Some(oldest) = self.shown.iter().min_by_key(|(_, id)| **id)
        {
            let oldest = oldest.0.clone();
            self.shown.remove(&oldest);
        }
    }

    /// The interface of file managers (freedesktop.org), which the bus starts a file manager for.
    fn show_file(&mut self, uri: &str) -> Result<(), BusError> {
        let show_items = Method {
            destination: "org.freedesktop.FileManager1",
            path: "/org/freedesktop/FileManager1",
            interface: "org.freedesktop.FileManager1",
            member: "ShowItems",
        };
        let mut arguments = Writer::default();
        arguments.texts(&[uri]).text("");
        self.call(show_items, "ass", &arguments, "").map(drop)
    }

    fn connect(&mut self) -> Result<&mut Connection, BusError> {
        if self.connection.is_none() {
            let mut connection = Connection::open(&self.buses.session)?;
            connection.subscribe(RULE)?;
            #[cfg(feature = "tray")]
            connection.subscribe(tray::WATCHER_RULE)?;
            self.connection = Some(connection);
            #[cfg(feature = "tray")]
            if self.tray.is_some() {
                self.register();
            }
        }
        self.connection.as_mut().ok_or(BusError::Absent(String::new()))
    }

    fn call(
        &mut self,
        method: Method<'_>,
        signature: &str,
        arguments: &Writer,
        expected: &str,
    ) -> Result<message_bus::Reader, BusError> {
        self.connect()?.call(method, signature, arguments, expected)
    }

    /// A connection that does not work is closed; the next command opens another one.
    fn lose_if_broken(&mut self, error: &BusError) {
        if matches!(error, BusError::Broken(_)) {
            self.lose(error);
        }
    }

    fn lose(&mut self, error: &BusError) {
        tracing::info!(%error, "the connection to the desktop's bus is lost");
        self.connection = None;
        self.shown.clear();
        // Inhibitors end with the connection.
        self.awake = None;
    }

    fn show(&mut self, topic: &Topic, notice: &Notice) -> Result<u32, BusError> {
        let mut capabilities = self.call(of_notifications("GetCapabilities"), "", &Writer::default(), "as")?;
        let capabilities = capabilities.paths()?;
        let has = |name: &str| capabilities.iter().any(|capability| capability == name);
        let mut body = if has("body-markup") {
            escaped(&notice.body)
        } else {
            notice.body.clone()
        };
        let mut buttons = Vec::new();
        if has("actions") {
            buttons.extend(notice.buttons.iter().flat_map(|(name, label)| [*name, *label]));
        } else if matches!(topic, Topic::Capture(_) | Topic::Captures) {
            body.push_str("\nAnswer on the page of Svc, or with svc capture");
        }
        let mut arguments = Writer::default();
        arguments
            .text("Svc")
            .number(self.shown.get(topic).copied().unwrap_or(0))
            .text("svc");
        arguments.text(&notice.summary).text(&body).texts(&buttons);
        arguments.structures(|hints| {
            hints.align(8).text("desktop-entry").signature("s").text("svc");
            hints.align(8).text("category").signature("s").text("transfer");
        });
        // Minus one is the program's own time, zero is for ever.
        arguments.number(if notice.stays { 0 } else { u32::MAX });
        let mut reply = self.call(of_notifications("Notify"), "susssasa{sv}i", &arguments, "u")?;
        Ok(reply.number()?)
    }

    /// Shows the icon, changes its text, or removes it, which is to give its name back.
    #[cfg(feature = "tray")]
    fn set_tray(&mut self, state: Option<String>) {
        let Some(state) = state else {
            self.tray = None;
            if let Some(connection) = &mut self.connection
                && let Err(error) = connection.release_name(&tray_name())
            {
                self.lose(&error);
            }
            return;
        };
        let is_new = self.tray.is_none();
        let tray = self.tray.get_or_insert_default();
        tray.set(state);
        let updated = tray.layout_updated();
        let Some(connection) = &mut self.connection else {
            // A new connection registers the icon.
            if let Err(error) = self.connect() {
                tracing::debug!(%error, "no icon in the tray");
            }
            return;
        };
        if is_new {
            return self.register();
        }
        let sent = connection
            .emit(tray::MENU_PATH, tray::MENU, "LayoutUpdated", ("ui", &updated))
            .and_then(|()| connection.emit(tray::ITEM_PATH, tray::ITEM, "NewToolTip", ("", &Writer::default())));
        if let Err(error) = sent {
            self.lose(&error);
        }
    }

    /// Tells the program that shows icons of ours. Without one nothing is shown until one comes.
    #[cfg(feature = "tray")]
    fn register(&mut self) {
        let name = tray_name();
        let register = Method {
            destination: tray::WATCHER,
            path: tray::WATCHER_PATH,
            interface: tray::WATCHER,
            member: "RegisterStatusNotifierItem",
        };
        let Some(connection) = &mut self.connection else { return };
        let registered = connection.request_name(&name).and_then(|_| {
            let mut arguments = Writer::default();
            arguments.text(&name);
            connection.call(register, "s", &arguments, "").map(drop)
        });
        if let Err(error) = registered {
            tracing::debug!(%error, "no program shows icons in a tray");
            self.lose_if_broken(&error);
        }
    }

    #[cfg(feature = "tray")]
    fn answer(&mut self, call: &mut Call) {
        let Some((tray, connection)) = self.tray.as_ref().zip(self.connection.as_mut()) else {
            return self.answer_unknown(call);
        };
        let (answer, choice) = tray.answer(call);
        let sent = match &answer {
            tray::Answer::Body(signature, body) => connection.answer(call, Ok((signature, body))),
            tray::Answer::Error(name, message) => connection.answer(call, Err((name, message))),
        };
        if let Err(error) = sent {
            self.lose(&error);
        }
        if let Some(choice) = choice {
            self.report(Report::Chosen(choice));
        }
    }

    /// This program has no objects.
    #[cfg(not(feature = "tray"))]
    fn answer(&mut self, call: &mut Call) {
        self.answer_unknown(call);
    }

    fn answer_unknown(&mut self, call: &Call) {
        let Some(connection) = &mut self.connection else { return };
        let error = ("org.freedesktop.DBus.Error.UnknownObject", "there is no such object");
        if let Err(error) = connection.answer(call, Err(error)) {
            self.lose(&error);
        }
    }

    fn read(&mut self, mut signal: Signal) {
        #[cfg(feature = "tray")]
        if (&*signal.member, &*signal.signature) == ("NameOwnerChanged", "sss") {
            let owner = signal.body.text().and_then(|_name| {
                signal.body.text()?;
                signal.body.text()
            });
            if owner.is_ok_and(|owner| !owner.is_empty()) && self.tray.is_some() {
                self.register();
            }
            return;
        }
        let Ok(id) = signal.body.number() else { return };
        let Some(topic) = self
            .shown
            .iter()
            .find(|(_, shown)| **shown == id)
            .map(|(topic, _)| topic.clone())
        else {
            return;
        };
        match (
            signal.interface.as_str(),
            signal.member.as_str(),
            signal.signature.as_str(),
        ) {
            (NOTIFICATIONS, "ActionInvoked", "us") => {
                if let Ok(button) = signal.body.text() {
                    self.report(Report::Pressed(topic, button));
                }
            }
            (NOTIFICATIONS, "NotificationClosed", "uu") => {
                self.shown.remove(&topic);
                self.report(Report::Closed(topic));
            }
            _ => {}
        }
    }

    /// The portal works in every desktop and in sandboxes; the others are for desktops without one.
    fn inhibit(&mut self) -> Result<(), BusError> {
        if self.awake.is_some() {
            return Ok(());
        }
        let portal = Method {
            destination: "org.freedesktop.portal.Desktop",
            path: "/org/freedesktop/portal/desktop",
            interface: "org.freedesktop.portal.Inhibit",
            member: "Inhibit",
        };
        let mut arguments = Writer::default();
        arguments.text("").number(SUSPENDING);
        arguments.structures(|options| {
            options.align(8).text("reason").signature("s").text(REASON);
        });
        let mut last = match self.call(portal, "sua{sv}", &arguments, "o") {
            Ok(mut reply) => {
                self.awake = Some(Inhibitor::Portal(reply.text()?));
                return Ok(());
            }
            Err(error) => error,
        };
        for fallback in &FALLBACKS {
            let mut arguments = Writer::default();
            arguments.text("svc");
            let signature = if fallback.is_gnome {
                arguments.number(0).text(REASON).number(SUSPENDING);
                "susu"
            } else {
                arguments.text(REASON);
                "ss"
            };
            match self.call(fallback.method(fallback.begin), signature, &arguments, "u") {
                Ok(mut reply) => {
                    self.awake = Some(Inhibitor::Cookie(fallback, reply.number()?));
                    return Ok(());
                }
                Err(error) => last = error,
            }
        }
        self.lose_if_broken(&last);
        Err(last)
    }

    fn release(&mut self) {
        let released = match self.awake.take() {
            None => return,
            Some(Inhibitor::Portal(path)) => {
                let close = Method {
                    destination: "org.freedesktop.portal.Desktop",
                    path: &path,
                    interface: "org.freedesktop.portal.Request",
                    member: "Close",
                };
                self.call(close, "", &Writer::default(), "")
            }
            Some(Inhibitor::Cookie(fallback, cookie)) => {
                let mut arguments = Writer::default();
                arguments.number(cookie);
                self.call(fallback.method(fallback.end), "u", &arguments, "")
            }
        };
        if let Err(error) = released {
            // A lost connection ends every inhibitor.
            self.lose(&error);
        }
    }

    fn suspend(&mut self) -> Result<(), BusError> {
        self.release();
        let mut system = Connection::open(&self.buses.system)?;
        let method = Method {
            destination: "org.freedesktop.login1",
            path: "/org/freedesktop/login1",
            interface: "org.freedesktop.login1.Manager",
            member: "Suspend",
        };
        let mut arguments = Writer::default();
        // Not interactive: a suspend after the last download must not wait for a password dialog.
        arguments.boolean(false);
        system.call(method, "b", &arguments, "").map(drop)
    }

    fn report(&self, report: Report) {
        // Its reader is gone only when the program ends.
        let _gone = self.reports.blocking_send(report);
    }
}

impl Fallback {
    fn method(&self, member: &'static str) -> Method<'static> {
        Method {
            destination: self.destination,
            path: self.path,
            interface: self.destination,
            member,
        }
    }
}

/// The name of the item on the bus, as hosts know it.
#[cfg(feature = "tray")]
fn tray_name() -> String {
    format!("{}-{}-1", tray::ITEM, std::process::id())
}

fn of_notifications(member: &str) -> Method<'_> {
    Method {
        destination: NOTIFICATIONS,
        path: "/org/freedesktop/Notifications",
        interface: NOTIFICATIONS,
        member,
    }
}

fn wait_for(woken: &UnixStream) -> io::Result<()> {
    let mut waiting = [PollFd::new(woken, PollFlags::IN)];
    match poll(&mut waiting, None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Text where markup is understood.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn without_a_bus_a_notification_is_reported_as_unseen_and_the_thread_ends() {
        let (bus, mut reports, thread) = Bus::start(Buses::default()).unwrap();
        let notice = Notice {
            summary: "s".to_owned(),
            body: "b".to_owned(),
            buttons: Vec::new(),
            stays: false,
        };
        bus.send(Command::Show(Topic::Countdown, notice));
        assert_eq!(reports.recv().await, Some(Report::Unseen(Topic::Countdown)));
        bus.send(Command::KeepAwake(true));
        bus.send(Command::Suspend);
        assert!(matches!(reports.recv().await, Some(Report::NotSuspended(_))));
        drop(bus);
        thread.await.unwrap();
        assert_eq!(escaped("<a>&"), "&lt;a&gt;&amp;");
    }
}
