//! The plugin's settings as one value, with [`derive(Settings)`](derive@Settings).

use std::str::FromStr;

#[cfg(feature = "derive")]
pub use svc_plugin_derive::Settings;

use crate::{Error, Result, host};

/// A struct of settings, each by the name of its field: `max_depth` is the setting `maxDepth` unless
/// `#[setting(key = "…")]` says otherwise. What the user has not set is its `default`; without one it is an error, and
/// `None` in an `Option`. A value that cannot be is [`Error::InvalidInput`], which names the setting and the value.
///
/// Values are whatever can be parsed. An enum without fields can derive it: its variants are the options of the setting,
/// `FullHd` as `fullHd` unless `#[setting(value = "…")]` says otherwise. Secret settings cannot be read.
///
/// ```
/// use svc_plugin::prelude::*;
///
/// #[derive(Debug, PartialEq, Settings)]
/// struct Wanted {
///     #[setting(default = "5")]
///     depth: u8,
///     #[setting(default = "hd")]
///     quality: Quality,
///     folder: Option<String>,
/// }
///
/// #[derive(Debug, PartialEq, Settings)]
/// enum Quality {
///     Hd,
///     #[setting(value = "4k")]
///     Ultra,
/// }
///
/// let host = test::Host::new().setting("quality", "4k");
/// let wanted = Wanted { depth: 5, quality: Quality::Ultra, folder: None };
/// assert_eq!(host.run(Wanted::read), Ok(wanted));
///
/// let host = test::Host::new().setting("depth", "deep");
/// assert_eq!(host.run(Wanted::read), Err(Error::InvalidInput("the setting depth cannot be deep".to_owned())));
/// ```
pub trait Settings: Sized {
    /// Reads what the user has set.
    fn read() -> Result<Self>;
}

/// A text that is none of the options of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownValue;

/// The setting, or its default; it must be one of both.
#[doc(hidden)]
pub fn required<T: FromStr>(key: &str, default: Option<&str>) -> Result<T> {
    match (optional(key)?, default) {
        (Some(value), _) => Ok(value),
        (None, Some(default)) => parse(key, default),
        (None, None) => Err(Error::InvalidInput(format!("the setting {key} is missing"))),
    }
}

/// The setting, if the user has set it.
#[doc(hidden)]
pub fn optional<T: FromStr>(key: &str) -> Result<Option<T>> {
    let text = host::env::setting(key).filter(|text| !text.is_empty());
    text.map(|text| parse(key, &text)).transpose()
}

fn parse<T: FromStr>(key: &str, text: &str) -> Result<T> {
    let parsed = text.parse();
    parsed.map_err(|_| Error::InvalidInput(format!("the setting {key} cannot be {text}")))
}
