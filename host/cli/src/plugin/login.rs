//! `svc plugin login`: logs in to an account of a plugin. The service shows screens; this asks and draws them.

mod qr;
mod screen;

use std::{
    collections::BTreeMap,
    fs,
    io::{self, IsTerminal as _, Read as _, Write as _},
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use clap::builder::PossibleValuesParser;
use command::{
    Exit, UsageError,
    environment::Environment,
    note, print_bytes, print_lines, prompt,
    stop::StopRequests,
    terminal::{self, printable},
};
use plugin_host::runtime::{LoginMode, Screen};
use protocol::{
    LoginScreenDto, MAX_REQUEST_BYTES, Method, PluginAuthAction, PluginAuthRequest, PluginAuthResponse,
    PluginAuthStatus, PluginDto, RpcError,
};
use transfer::Secret;

use self::screen::{Question, Shown};
use super::find::find;
use crate::service::{Client, RemoteError, ServiceArgs};

/// How long the service may take to cancel a login that the user does not want any more.
const CANCEL_TIME: Duration = Duration::from_secs(5);

pub(crate) const EXAMPLES: &str = "Examples:
  svc plugin login acme                        the way that the plugin prefers; Ctrl-C cancels
  svc plugin login acme --mode password        asks for name and password, and for a code
  svc plugin login acme --cookies cookies.txt  with the cookies that a browser exported
  svc plugin login forum --site https://forum.example

QR codes are drawn for the site's app. Without a terminal, what is asked for is read from standard input, a line each. \
With --json, each answer of the service is a line.

Passwords and codes go to the service and from there to hosts that you allowed; the plugin gets the names of their fields. \
The plugin reads what you type into other fields, such as a user name.";

#[derive(Debug, clap::Args)]
pub struct LoginArgs {
    /// Name of the plugin, as "svc plugin list" shows it
    plugin: String,
    /// Which account, as "svc plugin accounts" shows it [default: the only one]
    #[arg(long, value_name = "SLOT")]
    slot: Option<String>,
    /// How to log in [default: the way that the plugin prefers]
    #[arg(long, value_parser = PossibleValuesParser::new(LoginMode::ALL.iter().map(|mode| mode.name())))]
    mode: Option<String>,
    /// The site, for plugins of several sites
    #[arg(long, value_name = "URL", value_hint = clap::ValueHint::Url)]
    site: Option<String>,
    /// File with a browser's cookies (cookies.txt or JSON), - for standard input; implies --mode cookie
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    cookies: Option<PathBuf>,
    #[command(flatten)]
    service: ServiceArgs,
}

/// How a login ended.
enum End {
    /// With this message.
    Succeeded(String),
    Failed(String),
    /// The user wants no login any more.
    Stopped,
}

pub(crate) async fn run(args: &LoginArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let (mode, cookies) = way(args)?;
    let mut client = args.service.connect(environment).await?;
    let PluginDto { identity, .. } = find(&mut client, &args.plugin).await?;
    let begin = PluginAuthRequest {
        slot: args.slot.clone(),
        mode,
        site: args.site.clone(),
        ..PluginAuthRequest::new(Some(identity.clone()), PluginAuthAction::Begin)
    };
    let draws = io::stderr().is_terminal() && !environment.is_dumb_terminal;
    let mut login = Login {
        client,
        stop: StopRequests::listen().context("cannot listen for signals")?,
        identity,
        session: None,
        cookies,
        columns: draws.then(|| terminal::size().0),
        shown: Shown::default(),
        json: args.service.json,
    };
    let ended = login.drive(begin).await;
    if !matches!(ended, Ok(End::Succeeded(_))) {
        login.cancel().await;
    }
    let identity = login.identity;
    match ended? {
        End::Succeeded(_) if args.service.json => Ok(Exit::Success),
        End::Succeeded(message) => print_lines([format!("{identity}: {message}")]),
        End::Failed(message) => {
            note(&format!("{identity}: {message}"));
            Ok(Exit::Unauthorized)
        }
        End::Stopped => {
            note("the login was cancelled");
            Ok(Exit::Unfinished)
        }
    }
}

/// The mode, and the cookies that the user has given.
fn way(args: &LoginArgs) -> Result<(Option<String>, Option<Secret>), UsageError> {
    let by_cookies = LoginMode::Cookie.name();
    let Some(path) = &args.cookies else {
        return Ok((args.mode.clone(), None));
    };
    if args.mode.as_deref().is_some_and(|mode| mode != by_cookies) {
        return Err(UsageError::new(
            "--cookies",
            format!("it belongs to --mode {by_cookies}"),
        ));
    }
    Ok((Some(by_cookies.to_owned()), Some(read_cookies(path)?)))
}

/// Reads a browser's export. The service says if it is too large for a login.
fn read_cookies(path: &Path) -> Result<Secret, UsageError> {
    let (mut text, limit) = (String::new(), MAX_REQUEST_BYTES as u64);
    let read = if path.as_os_str() == "-" {
        io::stdin().take(limit).read_to_string(&mut text)
    } else {
        fs::File::open(path).and_then(|file| file.take(limit).read_to_string(&mut text))
    };
    let refuse = |error| UsageError::new("--cookies", format!("cannot read {}: {error}", path.display()));
    read.map_err(refuse)?;
    Ok(Secret::new(text))
}

/// A login that is going on.
struct Login {
    client: Client,
    stop: StopRequests,
    identity: String,
    /// Known once it has begun.
    session: Option<String>,
    /// The cookies to answer with, until they were sent.
    cookies: Option<Secret>,
    /// The width of the terminal that codes are drawn on, if there is one.
    columns: Option<usize>,
    shown: Shown,
    /// Answers are printed as they are, instead of being shown.
    json: bool,
}

impl Login {
    async fn drive(&mut self, begin: PluginAuthRequest) -> anyhow::Result<End> {
        let (mut request, mut screen) = (begin, LoginScreenDto::default());
        loop {
            match self.send(&request).await {
                Ok(None) => return Ok(End::Stopped),
                Ok(Some(answer)) => match self.take(answer)? {
                    ControlFlow::Continue(next) => screen = next,
                    ControlFlow::Break(end) => return Ok(end),
                },
                // The login is as it was before.
                Err(RemoteError::Call(error)) if is_correctable(&request, &error) => {
                    note(&error.message);
                }
                Err(error) => return Err(error.into()),
            }
            request = match self.next(&screen).await? {
                ControlFlow::Continue(next) => next,
                ControlFlow::Break(end) => return Ok(end),
            };
        }
    }

    /// Sends a request; `None` if the user stops it.
    async fn send(&mut self, request: &PluginAuthRequest) -> Result<Option<PluginAuthResponse>, RemoteError> {
        tokio::select! {
            biased;
            () = self.stop.next() => Ok(None),
            answer = self.client.call(Method::PluginAuth, request) => answer.map(Some),
        }
    }

    /// Shows an answer, and returns the screen if the login goes on.
    fn take(&mut self, answer: PluginAuthResponse) -> anyhow::Result<ControlFlow<End, LoginScreenDto>> {
        if self.json {
            let line = serde_json::to_string(&answer).context("cannot write JSON")?;
            print_bytes(format!("{line}\n").as_bytes())?;
        }
        let PluginAuthResponse {
            status,
            session_id,
            message,
            screen,
            ..
        } = answer;
        self.session = Some(session_id);
        match status {
            PluginAuthStatus::Pending => {}
            PluginAuthStatus::Success => return Ok(ControlFlow::Break(End::Succeeded(message))),
            PluginAuthStatus::Error => return Ok(ControlFlow::Break(End::Failed(message))),
        }
        let screen = screen.unwrap_or_default();
        if !self.json {
            show(&self.shown.news(&screen, self.columns));
        }
        Ok(ControlFlow::Continue(screen))
    }

    /// The next request: the user's answers, or a poll after the pause of the screen.
    async fn next(&mut self, screen: &LoginScreenDto) -> anyhow::Result<ControlFlow<End, PluginAuthRequest>> {
        let questions = screen::questions(screen);
        if questions.is_empty() {
            let poll = self.request(PluginAuthAction::Poll);
            let pause = tokio::time::sleep(screen::pause(screen));
            return Ok(tokio::select! {
                biased;
                () = self.stop.next() => ControlFlow::Break(End::Stopped),
                () = pause => ControlFlow::Continue(poll),
            });
        }
        let values = match self.ask_all(&questions, screen)? {
            ControlFlow::Continue(values) => values,
            ControlFlow::Break(end) => return Ok(ControlFlow::Break(end)),
        };
        let is_poll = screen.poll_after_ms.is_some() && values.values().all(String::is_empty);
        Ok(ControlFlow::Continue(if is_poll {
            self.request(PluginAuthAction::Poll)
        } else {
            self.shown.repeat_message();
            PluginAuthRequest {
                values: Some(values),
                ..self.request(PluginAuthAction::Answer)
            }
        }))
    }

    fn ask_all(
        &mut self,
        questions: &[Question],
        screen: &LoginScreenDto,
    ) -> anyhow::Result<ControlFlow<End, BTreeMap<String, String>>> {
        if screen.poll_after_ms.is_some() && io::stdin().is_terminal() {
            note("Enter alone asks the site whether it needs this any more.");
        }
        let mut values = BTreeMap::new();
        for question in questions {
            match self.ask(question) {
                Ok(Some(answer)) => drop(values.insert(question.key.clone(), answer)),
                Ok(None) => return Ok(ControlFlow::Break(End::Failed(missing(question, &screen.message)))),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    return Ok(ControlFlow::Break(End::Stopped));
                }
                Err(error) => return Err(error).context("cannot ask on the terminal"),
            }
        }
        Ok(ControlFlow::Continue(values))
    }

    /// Asks on the terminal, else reads standard input; `None` if there is no answer.
    fn ask(&mut self, question: &Question) -> io::Result<Option<String>> {
        if question.key == Screen::COOKIES {
            // Many lines, which a terminal would not hide.
            return Ok(self.cookies.take().map(|cookies| cookies.expose().to_owned()));
        }
        let label = format!("{}: ", printable(&question.prompt()));
        match (io::stdin().is_terminal(), question.is_secret) {
            (true, true) => prompt::ask_secret(&label).map(Some),
            (true, false) => prompt::ask(&label).map(Some),
            (false, _) => prompt::next_line(),
        }
    }

    fn request(&self, action: PluginAuthAction) -> PluginAuthRequest {
        PluginAuthRequest {
            session_id: self.session.clone(),
            ..PluginAuthRequest::new(Some(self.identity.clone()), action)
        }
    }

    /// Cancels a login that did not succeed. If that fails, the service ends it some minutes later.
    async fn cancel(&mut self) {
        if self.session.is_none() {
            return;
        }
        let request = self.request(PluginAuthAction::Cancel);
        let cancel = self.client.call::<PluginAuthResponse>(Method::PluginAuth, &request);
        let _best_effort = tokio::time::timeout(CANCEL_TIME, cancel).await;
    }
}

/// Whether the user can correct what was refused: an answer, on a terminal.
fn is_correctable(request: &PluginAuthRequest, error: &RpcError) -> bool {
    let field = error.data.as_ref().and_then(|data| data.field.as_deref());
    let is_answer = request.action == PluginAuthAction::Answer;
    is_answer && field == Some("values") && io::stdin().is_terminal()
}

/// Why a login cannot go on that asks for something, after the screen's message.
fn missing(question: &Question, message: &str) -> String {
    let what = if question.key == Screen::COOKIES {
        "the cookies of a browser are given with --cookies FILE".to_owned()
    } else {
        format!("standard input has no answer to {:?}", question.label)
    };
    if message.is_empty() {
        what
    } else {
        format!("{what}: {message}")
    }
}

/// Shows lines as they are.
fn show(lines: &[String]) {
    let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
    let _closed = io::stderr().write_all(text.as_bytes());
}
