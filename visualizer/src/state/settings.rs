//! The settings of the terminal: colours, characters and keys, from a file.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::keymap::Keymap;
use super::look::{Palette, Palettes, Rgb};

/// What the file may say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    palette: Option<String>,
    ascii: Option<bool>,
    mouse: Option<bool>,
    keys: BTreeMap<String, Vec<String>>,
    palettes: BTreeMap<String, BTreeMap<String, String>>,
}

/// What it says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The palette, if one is chosen.
    pub palette: Option<Palette>,
    /// Only ASCII characters, if that is said.
    pub ascii: Option<bool>,
    /// Whether clicks and the wheel are for the terminal, if that is said.
    pub mouse: Option<bool>,
    /// Which key does what.
    pub keymap: Keymap,
    /// All palettes, with those of the file.
    pub palettes: Palettes,
}

impl Settings {
    /// What `text` (TOML) says.
    ///
    /// # Errors
    /// If it makes no sense; names the place and the cure.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|e| e.to_string())?;
        let mut palettes = Palettes::default();
        for (name, changes) in &file.palettes {
            // A colour that is not named is that of `classic`, or of the palette in `from`.
            let from = changes.get("from").map_or("classic", String::as_str);
            let wrong = |why: String| format!("[palettes.{name}]: {why}");
            let base = palettes.find(from).map_err(wrong)?;
            let Some(mut colours) = base.colours() else {
                return Err(wrong(format!("from = {from:?} has no colours")));
            };
            for (key, value) in changes.iter().filter(|(key, _)| *key != "from") {
                let rgb = hex(value).ok_or_else(|| {
                    wrong(format!(
                        "{key} = {value:?} is not a colour; write \"#rrggbb\""
                    ))
                })?;
                let names = colours.named().map(|(name, _)| name).join(", ");
                let Some(colour) = colours.by_name(key) else {
                    return Err(wrong(format!(
                        "there is no colour {key:?}; colours: background, selected, {names}"
                    )));
                };
                *colour = rgb;
            }
            colours.check().map_err(wrong)?;
            palettes.add(name.clone(), colours);
        }
        let keys = file.keys.iter();
        let keymap = Keymap::with(keys.map(|(name, keys)| (name.as_str(), &keys[..])));
        let palette = file.palette.map(|name| palettes.find(&name)).transpose();
        Ok(Self {
            palette: palette.map_err(|why| format!("palette: {why}"))?,
            ascii: file.ascii,
            mouse: file.mouse,
            keymap: keymap.map_err(|why| format!("[keys]: {why}"))?,
            palettes,
        })
    }
}

/// `#rrggbb`.
fn hex(text: &str) -> Option<Rgb> {
    let digits = text.strip_prefix('#').filter(|d| d.len() == 6)?;
    let all = u32::from_str_radix(digits, 16).ok()?;
    let [_, r, g, b] = all.to_be_bytes();
    Some((r, g, b))
}

/// Whether the locale says that only ASCII characters can be drawn: the first of `LC_ALL`, `LC_CTYPE` and `LANG` that is
/// set and not empty decides (POSIX); where none is set, nothing is said.
pub fn plain_locale(variable: impl Fn(&str) -> Option<String>) -> bool {
    let set = |name: &&str| variable(name).filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set);
    locale.is_some_and(|locale| {
        let name = locale.to_lowercase();
        !name.contains("utf-8") && !name.contains("utf8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Action;

    #[test]
    fn settings_choose_colours_and_keys() {
        let text = "palette = \"dusk\"\nascii = true\n[keys]\nquit = [\"ctrl-q\"]\n\
                    [palettes.dusk]\nfrom = \"safe\"\nlocal = \"#80ff80\"\n";
        let settings = Settings::parse(text).unwrap();
        let colours = settings.palette.unwrap().colours().unwrap();
        assert_eq!(colours.local, (128, 255, 128));
        assert_eq!(colours.inter, Palette::Safe.colours().unwrap().inter);
        assert_eq!(settings.ascii, Some(true));
        assert_eq!(settings.keymap.short(&[Action::Quit]), "Ctrl-q");
        assert!(settings.palettes.find("mono").is_ok());
        assert_eq!(Settings::parse(""), Ok(Settings::default()));
    }

    #[test]
    fn what_makes_no_sense_is_named_with_its_cure() {
        for (text, said) in [
            ("pallete = \"safe\"", "pallete"),
            ("palette = \"dim\"", "palettes: classic, safe, light, mono"),
            ("[keys]\nqiut = [\"x\"]", "there is no action \"qiut\""),
            (
                "[keys]\nquit = [\"?\"]",
                "the key ? is bound to help and to quit",
            ),
            ("[palettes.x]\nlocal = \"green\"", "write \"#rrggbb\""),
            (
                "[palettes.x]\nfoo = \"#ffffff\"",
                "colours: background, selected, local",
            ),
            (
                "[palettes.x]\nbad = \"#400000\"",
                "[palettes.x]: bad on background has a contrast",
            ),
            ("[palettes.x]\nfrom = \"mono\"", "has no colours"),
        ] {
            let why = Settings::parse(text).unwrap_err();
            assert!(why.contains(said), "{text}: {why}");
        }
    }

    #[test]
    fn a_locale_without_utf_8_is_plain() {
        let plain = |set: &[(&str, &str)]| {
            plain_locale(|name| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(plain(&[("LANG", "C")]) && plain(&[("LC_ALL", "POSIX")]));
        assert!(plain(&[("LANG", "en_US.ISO-8859-1")]));
        assert!(!plain(&[("LANG", "C.UTF-8")]) && !plain(&[("LANG", "de_DE.utf8")]));
        assert!(plain(&[("LANG", "de_DE.UTF-8"), ("LC_ALL", "C")]));
        assert!(!plain(&[]) && !plain(&[("LANG", "")]));
    }
}
