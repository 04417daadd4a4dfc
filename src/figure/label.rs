//! Labels with sub- and superscripts, written as `r_η`, `‖J u‖^2` or `x_{max}`.
//!
//! `_` lowers and `^` raises the next character or `{group}`; a backslash takes the next character
//! as it is. Everything else, Greek included, is plain Unicode.

/// Where a piece of a label stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// On the baseline.
    Base,
    /// Smaller and lowered.
    Sub,
    /// Smaller and raised.
    Super,
}

/// A piece of a label that is set in one size on one baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The characters.
    pub text: String,
    /// Where they stand.
    pub script: Script,
}

/// Size of sub- and superscripts over the size of the label.
pub const SCRIPT_SIZE: f64 = 0.7;
/// Drop of a subscript's baseline over the size of the label.
pub const SUB_DROP: f64 = 0.18;
/// Rise of a superscript's baseline over the size of the label.
pub const SUPER_RISE: f64 = 0.36;

/// Takes a label apart. An unclosed group ends with the label.
pub fn spans(label: &str) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    let mut push = |script: Script, character: char| match spans.last_mut() {
        Some(last) if last.script == script => last.text.push(character),
        _ => spans.push(Span {
            text: character.to_string(),
            script,
        }),
    };
    let mut script = Script::Base;
    let mut in_group = false;
    let mut characters = label.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                if let Some(escaped) = characters.next() {
                    push(script, escaped);
                }
            }
            '_' | '^' if script == Script::Base => {
                script = if character == '_' {
                    Script::Sub
                } else {
                    Script::Super
                };
                in_group = characters.next_if_eq(&'{').is_some();
                continue;
            }
            '}' if in_group => {
                in_group = false;
                script = Script::Base;
            }
            other => push(script, other),
        }
        if !in_group {
            script = Script::Base;
        }
    }
    spans
}

/// Marks up `text` so that it is shown as it is: for names such as `efficientnet_lite0`.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '\\' | '_' | '^') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// The label's characters on one line, without positions: for titles, tables and screen readers.
pub fn plain(label: &str) -> String {
    spans(label).into_iter().map(|span| span.text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(label: &str) -> Vec<(String, Script)> {
        spans(label)
            .into_iter()
            .map(|span| (span.text, span.script))
            .collect()
    }

    fn piece(text: &str, script: Script) -> (String, Script) {
        (text.to_owned(), script)
    }

    #[test]
    fn scripts_take_one_character_or_a_group() {
        assert_eq!(
            pieces("r_η^2 of x_{max}"),
            [
                piece("r", Script::Base),
                piece("η", Script::Sub),
                piece("2", Script::Super),
                piece(" of x", Script::Base),
                piece("max", Script::Sub),
            ]
        );
    }

    #[test]
    fn escaped_names_come_back_whole() {
        for name in ["efficientnet_lite0", "a\\b^c_", "{x}", "", "‖Φ‖"] {
            assert_eq!(plain(&escape(name)), name);
            assert!(
                spans(&escape(name))
                    .iter()
                    .all(|span| span.script == Script::Base)
            );
        }
    }

    #[test]
    fn broken_markup_loses_no_characters() {
        assert_eq!(plain("x_{max"), "xmax");
        assert_eq!(plain("x_"), "x");
        assert_eq!(plain("a}b"), "a}b");
    }
}
