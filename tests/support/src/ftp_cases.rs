//! The table of hostile servers of FTP: every way such a server can lie that we know of, and what a very careful downloader
//! makes of it.

use crate::{
    case::Expect::{self, Error, Identical, IdenticalOrError},
    content::Content,
    ftp::{At, FTP_LOGIN, FtpSecurity, FtpServer, FtpSetting, Wrong},
    tls::Certificate,
};

/// Large enough for four connections, and not a round number.
const FILE_BYTES: u64 = (3 << 20) + 12_345;

const PATH: &str = "pub/data.bin";

/// Nothing beyond the address of the machine itself is reachable for a test; this one is never connected to.
const ELSEWHERE: [u8; 4] = [127, 9, 9, 9];

/// What a server that cannot be talked to may be called.
const BROKEN: &[&str] = &["network", "timeout", "malformed-response"];

/// Something that must hold at the server after the run.
pub type FtpCheck = fn(&FtpServer) -> Result<(), String>;

/// A way in which a server misbehaves.
#[derive(Debug, Clone, Copy)]
pub struct FtpCase {
    /// Its name, in kebab-case.
    pub name: &'static str,
    /// What the server does, in one sentence.
    pub what: &'static str,
    /// What a downloader must make of it.
    pub expect: Expect,
    stage: fn() -> FtpScene,
}

impl FtpCase {
    /// Starts the server.
    pub fn stage(&self) -> FtpScene {
        (self.stage)()
    }
}

/// The server of a case at work, and what a downloader needs to know of it.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent conditions of a case")]
pub struct FtpScene {
    /// The server. It ends when the scene is dropped.
    pub server: FtpServer,
    /// What to download.
    pub url: String,
    /// What the files may be, by name: for each one of these as a whole.
    pub truths: Vec<(&'static str, Vec<Content>)>,
    /// Options that the downloader is given.
    pub options: Vec<&'static str>,
    /// Whether the downloader trusts the server's authority.
    pub trusts_authority: bool,
    /// A first run that has to fail and to leave something behind it.
    pub is_second_run: bool,
    /// Something that must hold at the server after the run.
    pub check: Option<FtpCheck>,
    /// Only a downloader that was told to use several connections meets it.
    pub needs_segments: bool,
}

impl FtpScene {
    fn new(setting: FtpSetting) -> Self {
        Self::of(setting, vec![content()])
    }

    fn of(setting: FtpSetting, truths: Vec<Content>) -> Self {
        let server = FtpServer::start(setting);
        Self {
            url: server.url(PATH),
            server,
            truths: vec![("data.bin", truths)],
            options: Vec::new(),
            trusts_authority: true,
            is_second_run: false,
            check: None,
            needs_segments: false,
        }
    }

    fn at(self, path: &str) -> Self {
        Self {
            url: self.server.url(path),
            ..self
        }
    }

    fn check(self, check: FtpCheck) -> Self {
        Self {
            check: Some(check),
            ..self
        }
    }

    fn second_run(self) -> Self {
        Self {
            is_second_run: true,
            options: vec!["--retries", "0", "--max-connections", "1"],
            ..self
        }
    }

