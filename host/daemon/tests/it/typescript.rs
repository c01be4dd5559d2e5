//! The types of `/rpc` for the web interface: `host/web/src/rpc/rpc.ts` is what the sources of [`protocol`] say, with the
//! names and the optional members that serde reads and writes.
//!
//! A record has up to two forms. What the service writes lacks a member only if `skip_serializing_if` may leave it out;
//! what it reads may lack whatever has a default. A record that is used both ways has its second form as `…Input`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use plugin_host::Permission;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use protocol::{Method, Reason, TaskDto};
use syn::{Attribute, Data, DeriveInput, Field, Fields, GenericArgument, PathArguments, Type};
use transfer::FailureKind;

/// Records whose own code writes them, and what that is.
const WRITTEN_BY_HAND: &[(&str, &str)] = &[("TaskStatus", "a number")];

/// What the agent's events borrow.
const BORROWED: &[(&str, &str)] = &[("DaemonSnapshotReplaced", "DaemonSnapshot"), ("Daemon", "DaemonEvent")];

#[test]
fn the_types_of_the_web_interface_are_those_of_the_protocol() {
    let host = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let records = Records::of(&host.join("protocol/src"));
    let text = records.write();
    let path = host.join("web/src/rpc/rpc.ts");
    if std::env::vars().any(|(name, _)| name == "UPDATE_EXPECT") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        expected == text,
        "{} is not what the protocol says; UPDATE_EXPECT=1 writes it",
        path.display()
    );
}

/// A direction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// The service writes it.
    Out,
    /// The service reads it.
    In,
}

struct Records {
    items: BTreeMap<String, DeriveInput>,
}

/// What serde's attributes say of one container, variant or field.
#[derive(Default, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is an attribute")]
struct Serde {
    rename: Option<String>,
    rename_all: Option<String>,
    rename_all_fields: Option<String>,
    tag: Option<String>,
    content: Option<String>,
    has_default: bool,
    may_be_left_out: bool,
    has_reader: bool,
    is_flat: bool,
    is_number: bool,
    is_never_written: bool,
    is_untagged: bool,
}

impl Serde {
    fn of(attributes: &[Attribute]) -> Self {
        let mut found = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
            attribute
                .parse_nested_meta(|meta| {
                    let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
                    let value = match meta.value() {
                        Ok(value) => Some(value.parse::<syn::LitStr>()?.value()),
                        Err(_) => None,
                    };
                    match name.as_str() {
                        "rename" => found.rename = value,
                        "rename_all" => found.rename_all = value,
                        "rename_all_fields" => found.rename_all_fields = value,
                        "tag" => found.tag = value,
                        "content" => found.content = value,
                        "default" => found.has_default = true,
                        "skip_serializing_if" => found.may_be_left_out = true,
                        "deserialize_with" => found.has_reader = true,
                        "flatten" => found.is_flat = true,
                        "into" => found.is_number = value.as_deref() == Some("u8"),
                        "untagged" => found.is_untagged = true,
                        "skip_serializing" => found.is_never_written = true,
                        // None changes what is written, and readers take the names of the records.
                        "alias" | "deny_unknown_fields" | "try_from" | "borrow" => {}
                        other => panic!("this test does not know the attribute {other} of serde"),
                    }
                    Ok(())
                })
                .unwrap();
        }
        found
    }
}

fn in_case(case: Option<&str>, name: &str, is_variant: bool) -> String {
    let words: Vec<String> = if is_variant {
        let mut words: Vec<String> = Vec::new();
        for letter in name.chars() {
            match words.last_mut() {
                Some(word) if !letter.is_uppercase() => word.push(letter),
                _ => words.push(letter.to_string()),
            }
        }
        words
    } else {
        name.split('_').map(str::to_owned).collect()
    };
    let capital = |word: &String| word[..1].to_uppercase() + &word[1..];
    match case {
        None => name.to_owned(),
        Some("camelCase") => {
            let all: String = words.iter().map(capital).collect();
            all[..1].to_lowercase() + &all[1..]
        }
        Some("lowercase") => name.to_lowercase(),
        Some("kebab-case") => words.join("-").to_lowercase(),
        Some(other) => panic!("this test does not know the case {other}"),
    }
}

