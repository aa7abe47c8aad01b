//! Which key asks for which action: the table of [`super::keys`], changed by the settings.

use std::fmt;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::keys::{self, Action, BINDINGS, Binding};

/// A key, with or without Ctrl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    code: KeyCode,
    control: bool,
}

/// Keys with a name of their own.
const NAMED: [(&str, KeyCode); 16] = [
    ("Enter", KeyCode::Enter),
    ("Esc", KeyCode::Esc),
    ("Backspace", KeyCode::Backspace),
    ("Tab", KeyCode::Tab),
    ("Shift-Tab", KeyCode::BackTab),
    ("Space", KeyCode::Char(' ')),
    ("↑", KeyCode::Up),
    ("↓", KeyCode::Down),
    ("←", KeyCode::Left),
    ("→", KeyCode::Right),
    ("PgUp", KeyCode::PageUp),
    ("PgDn", KeyCode::PageDown),
    ("Home", KeyCode::Home),
    ("End", KeyCode::End),
    ("Insert", KeyCode::Insert),
    ("Delete", KeyCode::Delete),
];
/// What the arrows may be called, too.
const ARROWS: [(&str, &str); 4] = [("Up", "↑"), ("Down", "↓"), ("Left", "←"), ("Right", "→")];

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.control {
            f.write_str("Ctrl-")?;
        }
        match (NAMED.iter().find(|(_, code)| *code == self.code), self.code) {
            (Some((name, _)), _) => f.write_str(name),
            (None, KeyCode::Char(c)) => write!(f, "{c}"),
            (None, KeyCode::F(n)) => write!(f, "F{n}"),
            (None, other) => write!(f, "{other:?}"),
        }
    }
}

impl std::str::FromStr for Key {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let after = text.get(..5).filter(|t| t.eq_ignore_ascii_case("ctrl-"));
        let (control, name) = match after {
            Some(_) => (true, &text[5..]),
            None => (false, text),
        };
        let arrow = ARROWS
            .iter()
            .find(|(word, _)| word.eq_ignore_ascii_case(name));
        let name = arrow.map_or(name, |(_, sign)| sign);
        let mut chars = name.chars();
        let named = NAMED.iter().find(|(n, _)| n.eq_ignore_ascii_case(name));
        let function = name.strip_prefix(['F', 'f']).and_then(|n| n.parse().ok());
        let code = match (named, chars.next(), chars.next(), function) {
            (Some((_, code)), ..) => *code,
            (None, Some(c), None, _) if !c.is_control() => KeyCode::Char(c),
            (None, _, _, Some(n @ 1..=12)) => KeyCode::F(n),
            _ => {
                let names: Vec<&str> = NAMED.iter().map(|(name, _)| *name).collect();
                return Err(format!(
                    "{text:?} is not a key; write one character, F1 to F12, one of {}, or Ctrl- before one of these",
                    names.join(", ")
                ));
            }
        };
        Ok(Self { code, control })
    }
}

/// All keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keymap {
    keys: Vec<(Key, Action)>,
}

impl Default for Keymap {
    fn default() -> Self {
        let plain = |code| Key {
            code,
            control: false,
        };
        let keys = keys::all().flat_map(|b| b.keys.iter().map(|k| (plain(*k), b.action)));
        Self {
            keys: keys.collect(),
        }
    }
}

