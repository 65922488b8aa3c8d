//! `brand`: how the pages present themselves.

use std::path::PathBuf;

use super::colour::Colour;
use super::reader::Reader;
use super::setting::{Setting, WebUrl};

/// The section.
#[derive(Clone, Debug)]
pub struct BrandConfig {
    /// What the pages call the product.
    pub name: String,
    /// The colour of links and buttons; variants that can be read are made from it.
    pub accent: Colour,
    /// A picture elsewhere, shown in place of our plate.
    pub logo_url: Option<WebUrl>,
    /// A picture of this machine, served by us.
    pub logo_file: Option<PathBuf>,
    /// Where people get help.
    pub support: Option<SupportLink>,
}

/// The longest name that fits the head of a page on a phone.
const LONGEST_NAME: usize = 40;

impl BrandConfig {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let config = BrandConfig {
            name: r.value(
                "brand.name",
                "Nameplate".to_owned(),
                "What the pages call the product, in at most 40 characters.",
            ),
            accent: r.value(
                "brand.accent",
                Colour([0x24, 0x50, 0x9a]),
                "Colour of links and buttons; where it could not be read, a lighter or darker one is made from it.",
            ),
            logo_url: r
                .optional("brand.logo_url", "Picture for the head of the pages, fetched by browsers from there; https."),
            logo_file: r.optional(
                "brand.logo_file",
                "Picture for the head of the pages (svg, png, webp or jpg, at most 200 kB), served by us.",
            ),
            support: r.optional("brand.support", "Where people get help: an https:// or mailto: link."),
        };
        if config.name.chars().count() > LONGEST_NAME || config.name.chars().any(char::is_control) {
            r.problem("brand.name", "", "is longer than 40 characters, or holds a control character".into());
        }
        if config.logo_url.is_some() && config.logo_file.is_some() {
            r.problem("brand.logo_url", "", "is set, and brand.logo_file too; keep one of them".into());
        }
        if config.logo_url.as_ref().is_some_and(|url| !url.as_str().starts_with("https://")) {
            r.problem("brand.logo_url", "", "must be an https:// URL".into());
        }
        config
    }
}

/// A link that people follow for help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupportLink(String);

impl SupportLink {
    /// The link.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Setting for SupportLink {
    const EXPECTED: &'static str = "a link like https://help.example.com or mailto:help@example.com";
    fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let mail = text.strip_prefix("mailto:").is_some_and(|to| to.contains('@'));
        let page = text.starts_with("https://") && text.parse::<http::Uri>().is_ok();
        let visible = text.bytes().all(|b| b.is_ascii_graphic());
        ((mail || page) && visible).then(|| SupportLink(text.to_owned()))
    }
    fn show(&self) -> String {
        self.0.clone()
    }
}
