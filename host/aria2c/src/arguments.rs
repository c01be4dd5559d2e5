//! Parses aria2c's command line like GNU getopt: long names may be abbreviated, a switch takes its value after `=`
//! only, operands may be placed between options. Pure.

use aria2::option::{Options, Row};

use crate::Refused;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Invocation {
    Version,
    /// Help about a topic; empty means everything.
    Help(String),
    Run(Arguments),
}

/// Options and operands.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Arguments {
    pub(super) options: Options,
    pub(super) operands: Vec<String>,
}

/// An option: one of aria2's, or `--help` or `--version`.
#[derive(Clone, Copy)]
enum Known {
    Row(&'static Row),
    Version,
    Help,
}

impl Known {
    fn all() -> impl Iterator<Item = (&'static str, Self)> {
        let rows = Row::all().iter().map(|row| (row.name(), Self::Row(row)));
        rows.chain([("version", Self::Version), ("help", Self::Help)])
    }

    fn stands_alone(self) -> bool {
        match self {
            Self::Row(row) => row.stands_alone(),
            Self::Version | Self::Help => true,
        }
    }

    fn of_letter(letter: char) -> Option<Self> {
        match letter {
            'v' => Some(Self::Version),
            'h' => Some(Self::Help),
            _ => Row::of_letter(letter).map(Self::Row),
        }
    }

    /// Finds an option by its name or a unique prefix of it.
    fn of_name(name: &str) -> Result<(&'static str, Self), Refused> {
        if let Some(exact) = Self::all().find(|(known, _)| *known == name) {
            return Ok(exact);
        }
        let found: Vec<_> = Self::all().filter(|(known, _)| known.starts_with(name)).collect();
        match found[..] {
            [only] => Ok(only),
            [] => Err(Refused::usage(format!("unrecognized option '--{name}'"))),
            _ => {
                let names: Vec<_> = found.iter().map(|(known, _)| format!("'--{known}'")).collect();
                Err(Refused::usage(format!(
                    "option '--{name}' is ambiguous; possibilities: {}",
                    names.join(" ")
                )))
            }
        }
    }
}

/// Parses the arguments after the program's name.
pub(super) fn read(arguments: impl IntoIterator<Item = String>) -> Result<Invocation, Refused> {
    let mut arguments = arguments.into_iter();
    let mut given = Arguments::default();
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            given.operands.extend(arguments.by_ref());
        } else if let Some(long) = argument.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            };
            let (name, known) = Known::of_name(name)?;
            let value = match value {
                None if !known.stands_alone() => Some(arguments.next().ok_or_else(|| missing(&format!("'--{name}'")))?),
                value => value,
            };
            if let Some(asked) = given.take(known, value)? {
                return Ok(asked);
            }
        } else if let Some(letters) = argument.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            if let Some(asked) = given.take_letters(letters, &mut arguments)? {
                return Ok(asked);
            }
        } else {
            given.operands.push(argument);
        }
    }
    Ok(Invocation::Run(given))
}

fn missing(option: &str) -> Refused {
    Refused::usage(format!("option {option} requires an argument"))
}

impl Arguments {
    /// Parses a group of short options. The rest after an option that takes a value is its value.
    fn take_letters(
        &mut self,
        letters: &str,
        rest: &mut impl Iterator<Item = String>,
    ) -> Result<Option<Invocation>, Refused> {
        let letter = letters.chars().next().unwrap_or_default();
        let known = Known::of_letter(letter).ok_or_else(|| Refused::usage(format!("invalid option -- '{letter}'")))?;
        let behind = Some(&letters[letter.len_utf8()..]).filter(|behind| !behind.is_empty());
        let value = match behind {
            Some(value) => Some(value.to_owned()),
            None if known.stands_alone() => None,
            None => Some(rest.next().ok_or_else(|| missing(&format!("-- '{letter}'")))?),
        };
        self.take(known, value)
    }