impl Keymap {
    /// The usual keys, with these for some actions instead.
    ///
    /// # Errors
    /// If there is no such action or key, or one key is to do two things; says which.
    pub fn with<'a>(
        changes: impl IntoIterator<Item = (&'a str, &'a [String])>,
    ) -> Result<Self, String> {
        let mut map = Self::default();
        let mut changed: Vec<(Key, Action)> = Vec::new();
        for (name, keys) in changes {
            let Some(bound) = keys::all().find(|b| b.name == name) else {
                let names: Vec<&str> = keys::all().map(|b| b.name).collect();
                return Err(format!(
                    "there is no action {name:?}; actions: {}",
                    names.join(", ")
                ));
            };
            map.keys.retain(|(_, action)| *action != bound.action);
            for key in keys {
                changed.push((
                    key.parse().map_err(|e| format!("{name}: {e}"))?,
                    bound.action,
                ));
            }
        }
        map.keys.extend(changed);
        let name = |action| {
            keys::all()
                .find(|b| b.action == action)
                .map_or("", |b| b.name)
        };
        for (i, (key, action)) in map.keys.iter().enumerate() {
            let taken = map.keys[..i].iter().find(|(other, _)| other == key);
            if let Some((_, other)) = taken {
                return Err(format!(
                    "the key {key} is bound to {} and to {}; give one of them another key",
                    name(*other),
                    name(*action)
                ));
            }
        }
        Ok(map)
    }

    /// What a key asks for; nothing if it is released or means nothing.
    pub fn action(&self, event: KeyEvent) -> Option<Action> {
        if event.kind == KeyEventKind::Release {
            return None;
        }
        let key = Key {
            code: event.code,
            control: event.modifiers.contains(KeyModifiers::CONTROL),
        };
        if key.control && key.code == KeyCode::Char('c') {
            return Some(Action::Quit);
        }
        let mut keys = self.keys.iter();
        keys.find(|(k, _)| *k == key).map(|(_, action)| *action)
    }

    /// The keys of an action, the usual one first.
    pub fn keys(&self, action: Action) -> impl Iterator<Item = Key> + '_ {
        let its = self.keys.iter().filter(move |(_, a)| *a == action);
        its.map(|(key, _)| *key)
    }

    /// The first key of each of some actions, as the footer names them: `+-`.
    pub fn short(&self, actions: &[Action]) -> String {
        let first = |action: &Action| self.keys(*action).next().map(|key| key.to_string());
        actions.iter().filter_map(first).collect()
    }

    /// The keys of a binding, as the help names them; a run of digits as such: `1 … 8`.
    pub fn names(&self, binding: &Binding) -> String {
        let keys = binding.actions.iter().flat_map(|b| self.keys(b.action));
        let names: Vec<String> = keys.map(|key| key.to_string()).collect();
        let digits = (1..=names.len()).map(|n| n.to_string());
        if names.len() > 2 && digits.eq(names.iter().cloned()) {
            return format!("1 … {}", names.len());
        }
        names.join(" ")
    }
}

/// The table of keys of the guide.
pub fn guide() -> String {
    let map = Keymap::default();
    let mut table = "| keys | action | name in the settings |\n|---|---|---|\n".to_owned();
    for binding in BINDINGS {
        let code = |words: String| match words.split_once(" … ") {
            Some((first, last)) => format!("`{first}` … `{last}`"),
            None => format!("`{words}`"),
        };
        let names: Vec<&str> = binding.actions.iter().map(|b| b.name).collect();
        let row = format!(
            "| {} | {} | `{}` |\n",
            code(map.names(binding)),
            binding.does,
            names.join(" ")
        );
        table += &row;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_means_two_things_and_no_name_two_actions() {
        Keymap::with([]).unwrap();
        let names: Vec<&str> = keys::all().map(|b| b.name).collect();
        for (i, name) in names.iter().enumerate() {
            assert!(!names[..i].contains(name), "{name} twice");
        }
    }

    #[test]
    fn control_c_quits_and_a_released_key_does_nothing() {
        let map = Keymap::default();
        let key = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(map.action(key), Some(Action::Quit));
        let mut key = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE);
        assert_eq!(map.action(key), Some(Action::Quit));
        key.kind = KeyEventKind::Release;
        assert_eq!(map.action(key), None);
        let key = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::CONTROL);
        assert_eq!(map.action(key), None);
    }

    #[test]
    fn keys_are_called_as_they_are_read() {
        let all = keys::all().flat_map(|b| b.keys);
        for code in all {
            let key = Key {
                code: *code,
                control: false,
            };
            assert_eq!(key.to_string().parse(), Ok(key));
        }
        for (text, name) in [("ctrl-X", "Ctrl-X"), ("up", "↑"), ("f5", "F5"), ("-", "-")] {
            assert_eq!(text.parse::<Key>().unwrap().to_string(), name);
        }
        assert!("F13".parse::<Key>().unwrap_err().contains("F1 to F12"));
        assert!("".parse::<Key>().is_err());
    }

    #[test]
    fn changed_keys_work_and_contradictions_are_named() {
        let keys = |text: &str| vec![text.to_owned()];
        let zoom = keys("z");
        let map = Keymap::with([("zoom-in", &zoom[..])]).unwrap();
        let press = |c| map.action(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE));
        assert_eq!((press('z'), press('+')), (Some(Action::ZoomIn), None));
        assert_eq!(map.short(&[Action::ZoomIn, Action::ZoomOut]), "z-");
        let quit = keys("z");
        let error = Keymap::with([("zoom-in", &zoom[..]), ("quit", &quit[..])]).unwrap_err();
        assert!(error.contains("zoom-in and to quit"), "{error}");
        let error = Keymap::with([("zoom", &zoom[..])]).unwrap_err();
        assert!(error.contains("zoom-in, zoom-out"), "{error}");
    }
}