fn doc(attributes: &[Attribute], indent: &str) -> String {
    let lines: Vec<String> = attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("doc"))
        .filter_map(|attribute| match &attribute.meta {
            syn::Meta::NameValue(line) => Some(quote::quote!(#line).to_string()),
            _ => None,
        })
        .map(|line| {
            let text = line.split_once('"').map_or("", |(_, text)| text).trim_end_matches('"');
            text.replace("\\\"", "\"").replace("*/", "* /").trim().to_owned()
        })
        .collect();
    match lines.as_slice() {
        [] => String::new(),
        lines => format!("{indent}/** {} */\n", lines.join(&format!("\n{indent} * "))),
    }
}

impl Records {
    fn of(directory: &Path) -> Self {
        let mut files = Vec::new();
        collect(directory, &mut files);
        files.sort();
        let mut items = BTreeMap::new();
        for file in files {
            let tokens: TokenStream = fs::read_to_string(&file).unwrap().parse().unwrap();
            for item in types(tokens) {
                items.insert(item.ident.to_string(), item);
            }
        }
        Self { items }
    }

    /// The name and the members of a type's path.
    fn of_type(&self, ty: &Type, way: Way, uses: &mut BTreeSet<(String, Way)>, both: &BTreeSet<String>) -> String {
        match ty {
            Type::Reference(inner) => self.of_type(&inner.elem, way, uses, both),
            Type::Slice(inner) => format!("{}[]", self.of_type(&inner.elem, way, uses, both)),
            Type::Tuple(members) if members.elems.is_empty() => "undefined".to_owned(),
            Type::Tuple(members) => {
                let members = members.elems.iter().map(|member| self.of_type(member, way, uses, both));
                format!("[{}]", members.collect::<Vec<_>>().join(", "))
            }
            Type::Path(path) => {
                let last = path.path.segments.last().unwrap();
                let name = last.ident.to_string();
                let arguments: Vec<String> = match &last.arguments {
                    PathArguments::AngleBracketed(arguments) => arguments
                        .args
                        .iter()
                        .filter_map(|argument| match argument {
                            GenericArgument::Type(ty) => Some(self.of_type(ty, way, uses, both)),
                            _ => None,
                        })
                        .collect(),
                    _ => Vec::new(),
                };
                let first = || arguments.first().unwrap().clone();
                match name.as_str() {
                    "String" | "str" => "string".to_owned(),
                    "bool" => "boolean".to_owned(),
                    "u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64" | "f64" => "number".to_owned(),
                    "Value" | "RawValue" => "unknown".to_owned(),
                    "Map" | "BTreeMap" => format!("Record<string, {}>", arguments.last().unwrap()),
                    "Box" | "Arc" => first(),
                    "Vec" if first().contains('|') => format!("({})[]", first()),
                    "Vec" => format!("{}[]", first()),
                    "Option" => format!("{} | null", first()),
                    _ if self.items.contains_key(&name) => {
                        uses.insert((name.clone(), way));
                        let is_second = way == Way::In && both.contains(&name);
                        let name = if is_second { format!("{name}Input") } else { name };
                        match arguments.as_slice() {
                            [] => name,
                            arguments => format!("{name}<{}>", arguments.join(", ")),
                        }
                    }
                    // Made by a macro, and written from its own list.
                    "Reason" => name,
                    // A parameter of a generic record.
                    _ if name.len() == 1 => name,
                    _ => panic!("this test does not know the type {name}"),
                }
            }
            _ => panic!("this test does not know the type {}", quote::quote!(#ty)),
        }
    }

    fn members(
        &self,
        fields: &Fields,
        (case, has_defaults): (Option<&str>, bool),
        way: Way,
        uses: &mut BTreeSet<(String, Way)>,
        both: &BTreeSet<String>,
    ) -> (String, Vec<String>) {
        let (mut members, mut flat) = (String::new(), Vec::new());
        for field in fields {
            let serde = Serde::of(&field.attrs);
            if serde.is_flat {
                flat.push(self.of_type(&field.ty, way, uses, both));
                continue;
            }
            let name = field.ident.as_ref().unwrap().to_string();
            let name = serde.rename.clone().unwrap_or_else(|| in_case(case, &name, false));
            let mut ty = self.of_type(&field.ty, way, uses, both);
            let is_optional = match way {
                Way::Out => serde.may_be_left_out,
                Way::In => serde.has_default || has_defaults || (is_option(field) && !serde.has_reader),
            };
            if way == Way::Out && serde.may_be_left_out && is_option(field) {
                ty = ty.trim_end_matches(" | null").to_owned();
            }
            let mark = if is_optional { "?" } else { "" };
            writeln!(members, "{}  {name}{mark}: {ty};", doc(&field.attrs, "  ")).unwrap();
        }
        (members, flat)
    }

    /// A record or a closed set, as TypeScript.
    #[expect(clippy::too_many_lines, reason = "one arm for each form that serde writes")]
    fn item(&self, name: &str, way: Way, uses: &mut BTreeSet<(String, Way)>, both: &BTreeSet<String>) -> String {
        let item = &self.items[name];
        let serde = Serde::of(&item.attrs);
        let shown = match way {
            Way::In if both.contains(name) => format!("{name}Input"),
            _ => name.to_owned(),
        };
        let generics: Vec<String> = item
            .generics
            .type_params()
            .map(|parameter| match &parameter.default {
                Some((_, default)) => {
                    format!("{} = {}", parameter.ident, self.of_type(default, way, uses, both))
                }
                None => parameter.ident.to_string(),
            })
            .collect();
        let generics = if generics.is_empty() {
            String::new()
        } else {
            format!("<{}>", generics.join(", "))
        };
        let head = doc(&item.attrs, "");
        match &item.data {
            Data::Struct(data) => {
                let case = (serde.rename_all.as_deref(), serde.has_default);
                let (members, flat) = self.members(&data.fields, case, way, uses, both);
                if flat.is_empty() {
                    format!("{head}export interface {shown}{generics} {{\n{members}}}\n")
                } else {
                    let flat = flat.join(" & ");
                    format!("{head}export type {shown}{generics} = {flat} & {{\n{members}}};\n")
                }
            }
            Data::Enum(data) => {
                let is_number = serde.is_number || WRITTEN_BY_HAND.iter().any(|(by_hand, _)| *by_hand == name);
                if is_number {
                    let members: Vec<String> = data
                        .variants
                        .iter()
                        .map(|variant| {
                            let (_, number) = variant.discriminant.as_ref().unwrap();
                            let number = quote::quote!(#number);
                            format!("{}  {}: {number},\n", doc(&variant.attrs, "  "), variant.ident)
                        })
                        .collect();
                    let members = members.concat();
                    return format!(
                        "{head}export const {shown} = {{\n{members}}} as const;\nexport type {shown} = (typeof \
                         {shown})[keyof typeof {shown}];\n"
                    );
                }
                let mut choices = String::new();
                for variant in &data.variants {
                    let of_variant = Serde::of(&variant.attrs);
                    if of_variant.is_never_written {
                        continue;
                    }
                    let ident = variant.ident.to_string();
                    let wire = of_variant.rename.clone();
                    let wire = wire.unwrap_or_else(|| in_case(serde.rename_all.as_deref(), &ident, true));
                    let of_fields = of_variant.rename_all.as_deref().or(serde.rename_all_fields.as_deref());
                    let borrowed = BORROWED.iter().find(|(of, _)| name == "AgentEvent" && *of == ident);
                    let data = match (&variant.fields, borrowed) {
                        (_, Some((_, record))) => {
                            uses.insert(((*record).to_owned(), way));
                            Some((*record).to_owned())
                        }
                        (Fields::Unit, None) => None,
                        (Fields::Unnamed(fields), None) => {
                            Some(self.of_type(&fields.unnamed.first().unwrap().ty, way, uses, both))
                        }
                        (named @ Fields::Named(_), None) => {
                            let (members, _) = self.members(named, (of_fields, false), way, uses, both);
                            Some(format!("{{\n{members}  }}"))
                        }
                    };
                    let choice = match (&serde.tag, &serde.content, data) {
                        (None, None, None) => format!("\"{wire}\""),
                        (None, None, Some(data)) if serde.is_untagged => data,
                        (None, None, Some(data)) => format!("{{ {wire}: {data} }}"),
                        (Some(tag), None, None) => format!("{{ {tag}: \"{wire}\" }}"),
                        (Some(tag), None, Some(data)) => format!("({{ {tag}: \"{wire}\" }} & {data})"),
                        (Some(tag), Some(content), Some(data)) => {
                            format!("{{ {tag}: \"{wire}\"; {content}: {data} }}")
                        }
                        (Some(tag), Some(_), None) => format!("{{ {tag}: \"{wire}\" }}"),
                        (None, Some(_), _) => panic!("content without a tag"),
                    };
                    write!(choices, "\n{}  | {choice}", doc(&variant.attrs, "  ")).unwrap();
                }
                format!("{head}export type {shown}{generics} ={choices};\n")
            }
            Data::Union(_) => panic!("{name} is a union"),
        }
    }

    /// The table of methods, in one direction each.
    fn methods(&self, uses: &mut BTreeSet<(String, Way)>, both: &BTreeSet<String>) -> String {
        let mut table = String::new();
        for method in Method::ALL {
            let ty = |name: &str| syn::parse_str::<Type>(name).unwrap();
            let params = self.of_type(&ty(method.params_type()), Way::In, uses, both);
            let result = self.of_type(&ty(method.result_type()), Way::Out, uses, both);
            writeln!(
                table,
                "  \"{}\": {{ params: {params}; result: {result} }};",
                method.name()
            )
            .unwrap();
        }
        table
    }

    fn write(&self) -> String {
        // First which record is used in which direction, then with the names that follow from that.
        let every = |both: &BTreeSet<String>| {
            let mut uses = BTreeSet::new();
            let methods = self.methods(&mut uses, both);
            for event in ["AgentEvent", "ServiceEventParams", "RpcError"] {
                uses.insert((event.to_owned(), Way::Out));
            }
            let mut written = BTreeMap::new();
            while let Some(next) = uses.iter().find(|used| !written.contains_key(*used)).cloned() {
                let text = self.item(&next.0, next.1, &mut uses, both);
                written.insert(next, text);
            }
            (methods, written)
        };
        let (_, written) = every(&BTreeSet::new());
        let both: BTreeSet<String> = written
            .iter()
            .filter(|((name, way), text)| *way == Way::In && written.get(&(name.clone(), Way::Out)) != Some(text))
            .filter(|((name, _), _)| written.contains_key(&(name.clone(), Way::Out)))
            .map(|((name, _), _)| name.clone())
            .collect();
        // What holds a record of two forms has two forms itself.
        let mut both = both;
        loop {
            let (_, written) = every(&both);
            let more: BTreeSet<String> = written
                .keys()
                .filter(|(name, way)| *way == Way::In && written.contains_key(&(name.clone(), Way::Out)))
                .filter(|(name, way)| {
                    !both.contains(name) && written[&(name.clone(), Way::Out)] != written[&(name.clone(), *way)]
                })
                .map(|(name, _)| name.clone())
                .collect();
            if more.is_empty() {
                break;
            }
            both.extend(more);
        }
        let (methods, written) = every(&both);
        let mut text = head(&methods);
        let mut seen = BTreeSet::new();
        for ((name, way), item) in &written {
            let is_new = seen.insert(name.clone()) || (*way == Way::In && both.contains(name));
            if is_new && name != "Reason" {
                text += item;
                text.push('\n');
            }
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
        text
    }
}

/// What comes before the records: the methods, the closed sets, and what a sparse task leaves out.
fn head(methods: &str) -> String {
    let mut text = "// Written from the sources of the service by the test\n\
             // `the_types_of_the_web_interface_are_those_of_the_protocol` of host/daemon; UPDATE_EXPECT=1 writes it anew.\n\n\
             /** The methods of `/rpc`: the params that each takes (`undefined`: none) and its result. */\n\
             export interface Methods {\n"
            .to_owned();
    text += methods;
    text += "}\n\nexport type MethodName = keyof Methods;\n\n";
    text += &set(
        "methodNames",
        "MethodNameOfTheService",
        "The name of every method.",
        Method::ALL.iter().map(|method| method.name()),
    );
    text += &set(
        "failureKinds",
        "FailureKind",
        "Why a task failed: `errorKind` of a task.",
        FailureKind::ALL.iter().map(|kind| kind.code()),
    );
    text += &set(
        "reasons",
        "Reason",
        "The finer cause of an error of a call.",
        Reason::ALL.iter().map(|reason| reason.name()),
    );
    text += &set(
        "permissionCodes",
        "PermissionCode",
        "The first word of a plugin's permission; what follows it is to whom.",
        Permission::CODES.iter().copied(),
    );
    let usual = serde_json::to_string_pretty(&TaskDto::usual()).unwrap();
    write!(
            text,
            "/** What a member of a task is that a sparse snapshot leaves out. */\nexport const usualTask: TaskDto = {usual};\n\n"
        )
        .unwrap();
    text
}

/// A closed set of texts: a list of them, and their type.
fn set<'a>(list: &str, ty: &str, about: &str, members: impl Iterator<Item = &'a str>) -> String {
    let members: Vec<String> = members.map(|member| format!("  \"{member}\",\n")).collect();
    let members = members.concat();
    format!(
        "/** {about} */\nexport const {list} = [\n{members}] as const;\nexport type {ty} = (typeof {list})[number];\n\n"
    )
}

fn is_option(field: &Field) -> bool {
    matches!(&field.ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Option"))
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The structs and enums of a file, outside its modules.
fn types(tokens: TokenStream) -> Vec<DeriveInput> {
    let mut found = Vec::new();
    let mut item: Vec<TokenTree> = Vec::new();
    let mut is_type = false;
    for token in tokens {
        let ends = match &token {
            TokenTree::Ident(word) => {
                is_type |= word == "struct" || word == "enum";
                false
            }
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
            TokenTree::Punct(mark) => mark.as_char() == ';',
            TokenTree::Literal(_) => false,
        };
        item.push(token);
        if ends {
            let whole: TokenStream = item.drain(..).collect();
            if is_type {
                found.extend(syn::parse2::<DeriveInput>(whole));
            }
            is_type = false;
        }
    }
    found
}
