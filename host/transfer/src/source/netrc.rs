//! Logins of a `.netrc` file, by host. Pure; `command::netrc` reads the file.

use std::collections::BTreeMap;

use crate::source::{Credentials, Secret};

/// The logins of a `.netrc` file. The entry `default` is ignored: it would give one password to every host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Netrc {
    by_host: BTreeMap<String, Credentials>,
}

impl Netrc {
    /// Parses the format of ftp(1): words between white space, of which `macdef` takes all lines up to an empty one. The
    /// first entry of a host counts. Unknown words are skipped, as other readers do.
    pub fn parse(text: &str) -> Self {
        let mut netrc = Self::default();
        let mut entry = None;
        // The word that waits for its value, which may be on the next line.
        let mut keyword = "";
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            for word in line.split_whitespace() {
                match (std::mem::take(&mut keyword), &mut entry) {
                    ("machine", _) => entry = Some((word.to_ascii_lowercase(), String::new(), Secret::default())),
                    ("login", Some((_, user, _))) => word.clone_into(user),
                    ("password", Some((_, _, password))) => *password = Secret::new(word),
                    ("", _) => match word {
                        "machine" | "default" => {
                            netrc.keep(entry.take());
                            keyword = if word == "machine" { word } else { "" };
                        }
                        "login" | "password" | "account" => keyword = word,
                        "macdef" => {
                            let _last_of_macro = lines.find(|line| line.trim().is_empty());
                            break;
                        }
                        comment if comment.starts_with('#') => break,
                        _ => {}
                    },
                    _ => {}
                }
            }
        }
        netrc.keep(entry);
        netrc
    }

    /// Takes over a login. Without a user name there is none, and one with a colon is not for HTTP Basic.
    fn keep(&mut self, entry: Option<(String, String, Secret)>) {
        if let Some((host, user, password)) = entry
            && !user.is_empty()
            && !user.contains(':')
        {
            self.by_host.entry(host).or_insert(Credentials { user, password });
        }
    }

    /// The login of `host`, as URLs spell it.
    pub fn login(&self, host: &str) -> Option<&Credentials> {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        self.by_host.get(host)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn logins(text: &str) -> Vec<(String, String, String)> {
        let netrc = Netrc::parse(text);
        let shown = |(host, login): (&String, &Credentials)| {
            (host.clone(), login.user.clone(), login.password.expose().to_owned())
        };
        netrc.by_host.iter().map(shown).collect()
    }

    #[test]
    fn each_host_has_its_own_login_and_the_default_is_nobodys() {
        let text = "# of mine\nmachine A.test login u password #p\nmachine\n b.test\n\tlogin v\n\tpassword w account x\n\
            macdef init\nmachine evil.test login a password b\n\nmachine c.test password only\n\
            machine a.test login second password second\ndefault login anonymous password me@\n";
        let expect = [("a.test", "u", "#p"), ("b.test", "v", "w")];
        let expect = expect.map(|(host, user, password)| (host.to_owned(), user.to_owned(), password.to_owned()));
        assert_eq!(logins(text), expect);
        let netrc = Netrc::parse("machine ::1 login u password p");
        assert!(netrc.login("[::1]").is_some());
        assert!(netrc.login("x").is_none());
        assert!(!format!("{netrc:?}").contains("\"p\""), "{netrc:?}");
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "([a-z#:\\n \\t]|machine |login |password |default |macdef ){0,60}") {
            let _any = Netrc::parse(&text);
        }
    }
}
