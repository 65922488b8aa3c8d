//! How the pages present themselves: from configuration to a name, a picture and a small style sheet of variables.

use std::path::Path;
use std::sync::Arc;

use crate::config::{BrandConfig, Colour, Setting as _};

/// The grounds that text and buttons stand on, as in `templates/style.css`: paper, sheet, field.
const LIGHT: [Colour; 3] = [Colour([0xf7, 0xf6, 0xf3]), Colour::WHITE, Colour([0xf3, 0xf2, 0xee])];
const DARK: [Colour; 3] = [Colour([0x14, 0x17, 0x1c]), Colour([0x1c, 0x20, 0x27]), Colour([0x25, 0x2a, 0x33])];
/// The dark ink on light buttons.
const INK: Colour = Colour([0x10, 0x14, 0x1c]);
/// What the guidelines ask of text (WCAG 2.2 §1.4.3).
const READABLE: f64 = 4.5;
/// The largest picture that is served.
const LARGEST: usize = 200_000;

/// A picture of this machine.
#[derive(Clone, Debug)]
pub struct Logo {
    /// Its media type.
    pub(super) kind: &'static str,
    /// Its bytes.
    pub(super) bytes: Arc<[u8]>,
}

/// How the pages present themselves; cheap to clone.
#[derive(Clone, Debug)]
pub struct Brand {
    /// What they call the product.
    pub(super) name: Arc<str>,
    /// Where its picture is, if it has one.
    pub(super) logo: Option<Arc<str>>,
    /// The origin the picture comes from, if that is not ours.
    pub(super) logo_origin: Option<Arc<str>>,
    /// The picture, if it is ours.
    pub(super) file: Option<Logo>,
    /// Where people get help.
    pub(super) support: Option<Arc<str>>,
    /// The style sheet.
    pub(super) css: Arc<str>,
}

/// A picture that cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum LogoError {
    /// It is not readable.
    #[error("the file {path} cannot be read")]
    Read {
        /// Which file.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
    /// It is of an unknown kind.
    #[error("the file {0} is none of svg, png, webp and jpg by its name")]
    Kind(String),
    /// It is too large.
    #[error("the file is {0} bytes long; at most {LARGEST} are served")]
    Large(usize),
}

impl Brand {
    /// From the configuration.
    pub fn new(config: &BrandConfig) -> Result<Brand, LogoError> {
        let file = config.logo_file.as_deref().map(read).transpose()?;
        let url = config.logo_url.as_ref().map(|url| url.as_str());
        let origin = |url: &str| {
            let start = url.find("://").map_or(0, |at| at + 3);
            let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
            Arc::from(&url[..end])
        };
        Ok(Brand {
            name: config.name.as_str().into(),
            logo: file.as_ref().map(|_| "/assets/logo").or(url).map(Into::into),
            logo_origin: url.map(origin),
            file,
            support: config.support.as_ref().map(|link| link.as_str().into()),
            css: css(config.accent).into(),
        })
    }
}

fn read(path: &Path) -> Result<Logo, LogoError> {
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    let kind = match extension.as_str() {
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "webp" => "image/webp",
        "jpg" | "jpeg" => "image/jpeg",
        _ => return Err(LogoError::Kind(path.display().to_string())),
    };
    let bytes = std::fs::read(path).map_err(|source| LogoError::Read { path: path.display().to_string(), source })?;
    if bytes.len() > LARGEST {
        return Err(LogoError::Large(bytes.len()));
    }
    Ok(Logo { kind, bytes: bytes.into() })
}

/// The variables that depend on the accent: for each scheme a colour that can be read on every ground.
fn css(accent: Colour) -> String {
    let light = accent.readable_on(&LIGHT, Colour([0; 3]), READABLE);
    let dark = accent.readable_on(&DARK, Colour::WHITE, READABLE);
    format!(
        ":root {{ --link: {l}; --primary: {l}; --on-primary: #ffffff; }}\n\
         @media (prefers-color-scheme: dark) {{ :root {{ --link: {d}; --primary: {d}; --on-primary: {ink}; }} }}\n",
        l = light.show(),
        d = dark.show(),
        ink = INK.show(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Sources};

    fn brand(text: &str) -> Result<Brand, LogoError> {
        Brand::new(&Config::read(Sources::none().file("n.toml", format!("[brand]\n{text}"))).unwrap().brand)
    }

    #[test]
    fn a_brand_is_a_name_a_picture_and_colours_that_can_be_read() {
        let plain = brand("").unwrap();
        assert_eq!((&*plain.name, plain.logo.is_none(), plain.support.is_none()), ("Nameplate", true, true));
        // Yellow on white cannot be read: it becomes darker there, and stays what it is in the dark.
        let yellow =
            brand("accent = \"#ffe600\"\nname = \"Acme\"\nlogo_url = \"https://cdn.example/logo.svg?v=1\"").unwrap();
        assert!(!yellow.css.contains("--link: #ffe600; --primary: #ffe600; --on-primary: #ffffff"), "{}", yellow.css);
        assert!(yellow.css.contains("--link: #ffe600; --primary: #ffe600; --on-primary: #10141c"), "{}", yellow.css);
        assert_eq!(yellow.logo_origin.as_deref(), Some("https://cdn.example"));
        assert!(matches!(brand("logo_file = \"/nowhere/logo.png\""), Err(LogoError::Read { .. })));
        assert!(matches!(brand("logo_file = \"/nowhere/logo.exe\""), Err(LogoError::Kind(_))));
    }

    #[test]
    fn the_grounds_are_those_of_the_style_sheet() {
        let sheet = include_str!("../../templates/style.css");
        for ground in LIGHT.iter().chain(&DARK) {
            assert!(sheet.contains(&ground.show()), "{} is no ground of the style sheet any more", ground.show());
        }
    }
}