    fn in_segments(self) -> Self {
        Self {
            needs_segments: true,
            ..self
        }
    }
}

fn content() -> Content {
    Content::seeded(1, FILE_BYTES)
}

fn file() -> FtpSetting {
    FtpSetting::new(PATH, content())
}

fn wrong(at: At, wrong: Wrong) -> FtpScene {
    FtpScene::new(file().wrong(at, wrong))
}

const fn case(name: &'static str, what: &'static str, expect: Expect, stage: fn() -> FtpScene) -> FtpCase {
    FtpCase {
        name,
        what,
        expect,
        stage,
    }
}

/// Every case under the heading of its theme, in the order of the documentation.
pub fn ftp_themes() -> Vec<(&'static str, Vec<FtpCase>)> {
    vec![
        ("Continuing a file", restarts()),
        ("Size and end", ends()),
        ("Files that change", changes()),
        ("Data connections", channels()),
        ("Replies", replies()),
        ("Logins and limits", logins()),
        ("TLS", tls()),
        ("Paths and directories", paths()),
    ]
}

fn restarts() -> Vec<FtpCase> {
    vec![
        case("restart-refused", "Refuses REST.", Identical, || {
            let setting = file().wrong(At::first("RETR"), Wrong::Cut(1 << 20, b"426 cut\r\n"));
            FtpScene::new(setting.wrong(At::every("REST"), Wrong::Reply(b"502 no REST\r\n")))
        }),
        case(
            "restart-ignored",
            "Agrees to REST and sends the file from its start.",
            Identical,
            || {
                let setting = file().wrong(At::first("RETR"), Wrong::Cut(1 << 20, b"426 cut\r\n"));
                FtpScene::new(setting.wrong(At::later("RETR"), Wrong::IgnoresRestart))
            },
        ),
        case(
            "restart-ignored-same-bytes",
            "Agrees to REST, ignores it, and the file has the same bytes everywhere.",
            Identical,
            || {
                let content = Content::bytes(vec![7; 3 << 20]);
                let setting = FtpSetting::new(PATH, content.clone());
                let setting = setting.wrong(At::first("RETR"), Wrong::Cut(1 << 20, b"426 cut\r\n"));
                FtpScene::of(setting.wrong(At::later("RETR"), Wrong::IgnoresRestart), vec![content])
            },
        ),
        case(
            "restart-shifted",
            "Begins some bytes behind the one that REST names.",
            Identical,
            || {
                let setting = file().wrong(At::first("RETR"), Wrong::Cut(1 << 20, b"426 cut\r\n"));
                FtpScene::new(setting.wrong(At::nth("RETR", 1, 3), Wrong::Shifted(3)))
            },
        ),
        case(
            "restart-shifted-always",
            "Always begins some bytes behind the one that REST names.",
            Identical,
            || {
                let setting = file().wrong(At::first("RETR"), Wrong::Cut(1 << 20, b"426 cut\r\n"));
                FtpScene::new(setting.wrong(At::later("RETR"), Wrong::Shifted(1)))
            },
        ),
        case(
            "restart-ignored-in-segments",
            "Ignores REST on every connection but the first.",
            Identical,
            || wrong(At::later("RETR"), Wrong::IgnoresRestart).in_segments(),
        ),
        case(
            "restart-in-next-run",
            "Ignores REST when a later run continues.",
            Identical,
            || {
                let setting = file().wrong(At::first("RETR"), Wrong::Cut(2 << 20, b"426 cut\r\n"));
                FtpScene::new(setting.wrong(At::later("RETR"), Wrong::IgnoresRestart)).second_run()
            },
        ),
        case(
            "broken-everywhere",
            "Breaks every transfer after a part.",
            Identical,
            || wrong(At::every("RETR"), Wrong::Cut(700 << 10, b"426 cut\r\n")),
        ),
    ]
}

#[expect(clippy::too_many_lines, reason = "one row for each case")]
fn ends() -> Vec<FtpCase> {
    vec![
        case(
            "size-too-large",
            "Announces more bytes with SIZE than it sends.",
            Error(&["size-mismatch", "not-the-file"]),
            || wrong(At::every("SIZE"), Wrong::Reply(b"213 3158074\r\n")),
        ),
        case(
            "size-too-small",
            "Announces fewer bytes with SIZE than it sends.",
            Error(&["size-mismatch"]),
            || wrong(At::every("SIZE"), Wrong::Reply(b"213 3158072\r\n")),
        ),
        case("size-refused", "Has no SIZE.", Identical, || {
            wrong(At::every("SIZE"), Wrong::Reply(b"502 no SIZE\r\n"))
        }),
        case("size-no-number", "Answers SIZE with no number.", Identical, || {
            wrong(At::every("SIZE"), Wrong::Reply(b"213 many\r\n"))
        }),
        case(
            "size-huge",
            "Announces 2^64 - 1 bytes.",
            Error(&["disk-full", "size-mismatch"]),
            || wrong(At::every("SIZE"), Wrong::Reply(b"213 18446744073709551615\r\n")),
        ),
        case(
            "cut-and-complete",
            "Sends a part and says that it sent all.",
            Error(&["size-mismatch"]),
            || {
                wrong(At::every("RETR"), Wrong::Cut(100_000, b"226 complete\r\n")).check(|server| {
                    if server.count("RETR") < 2 {
                        Err("it was asked once".to_owned())
                    } else {
                        Ok(())
                    }
                })
            },
        ),
        case(
            "cut-and-complete-once",
            "Sends a part once and says that it sent all.",
            Identical,
            || wrong(At::first("RETR"), Wrong::Cut(1_000_000, b"226 complete\r\n")),
        ),
        case(
            "cut-without-size",
            "Has no SIZE, sends a part and says that it broke off.",
            Error(&["network"]),
            || {
                let setting = file().wrong(At::every("SIZE"), Wrong::Reply(b"550 no\r\n"));
                FtpScene::new(setting.wrong(At::every("RETR"), Wrong::Cut(100_000, b"426 cut\r\n")))
            },
        ),
        case(
            "more-than-size",
            "Sends more bytes than it announced.",
            Error(&["size-mismatch"]),
            || wrong(At::every("RETR"), Wrong::More(1000)),
        ),
        case(
            "no-final-reply",
            "Never says that it sent all.",
            Error(&["timeout"]),
            || wrong(At::every("RETR"), Wrong::Final(b"")),
        ),
        case(
            "final-reply-refuses",
            "Says that it broke off after all bytes came.",
            Error(&["network"]),
            || wrong(At::every("RETR"), Wrong::Final(b"426 broken\r\n")),
        ),
        case(
            "final-reply-refuses-once",
            "Says once that it broke off after all bytes came.",
            Identical,
            || wrong(At::first("RETR"), Wrong::Final(b"451 local error\r\n")),
        ),
        case("empty-file", "Has an empty file.", Identical, || {
            let empty = Content::bytes(Vec::new());
            FtpScene::of(FtpSetting::new(PATH, empty.clone()), vec![empty])
        }),
    ]
}

fn changes() -> Vec<FtpCase> {
    vec![
        case(
            "changed-between-runs",
            "Has another file, of another time, when a later run continues.",
            Identical,
            || {
                let later = Content::seeded(2, FILE_BYTES);
                let setting = file().wrong(At::first("RETR"), Wrong::Cut(2 << 20, b"426 cut\r\n"));
                let setting = setting.later(1, later.clone()).changed(1, "20260202030405");
                FtpScene::of(setting, vec![later]).second_run()
            },
        ),
        case(
            "resized-between-runs",
            "Has a longer file when a later run continues.",
            Identical,
            || {
                let later = Content::seeded(1, FILE_BYTES + 5000);
                let setting = file().wrong(At::first("RETR"), Wrong::Cut(2 << 20, b"426 cut\r\n"));
                FtpScene::of(setting.later(1, later.clone()), vec![later]).second_run()
            },
        ),
        case(
            "changed-secretly",
            "Has another file of the same size and time when a later run continues.",
            Identical,
            || {
                let later = Content::seeded(2, FILE_BYTES);
                let setting = file().wrong(At::first("RETR"), Wrong::Cut(2 << 20, b"426 cut\r\n"));
                FtpScene::of(setting.later(1, later.clone()), vec![later]).second_run()
            },
        ),
        case(
            "touched-only",
            "Gives the same file another time when a later run continues.",
            Identical,
            || {
                let setting = file().wrong(At::first("RETR"), Wrong::Cut(2 << 20, b"426 cut\r\n"));
                FtpScene::new(setting.changed(1, "20260202030405")).second_run()
            },
        ),
        case("time-no-time", "Answers MDTM with no time.", Identical, || {
            wrong(At::every("MDTM"), Wrong::Reply(b"213 yesterday\r\n"))
        }),
    ]
}

fn channels() -> Vec<FtpCase> {
    vec![
        case("epsv-refused", "Refuses EPSV.", Identical, || {
            wrong(At::every("EPSV"), Wrong::Reply(b"500 what\r\n"))
        }),
        case(
            "epsv-port-closed",
            "Names a port with EPSV that nothing listens on.",
            Identical,
            || wrong(At::every("EPSV"), Wrong::ClosedPort),
        ),
        case(
            "passive-refused",
            "Refuses EPSV and PASV.",
            Error(&["unexpected-status"]),
            || {
                let setting = file().wrong(At::every("EPSV"), Wrong::Reply(b"500 what\r\n"));
                FtpScene::new(setting.wrong(At::every("PASV"), Wrong::Reply(b"502 active only\r\n")))
            },
        ),
        case("passive-other-host", "Names another host with PASV.", Identical, || {
            let setting = file().wrong(At::every("EPSV"), Wrong::Reply(b"500 what\r\n"));
            FtpScene::new(setting.wrong(At::every("PASV"), Wrong::OtherHost(ELSEWHERE))).check(|server| {
                match server.data_connections() {
                    0 => Err("the data connection went elsewhere".to_owned()),
                    _ => Ok(()),
                }
            })
        }),
        case(
            "passive-no-port",
            "Names no port.",
            Error(&["malformed-response"]),
            || wrong(At::every("EPSV"), Wrong::Reply(b"229 somewhere\r\n")),
        ),
        case(
            "passive-port-zero",
            "Names port 0.",
            Error(&["malformed-response"]),
            || wrong(At::every("EPSV"), Wrong::Reply(b"229 here (|||0|)\r\n")),
        ),
        case(
            "data-port-closed",
            "Names ports that nothing listens on.",
            Error(&["connect"]),
            || {
                let setting = file().wrong(At::every("EPSV"), Wrong::ClosedPort);
                FtpScene::new(setting.wrong(At::every("PASV"), Wrong::ClosedPort))
            },
        ),
        case(
            "data-never-accepted",
            "Never sends anything over the data connection.",
            Error(&["timeout"]),
            || wrong(At::every("EPSV"), Wrong::Unaccepted),
        ),
        case("data-refused", "Answers RETR with 425.", Error(&["network"]), || {
            wrong(At::every("RETR"), Wrong::Reply(b"425 cannot open data connection\r\n"))
        }),
        case("data-stalls", "Stops in the middle of the file.", Identical, || {
            wrong(At::first("RETR"), Wrong::Stall(1 << 20))
        }),
        case(
            "data-reset",
            "Resets the data connection in the middle of the file.",
            Identical,
            || wrong(At::first("RETR"), Wrong::Reset(1 << 20)),
        ),
        case("data-slow", "Sends slowly.", Identical, || {
            wrong(At::first("RETR"), Wrong::Slow(2 << 20))
        }),
    ]
}

fn replies() -> Vec<FtpCase> {
    vec![
        case(
            "no-ftp",
            "Speaks another protocol.",
            Error(&["malformed-response"]),
            || wrong(At::every("WELCOME"), Wrong::Reply(b"SSH-2.0-OpenSSH_9.2\r\n")),
        ),
        case("silent", "Says nothing.", Error(&["timeout"]), || {
            wrong(At::every("WELCOME"), Wrong::Silent)
        }),
        case(
            "welcome-closes",
            "Closes the connection at once.",
            Error(&["network"]),
            || wrong(At::every("WELCOME"), Wrong::Close),
        ),
        case(
            "reply-endless-line",
            "Sends a line without an end.",
            Error(&["malformed-response"]),
            || wrong(At::every("WELCOME"), Wrong::Endless(&[b'2'; 4096])),
        ),
        case(
            "reply-endless-lines",
            "Sends a reply of lines without an end.",
            Error(&["malformed-response"]),
            || wrong(At::every("FEAT"), Wrong::Endless(b"211-more\r\n")),
        ),
        case(
            "reply-endless-preliminary",
            "Sends preliminary replies without an end.",
            Error(&["malformed-response"]),
            || wrong(At::every("TYPE"), Wrong::Endless(b"120 soon\r\n")),
        ),
        case(
            "reply-behind",
            "Sends a reply that nothing asked for.",
            IdenticalOrError(BROKEN),
            || wrong(At::every("TYPE"), Wrong::Behind(b"200 again\r\n")),
        ),
        case(
            "reply-silent-size",
            "Does not answer SIZE.",
            Error(&["timeout"]),
            || wrong(At::every("SIZE"), Wrong::Silent),
        ),
        case(
            "retrieve-ends-at-once",
            "Says that it sent the file before it begins.",
            Error(&["malformed-response"]),
            || wrong(At::every("RETR"), Wrong::Reply(b"226 complete\r\n")),
        ),
        case("features-unknown", "Has no FEAT.", Identical, || {
            wrong(At::every("FEAT"), Wrong::Reply(b"500 what\r\n"))
        }),
    ]
}

fn logins() -> Vec<FtpCase> {
    vec![
        case("login-refused", "Refuses the login.", Error(&["unauthorized"]), || {
            FtpScene::new(file().login())
        }),
        case(
            "login-echoed",
            "Repeats the password in its refusal.",
            Error(&["unauthorized"]),
            || {
                let scene = wrong(At::every("PASS"), Wrong::Reply(b"530 canary-password is wrong\r\n"));
                let (user, password) = FTP_LOGIN;
                let url = scene.url.replace("://", &format!("://{user}:{password}@"));
                FtpScene { url, ..scene }
            },
        ),
        case(
            "login-wants-account",
            "Wants an account beside user and password.",
            Error(&["unauthorized"]),
            || wrong(At::every("PASS"), Wrong::Reply(b"332 account\r\n")),
        ),
        case("one-login-only", "Allows one login at a time.", Identical, || {
            wrong(At::nth("PASS", 1, 1), Wrong::Reply(b"421 too many\r\n")).in_segments()
        }),
        case(
            "second-login-refused",
            "Refuses every login but the first.",
            Identical,
            || {
                let setting = file().wrong(At::later("PASS"), Wrong::Reply(b"530 too many\r\n"));
                FtpScene::new(setting.wrong(At::first("RETR"), Wrong::Slow(8 << 20))).in_segments()
            },
        ),
        case("busy", "Is busy twice.", Identical, || {
            wrong(At::nth("WELCOME", 0, 1), Wrong::Reply(b"421 later\r\n"))
        }),
        case("busy-for-ever", "Is always busy.", Error(&["busy"]), || {
            wrong(At::every("WELCOME"), Wrong::Reply(b"421 later\r\n"))
        }),
        case(
            "goes-away",
            "Says 421 in the middle of the file, and closes.",
            Identical,
            || wrong(At::first("RETR"), Wrong::Cut(1 << 20, b"421 going down\r\n")),
        ),
    ]
}

#[expect(clippy::too_many_lines, reason = "one row for each case")]
fn tls() -> Vec<FtpCase> {
    vec![
        case("tls-explicit", "Uses TLS after AUTH.", Identical, || {
            FtpScene::new(file().secured(FtpSecurity::Explicit, Certificate::Trusted)).check(private)
        }),
        case("tls-implicit", "Uses TLS from the start.", Identical, || {
            FtpScene::new(file().secured(FtpSecurity::Implicit, Certificate::Trusted)).check(private)
        }),
        case("tls-refused", "Refuses AUTH.", Error(&["tls"]), || {
            let setting = file().secured(FtpSecurity::Explicit, Certificate::Trusted);
            FtpScene::new(setting.wrong(At::every("AUTH"), Wrong::Reply(b"502 no TLS\r\n"))).check(nothing_in_clear)
        }),
        case(
            "tls-more-in-clear",
            "Sends a reply in clear behind its agreement to TLS.",
            Error(&["tls"]),
            || {
                let setting = file().secured(FtpSecurity::Explicit, Certificate::Trusted);
                let more = Wrong::Behind(b"230 in already\r\n");
                FtpScene::new(setting.wrong(At::every("AUTH"), more)).check(nothing_in_clear)
            },
        ),
        case("tls-data-refused", "Refuses TLS for files.", Error(&["tls"]), || {
            let setting = file().secured(FtpSecurity::Explicit, Certificate::Trusted);
            FtpScene::new(setting.wrong(At::every("PROT"), Wrong::Reply(b"536 no\r\n"))).check(|server| {
                if server.count("RETR") == 0 {
                    Ok(())
                } else {
                    Err("the file was asked for".to_owned())
                }
            })
        }),
        case(
            "tls-data-in-clear",
            "Sends the file in clear although it agreed to TLS.",
            Error(&["tls", "network"]),
            || {
                let setting = file().secured(FtpSecurity::Explicit, Certificate::Trusted);
                FtpScene::new(setting.wrong(At::every("RETR"), Wrong::ClearData))
            },
        ),
        case(
            "tls-cut",
            "Ends TLS of the data connection without saying so.",
            Identical,
            || {
                let setting = file().secured(FtpSecurity::Explicit, Certificate::Trusted);
                FtpScene::new(setting.wrong(At::every("RETR"), Wrong::CutTls))
            },
        ),
        case(
            "tls-cut-without-size",
            "Ends TLS without saying so, and has no SIZE.",
            Error(&["network"]),
            || {
                let setting = file().secured(FtpSecurity::Explicit, Certificate::Trusted);
                let setting = setting.wrong(At::every("SIZE"), Wrong::Reply(b"502 no\r\n"));
                FtpScene::new(setting.wrong(At::every("RETR"), Wrong::CutTls))
            },
        ),
        case(
            "tls-self-signed",
            "Shows a certificate of its own.",
            Error(&["tls"]),
            || untrusted(FtpSecurity::Explicit, Certificate::SelfSigned),
        ),
        case(
            "tls-expired",
            "Shows a certificate whose time is over.",
            Error(&["tls"]),
            || untrusted(FtpSecurity::Implicit, Certificate::Expired),
        ),
        case(
            "tls-wrong-name",
            "Shows a certificate of another host.",
            Error(&["tls"]),
            || untrusted(FtpSecurity::Explicit, Certificate::WrongName),
        ),
        case(
            "tls-not-implicit",
            "Speaks in clear where TLS is expected.",
            Error(&["tls", "network"]),
            || {
                let scene = FtpScene::new(file());
                let url = scene.url.replace("ftp://", "ftps://");
                FtpScene { url, ..scene }
            },
        ),
    ]
}

fn untrusted(security: FtpSecurity, certificate: Certificate) -> FtpScene {
    let scene = FtpScene::new(file().secured(security, certificate)).check(nothing_in_clear);
    FtpScene {
        trusts_authority: certificate != Certificate::SelfSigned,
        ..scene
    }
}

/// Nothing was sent that a listener could use.
fn nothing_in_clear(server: &FtpServer) -> Result<(), String> {
    match server.count("USER") + server.count("PASS") {
        0 => Ok(()),
        _ => Err(format!("a login was sent: {:?}", server.commands())),
    }
}

fn private(server: &FtpServer) -> Result<(), String> {
    if server.count("PROT P") > 0 {
        Ok(())
    } else {
        Err("the data connection was not private".to_owned())
    }
}

#[expect(clippy::too_many_lines, reason = "one row for each case")]
fn paths() -> Vec<FtpCase> {
    vec![
        case(
            "path-line-end",
            "Has a file whose URL holds a line end and a command.",
            Error(&["invalid-source"]),
            || {
                FtpScene::new(file())
                    .at("pub/data.bin%0d%0aDELE%20pub/data.bin")
                    .check(|server| {
                        if server.commands().is_empty() {
                            Ok(())
                        } else {
                            Err(format!("something was sent: {:?}", server.commands()))
                        }
                    })
            },
        ),
        case(
            "path-nul",
            "Has a file whose URL holds a NUL character.",
            Error(&["invalid-source"]),
            || FtpScene::new(file()).at("pub/data.bin%00"),
        ),
        case(
            "path-ascii",
            "Is asked for a conversion of line ends.",
            Error(&["invalid-source"]),
            || FtpScene::new(file()).at("pub/data.bin;type=a"),
        ),
        case("not-found", "Has no such file.", Error(&["not-found"]), || {
            FtpScene::new(file()).at("pub/none.bin")
        }),
        case(
            "directory-without-slash",
            "Has a directory where a file is asked for.",
            Error(&["not-the-file"]),
            || FtpScene::new(file().directory(b"pub")).at("pub"),
        ),
        case("directory", "Has a directory with one below it.", Identical, || {
            let other = Content::seeded(3, 5000);
            let setting = file()
                .directory(b"pub")
                .directory(b"pub/below")
                .file(b"pub/below/other.bin", other.clone());
            let scene = FtpScene::new(setting).at("pub/");
            FtpScene {
                truths: vec![("pub/data.bin", vec![content()]), ("pub/below/other.bin", vec![other])],
                ..scene
            }
        }),
        case("directory-list-only", "Has no MLSD.", Identical, || {
            let other = Content::seeded(3, 5000);
            let setting = file().directory(b"pub").file(b"pub/a b.bin", other.clone());
            let scene = FtpScene::new(setting.features(b"500 what\r\n")).at("pub/");
            FtpScene {
                truths: vec![("pub/data.bin", vec![content()]), ("pub/a b.bin", vec![other])],
                ..scene
            }
        }),
        case(
            "directory-tricks",
            "Lists names that lead out of the directory, links and devices.",
            Identical,
            || {
                const LISTING: &[u8] = b"type=file;size=5; ../../up.bin\r\ntype=file;size=5; /etc/passwd\r\n\
                type=dir; ..\r\ntype=pdir; ..\r\ntype=OS.unix=slink:/etc; link\r\ntype=file; a\0b\r\n\
                type=file;size=3158073; data.bin\r\n";
                let setting = file().directory(b"pub").wrong(At::every("MLSD"), Wrong::Bytes(LISTING));
                FtpScene::new(setting).at("pub/")
            },
        ),
        case(
            "directory-endless",
            "Lists a directory without an end.",
            Error(&["malformed-response"]),
            || {
                let setting = file().directory(b"pub");
                let line = Wrong::EndlessLines(b"type=file;size=1; a name that is repeated for ever\r\n");
                FtpScene::new(setting.wrong(At::every("MLSD"), line)).at("pub/")
            },
        ),
        case(
            "directory-endless-line",
            "Lists a name without an end.",
            Error(&["malformed-response"]),
            || {
                let setting = file().directory(b"pub");
                let line = Wrong::EndlessLines(b"type=file;size=1; aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
                FtpScene::new(setting.wrong(At::every("MLSD"), line)).at("pub/")
            },
        ),
        case(
            "directory-in-itself",
            "Lists a directory that has itself in it.",
            IdenticalOrError(&["not-found", "not-the-file"]),
            || {
                let setting = file().directory(b"pub");
                let setting = setting.wrong(At::every("CWD"), Wrong::Reply(b"250 well\r\n"));
                FtpScene::new(setting.wrong(At::every("MLSD"), Wrong::Bytes(b"type=dir; again\r\n"))).at("pub/")
            },
        ),
        case(
            "directory-empty",
            "Has nothing in a directory.",
            Error(&["not-found"]),
            || {
                let setting = file().directory(b"pub");
                FtpScene::new(setting.wrong(At::every("MLSD"), Wrong::Bytes(b""))).at("pub/")
            },
        ),
    ]
}
