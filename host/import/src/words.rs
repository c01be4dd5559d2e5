//! Splits text into the words of a shell's command.

/// The words of each command in a text, as a POSIX shell and bash read them: quotes, `$'…'`, escapes, and lines that go on
/// behind `\`. One that browsers copied for `cmd.exe`, with `^` before quotes, is read as well. Nothing is expanded. Commands end at a line's end, `;`, `&` and `|`.
pub(crate) fn commands(text: &str) -> Result<Vec<Vec<String>>, Unclosed> {
    let is_of_windows = text.trim_start().starts_with("curl ^\"");
    let plain = is_of_windows.then(|| without_carets(text));
    let text = plain.as_deref().unwrap_or(text);
    let mut reader = Reader {
        rest: text.chars().peekable(),
        commands: vec![Vec::new()],
        word: None,
    };
    reader.read()?;
    reader.commands.retain(|command| !command.is_empty());
    Ok(reader.commands)
}

/// A command for `cmd.exe` without the carets that escape characters for it.
fn without_carets(text: &str) -> String {
    let mut chars = text.chars();
    let mut plain = String::with_capacity(text.len());
    while let Some(c) = chars.next() {
        match if c == '^' { chars.next() } else { Some(c) } {
            // The command goes on in the next line.
            Some('\r' | '\n') if c == '^' => plain.push(' '),
            Some('\n') if plain.ends_with(' ') => {}
            other => plain.extend(other),
        }
    }
    plain
}

/// A quote has no end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a {0} is not closed; paste the whole command")]
pub(crate) struct Unclosed(char);

struct Reader<'t> {
    rest: std::iter::Peekable<std::str::Chars<'t>>,
    commands: Vec<Vec<String>>,
    word: Option<String>,
}

impl Reader<'_> {
    fn read(&mut self) -> Result<(), Unclosed> {
        while let Some(c) = self.rest.next() {
            match c {
                '\'' => self.single()?,
                '"' => self.double()?,
                '$' if self.rest.next_if_eq(&'\'').is_some() => self.ansi()?,
                '\\' if self.ends_line() => {}
                '\\' => {
                    let escaped = self.rest.next().unwrap_or('\\');
                    self.word().push(escaped);
                }
                '\n' | ';' | '&' | '|' => self.end_command(),
                '#' if self.word.is_none() => while self.rest.next_if(|c| *c != '\n').is_some() {},
                c if c.is_whitespace() => self.end_word(),
                c => self.word().push(c),
            }
        }
        self.end_command();
        Ok(())
    }

    /// Takes the end of the line if it comes next.
    fn ends_line(&mut self) -> bool {
        let _ = self.rest.next_if_eq(&'\r');
        self.rest.next_if_eq(&'\n').is_some()
    }

    fn word(&mut self) -> &mut String {
        self.word.get_or_insert_default()
    }

    fn end_word(&mut self) {
        if let (Some(word), Some(command)) = (self.word.take(), self.commands.last_mut()) {
            command.push(word);
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.commands.push(Vec::new());
    }

    fn single(&mut self) -> Result<(), Unclosed> {
        self.word();
        loop {
            match self.rest.next().ok_or(Unclosed('\''))? {
                '\'' => return Ok(()),
                c => self.word().push(c),
            }
        }
    }

    fn double(&mut self) -> Result<(), Unclosed> {
        self.word();
        loop {
            match self.rest.next().ok_or(Unclosed('"'))? {
                '"' => return Ok(()),
                '\\' => match self.rest.next().ok_or(Unclosed('"'))? {
                    '\n' => {}
                    c @ ('"' | '\\' | '$' | '`') => self.word().push(c),
                    c => self.word().extend(['\\', c]),
                },
                c => self.word().push(c),
            }
        }
    }

    /// `$'…'`, with the escapes that browsers write: `\n`, `\'`, `\u0021`, `\x21`.
    fn ansi(&mut self) -> Result<(), Unclosed> {
        self.word();
        loop {
            match self.rest.next().ok_or(Unclosed('\''))? {
                '\'' => return Ok(()),
                '\\' => {
                    let c = self.rest.next().ok_or(Unclosed('\''))?;
                    let read = match c {
                        'n' => Some('\n'),
                        'r' => Some('\r'),
                        't' => Some('\t'),
                        'x' => self.hexadecimal(2),
                        'u' => self.hexadecimal(4),
                        'U' => self.hexadecimal(8),
                        c => Some(c),
                    };
                    self.word().extend(read);
                }
                c => self.word().push(c),
            }
        }
    }

    fn hexadecimal(&mut self, most: usize) -> Option<char> {
        let mut number = 0;
        for _ in 0..most {
            let Some(digit) = self.rest.next_if(char::is_ascii_hexdigit) else {
                break;
            };
            number = number * 16 + digit.to_digit(16)?;
        }
        char::from_u32(number)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_are_those_of_a_shell() {
        let text = "curl 'a b'\"c \\\"d\\\" \\x\" \\\n  -H $'e\\'\\u0021\\x21' e\\ f '' # g\n\ncurl i&& curl j; # k";
        assert_eq!(
            commands(text).unwrap(),
            [
                vec!["curl", "a bc \"d\" \\x", "-H", "e'!!", "e f", ""],
                vec!["curl", "i"],
                vec!["curl", "j"]
            ]
        );
        let of_windows = "curl ^\"http://a.test/?a=1^&b=^%20^\" ^\r\n  -H ^\"a: \\^\"b\\^\"^\"";
        assert_eq!(
            commands(of_windows).unwrap(),
            [vec!["curl", "http://a.test/?a=1&b=%20", "-H", "a: \"b\""]]
        );
        for (text, quote) in [("'a", '\''), ("\"a\\\"", '"'), ("$'a\\'", '\'')] {
            assert_eq!(commands(text), Err(Unclosed(quote)));
        }
    }

    proptest! {
        #[test]
        fn what_is_quoted_is_one_word(word in "[^']{0,30}") {
            prop_assert_eq!(commands(&format!("x '{word}'")).unwrap(), [vec!["x".to_owned(), word]]);
        }

        #[test]
        fn no_text_is_a_panic(text in ".{0,60}") {
            let _ = commands(&text);
        }
    }
}
