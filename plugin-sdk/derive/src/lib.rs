//! `#[derive(Settings)]` of the plugin SDK, which documents it.
//!
//! *Owns* what the derive accepts and what it says about everything else.
//!
//! *Never* reads a setting: the code that it writes calls `svc_plugin::settings`.
//!
//! Start reading at [`settings`].

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{
    Attribute, Data, DataEnum, DataStruct, DeriveInput, Error, Field, Fields, Ident, LitStr, Result, Type,
    ext::IdentExt as _, parse_macro_input,
};

/// See `svc_plugin::Settings`.
#[proc_macro_derive(Settings, attributes(setting))]
pub fn settings(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

fn expand(input: &DeriveInput) -> Result<TokenStream> {
    if let Some(parameter) = input.generics.params.first() {
        return Err(Error::new_spanned(parameter, "settings have no parameters"));
    }
    match &input.data {
        Data::Struct(data) => derive_for_struct(&input.ident, data),
        Data::Enum(data) => derive_for_enum(&input.ident, data),
        Data::Union(data) => Err(Error::new_spanned(data.union_token, "settings are a struct or an enum")),
    }
}

/// Implements `Settings` for the struct of all settings of a plugin: each field is the setting of its name.
fn derive_for_struct(name: &Ident, data: &DataStruct) -> Result<TokenStream> {
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new_spanned(name, "settings have names"));
    };
    let values = fields.named.iter().map(value).collect::<Result<Vec<_>>>()?;
    Ok(quote! {
        impl ::svc_plugin::settings::Settings for #name {
            fn read() -> ::svc_plugin::Result<Self> {
                ::std::result::Result::Ok(Self { #(#values),* })
            }
        }
    })
}

/// The initialiser of a field, such as `depth: required("depth", Some("5"))?`. An `Option` field is a setting that may
/// be unset.
fn value(field: &Field) -> Result<TokenStream> {
    let attributes = Attributes::of(&field.attrs, &["default", "key"])?;
    let name = field.ident.as_ref().expect("the fields have names");
    let key = attributes.key.unwrap_or_else(|| spelled(name));
    let (read, default) = match (is_option(&field.ty), attributes.default) {
        (true, Some(default)) => return Err(Error::new_spanned(default, "what has a default is always there")),
        (true, None) => (format_ident!("optional"), None),
        (false, Some(default)) => (
            format_ident!("required"),
            Some(quote!(, ::std::option::Option::Some(#default))),
        ),
        (false, None) => (format_ident!("required"), Some(quote!(, ::std::option::Option::None))),
    };
    Ok(quote!(#name: ::svc_plugin::settings::#read(#key #default)?))
}

/// Implements `FromStr` for an enum that is the type of one setting: one text for each variant.
fn derive_for_enum(name: &Ident, data: &DataEnum) -> Result<TokenStream> {
    let mut arms = Vec::new();
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            return Err(Error::new_spanned(
                &variant.fields,
                "a value of a setting holds nothing else",
            ));
        }
        let attributes = Attributes::of(&variant.attrs, &["value"])?;
        let text = attributes.value.unwrap_or_else(|| spelled(&variant.ident));
        let variant = &variant.ident;
        arms.push(quote!(#text => ::std::result::Result::Ok(Self::#variant),));
    }
    Ok(quote! {
        impl ::std::str::FromStr for #name {
            type Err = ::svc_plugin::settings::UnknownValue;

            fn from_str(text: &str) -> ::std::result::Result<Self, Self::Err> {
                match text {
                    #(#arms)*
                    _ => ::std::result::Result::Err(::svc_plugin::settings::UnknownValue),
                }
            }
        }
    })
}

/// The parsed `#[setting(..)]` attributes.
#[derive(Default)]
struct Attributes {
    default: Option<LitStr>,
    key: Option<LitStr>,
    value: Option<LitStr>,
}

impl Attributes {
    fn of(attributes: &[Attribute], known: &[&str]) -> Result<Self> {
        let mut found = Self::default();
        for attribute in attributes
            .iter()
            .filter(|attribute| attribute.path().is_ident("setting"))
        {
            attribute.parse_nested_meta(|meta| {
                let place = match meta.path.get_ident().map(ToString::to_string) {
                    Some(name) if !known.contains(&name.as_str()) => None,
                    Some(name) if name == "default" => Some(&mut found.default),
                    Some(name) if name == "key" => Some(&mut found.key),
                    Some(name) if name == "value" => Some(&mut found.value),
                    _ => None,
                };
                let place = place.ok_or_else(|| meta.error(format!("{} is known here", known.join(" or "))))?;
                *place = Some(meta.value()?.parse()?);
                Ok(())
            })?;
        }
        Ok(found)
    }
}

/// A name as manifests spell it: `maxDepth` for the field `max_depth`, `fullHd` for the variant `FullHd`.
fn spelled(name: &Ident) -> LitStr {
    let mut words = name.unraw().to_string();
    if let Some(first) = words.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    let mut words = words.split('_');
    let mut text = words.next().unwrap_or_default().to_owned();
    for word in words {
        let (first, rest) = word.split_at_checked(1).unwrap_or(("", word));
        text.push_str(&first.to_ascii_uppercase());
        text.push_str(rest);
    }
    LitStr::new(&text, name.span())
}

fn is_option(of: &Type) -> bool {
    matches!(of, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Option"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the derive says about `item`.
    fn refused(item: &str) -> String {
        expand(&syn::parse_str(item).expect("it is Rust"))
            .map(|code| code.to_string())
            .expect_err("it is refused")
            .to_string()
    }

    #[test]
    fn what_cannot_be_settings_is_refused_with_the_reason() {
        let check = |item, reason| assert_eq!(refused(item), reason, "{item}");
        check("struct S(u8);", "settings have names");
        check("struct S<T> { a: T }", "settings have no parameters");
        check("union S { a: u8 }", "settings are a struct or an enum");
        check("enum E { A(u8) }", "a value of a setting holds nothing else");
        check(
            r#"struct S { #[setting(default = "1")] a: Option<u8> }"#,
            "what has a default is always there",
        );
        check(
            r#"struct S { #[setting(value = "1")] a: u8 }"#,
            "default or key is known here",
        );
        check(r#"enum E { #[setting(default = "1")] A }"#, "value is known here");
    }

    #[test]
    fn names_are_spelled_as_in_manifests() {
        let check = |name: &str, expect: &str| {
            let name: Ident = syn::parse_str(name).expect("it is a name");
            assert_eq!(spelled(&name).value(), expect);
        };
        check("depth", "depth");
        check("max_depth", "maxDepth");
        check("FullHd", "fullHd");
        check("r#type", "type");
    }
}