    fn take(&mut self, known: Known, value: Option<String>) -> Result<Option<Invocation>, Refused> {
        let row = match known {
            Known::Version => return Ok(Some(Invocation::Version)),
            Known::Help => return Ok(Some(Invocation::Help(value.unwrap_or_default()))),
            Known::Row(row) => row,
        };
        let value = row.read_at_start(value.as_deref().unwrap_or("true"))?;
        self.options.put(row, value, true);
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn given(line: &[&str]) -> Arguments {
        match read(line.iter().map(ToString::to_string)).unwrap() {
            Invocation::Run(given) => given,
            asked => panic!("{asked:?}"),
        }
    }

    fn refusal(line: &[&str]) -> String {
        read(line.iter().map(ToString::to_string)).unwrap_err().to_string()
    }

    #[test]
    fn an_option_is_written_in_many_ways() {
        for line in [
            &["-x16", "u"][..],
            &["-x", "16", "u"],
            &["u", "--max-connection-per-server=16"],
            &["--max-connection-per-server", "16", "u"],
            &["--max-connection=16", "--", "u"],
        ] {
            let given = given(line);
            assert_eq!(given.options.get("max-connection-per-server"), Some("16"), "{line:?}");
            assert_eq!(given.operands, ["u"]);
        }
        let given = given(&[
            "-c",
            "-q",
            "--enable-rpc",
            "--remote-time=false",
            "-k1M",
            "--header=A: b",
            "--header",
            "C: d",
        ]);
        for (name, value) in [
            ("continue", "true"),
            ("quiet", "true"),
            ("enable-rpc", "true"),
            ("remote-time", "false"),
            ("min-split-size", "1048576"),
            ("header", "A: b\nC: d"),
        ] {
            assert_eq!(given.options.get(name), Some(value), "{name}");
        }
    }

    #[test]
    fn the_last_one_counts_and_after_two_dashes_nothing_is_an_option() {
        let given = given(&["-s1", "-s", "2", "--", "-s3", "--nope"]);
        assert_eq!(given.options.get("split"), Some("2"));
        assert_eq!(given.operands, ["-s3", "--nope"]);
    }

    #[test]
    fn what_is_no_option_or_no_value_is_refused_by_name() {
        for (line, expect) in [
            (&["--nope"][..], "unrecognized option '--nope'"),
            (&["-W"], "invalid option -- 'W'"),
            (&["--con", "u"], "option '--con' is ambiguous"),
            (&["--dir"], "option '--dir' requires an argument"),
            (&["-d"], "option -- 'd' requires an argument"),
            (&["-x99"], "processing the option '--max-connection-per-server'"),
            (&["-cx2"], "processing the option '--continue'"),
            (&["--rpc-secure"], "The option '--rpc-secure' is not supported"),
            (&["--interface=eth0"], "The option '--interface' is not supported"),
            (
                &["--bt-require-crypto"],
                "The option '--bt-require-crypto' is not supported",
            ),
            (&["--listen-port=2-1"], "processing the option '--listen-port'"),
            (&["--dry-run"], "The option '--dry-run' is not supported"),
        ] {
            let shown = refusal(line);
            assert!(shown.contains(expect), "{line:?}: {shown}");
        }
    }

    #[test]
    fn version_and_help_are_answered_whatever_else_is_there() {
        let read = |line: &[&str]| read(line.iter().map(ToString::to_string)).unwrap();
        assert_eq!(read(&["-x1", "-v", "--nope"]), Invocation::Version);
        assert_eq!(read(&["--version"]), Invocation::Version);
        assert_eq!(read(&["-h#all"]), Invocation::Help("#all".into()));
        assert_eq!(read(&["--help"]), Invocation::Help(String::new()));
    }

    proptest! {
        #[test]
        fn any_line_is_read_or_refused(line in prop::collection::vec("-{0,2}[a-zA-Z=0-9#äé]{0,6}", 0..6)) {
            let _any = read(line);
        }

        #[test]
        fn every_number_that_is_allowed_is_taken_in_every_form(number in 1_u32..=16) {
            let forms = [format!("-x{number}"), format!("--max-connection-per-server={number}")];
            for form in forms {
                let given = given(&[&form]);
                let read = given.options.get("max-connection-per-server");
                prop_assert_eq!(read, Some(&*number.to_string()));
            }
        }
    }
}
