//! Modules of a crate stand in layers, as crates of the workspace do: a module uses its own children and the modules below
//! it. Between siblings no edge leads back up, and no function of a parent is called by its children; types and constants
//! of a parent are its children's vocabulary.
//!
//! Edges are read from the paths in the sources (`use` and inline paths that begin with `crate`, `self` or `super`), through
//! re-exports, without tests. What a macro expands to is not seen.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    str::FromStr as _,
};

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

use crate::{edges::workspace, files::check_none};

/// The heading in the documentation of a crate's root under which its layers are listed, the topmost first.
const HEADING: &str = "//! # Layers";

/// A crate with more modules than this in its root lists its layers.
const UNLISTED_AT_MOST: usize = 4;

/// Re-exports of re-exports that are followed.
const MAX_REEXPORTS: usize = 8;

/// Names from the crate's root down.
type ModulePath = Vec<String>;

/// What one source file says.
#[derive(Default)]
struct Module {
    /// What its `use` declarations name: the name in this module, and the path from the crate's root.
    imports: BTreeMap<String, ModulePath>,
    /// Names in this module that come from other crates.
    foreign: BTreeSet<String>,
    /// The paths it uses, from the crate's root.
    uses: BTreeSet<ModulePath>,
}

/// A crate's modules, without its tests.
struct Crate {
    name: String,
    /// The documentation at the head of its root.
    head: Vec<String>,
    modules: BTreeMap<ModulePath, Module>,
}

/// A use of one module by another.
struct Edge<'a> {
    from: &'a [String],
    to: ModulePath,
    /// What is used; `None` is the module as such.
    item: Option<String>,
}

impl Crate {
    fn read(name: &str, root: &Path) -> Self {
        let directory = root.parent().expect("a crate's root is in a directory");
        let mut crate_ = Self {
            name: name.to_owned(),
            head: head(&fs::read_to_string(root).unwrap()),
            modules: BTreeMap::new(),
        };
        let files = sources(directory);
        // All of them first: a path may begin with the name of a child.
        for (path, _) in &files {
            crate_.modules.entry(path.clone()).or_default();
        }
        // What a generator made has its own order.
        for (path, file) in files
            .iter()
            .filter(|(path, _)| path.last().is_none_or(|name| name != "bindings"))
        {
            let text = fs::read_to_string(file).unwrap();
            let tokens = TokenStream::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            crate_.read_tokens(path, tokens);
        }
        crate_
    }

    fn read_tokens(&mut self, path: &ModulePath, tokens: TokenStream) {
        self.modules.entry(path.clone()).or_default();
        let tokens: Vec<_> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            if is_for_tests(&tokens[at..]) {
                at = end_of_item(&tokens, at + 2);
                continue;
            }
            match &tokens[at] {
                TokenTree::Ident(word) if word == "mod" => {
                    if let [TokenTree::Ident(name), TokenTree::Group(body), ..] = &tokens[at + 1..] {
                        let mut inner = path.clone();
                        inner.push(name.to_string());
                        self.read_tokens(&inner, body.stream());
                        at += 2;
                    }
                }
                TokenTree::Ident(word) if word == "use" => {
                    let end = end_of_item(&tokens, at);
                    self.read_use(path, &[], &tokens[at + 1..end]);
                    at = end;
                    continue;
                }
                TokenTree::Ident(_) => {
                    let (names, end) = path_at(&tokens, at);
                    if let Some(absolute) = absolute(path, &names) {
                        self.module(path).uses.insert(absolute);
                    }
                    at = end;
                    continue;
                }
                TokenTree::Group(group) => self.read_tokens(path, group.stream()),
                _ => {}
            }
            at += 1;
        }
    }

    /// Reads the tree of a `use` declaration behind `prefix`.
    fn read_use(&mut self, module: &ModulePath, prefix: &[String], tree: &[TokenTree]) {
        let (names, end) = if matches!(tree.first(), Some(TokenTree::Ident(_))) {
            path_at(tree, 0)
        } else {
            (Vec::new(), 0)
        };
        let names = [prefix, &names].concat();
        // `a::b::{c, d}`: the colons before the group belong to no name.
        let rest = tree[end..].iter().find(|token| !is_colon(token));
        if let Some(TokenTree::Group(group)) = rest {
            let branches: Vec<_> = group.stream().into_iter().collect();
            for branch in branches.split(|token| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ',')) {
                self.read_use(module, &names, branch);
            }
            return;
        }
        let alias = match &tree[end..] {
            [TokenTree::Ident(word), TokenTree::Ident(alias), ..] if word == "as" => Some(alias.to_string()),
            _ => None,
        };
        let path = absolute(module, &names).or_else(|| self.relative(module, &names));
        let own = alias.or_else(|| names.last().cloned());
        let module = self.module(module);
        let Some(path) = path else {
            module.foreign.extend(own);
            return;
        };
        module.uses.insert(path.clone());
        module.imports.extend(own.map(|name| (name, path)));
    }

    /// A path that begins with the name of a child, or of something imported.
    fn relative(&self, module: &ModulePath, names: &[String]) -> Option<ModulePath> {
        let first = names.first()?;
        let path = [module.as_slice(), names].concat();
        let is_own =
            self.modules.contains_key(&path[..=module.len()]) || self.modules[module].imports.contains_key(first);
        is_own.then_some(path)
    }

    fn module(&mut self, path: &ModulePath) -> &mut Module {
        self.modules.entry(path.clone()).or_default()
    }

    /// The module in which the end of `path` is defined, and its name there.
    fn resolve(&self, path: &[String]) -> Option<(ModulePath, Option<String>)> {
        let mut path = path.to_vec();
        for _ in 0..MAX_REEXPORTS {
            let depth = (0..=path.len())
                .rev()
                .find(|depth| self.modules.contains_key(&path[..*depth]))?;
            let (module, rest) = path.split_at(depth);
            let Some(name) = rest.first() else {
                return Some((module.to_vec(), None));
            };
            if self.modules[module].foreign.contains(name) {
                return None;
            }
            let import = self.modules[module].imports.get(name);
            match import.filter(|import| import[..] != path[..=depth]) {
                Some(import) => path = [import.as_slice(), &rest[1..]].concat(),
                _ => return Some((module.to_vec(), Some(name.clone()))),
            }
        }
        None
    }

    fn edges(&self) -> impl Iterator<Item = Edge<'_>> {
        self.modules.iter().flat_map(move |(from, module)| {
            let resolved = module.uses.iter().filter_map(|path| self.resolve(path));
            resolved.map(move |(to, item)| Edge { from, to, item })
        })
    }

    /// For each module with children: which child uses which, and an example.
    fn sibling_edges(&self) -> BTreeMap<ModulePath, BTreeMap<(String, String), String>> {
        let mut levels: BTreeMap<ModulePath, BTreeMap<(String, String), String>> = BTreeMap::new();
        for edge in self.edges() {
            let common = edge.from.iter().zip(&edge.to).take_while(|(a, b)| a == b).count();
            if let (Some(from), Some(to)) = (edge.from.get(common), edge.to.get(common)) {
                let example = format!(
                    "{} uses {}{}",
                    edge.from.join("::"),
                    edge.to.join("::"),
                    edge.item.map_or(String::new(), |item| format!("::{item}"))
                );
                let level = levels.entry(edge.from[..common].to_vec()).or_default();
                level.entry((from.clone(), to.clone())).or_insert(example);
            }
        }
        levels
    }

    /// The layers that the root's documentation lists, each with its modules.
    fn listed_layers(&self) -> Option<Vec<Vec<String>>> {
        let list = self.head.iter().skip_while(|line| *line != HEADING).skip(1);
        let items = list
            .skip_while(|line| !line.starts_with("//! -"))
            .take_while(|line| line.starts_with("//! -") || line.starts_with("//!   "))
            .filter(|line| line.starts_with("//! -"));
        // Names of modules stand before the dash or colon that begins the explanation.
        let names = |line: &String| {
            let names = line.split(['–', ':']).next().unwrap_or("").to_owned();
            names.split('`').skip(1).step_by(2).map(str::to_owned).collect()
        };
        let layers: Vec<_> = items.map(names).collect();
        (!layers.is_empty()).then_some(layers)
    }
}

/// The files below a crate's root, and the modules they are; without tests and executables.
fn sources(root: &Path) -> Vec<(ModulePath, PathBuf)> {
    let mut files = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(next) = directories.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let stem = path.file_stem().unwrap().to_str().unwrap();
            if ["tests", "bin", "main"].contains(&stem) {
                continue;
            }
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let relative = path.strip_prefix(root).unwrap().with_extension("");
                let names = relative.iter().map(|name| name.to_str().unwrap().to_owned());
                files.push((names.filter(|name| name != "lib").collect(), path));
            }
        }
    }
    files
}

fn head(text: &str) -> Vec<String> {
    text.lines()
        .take_while(|line| line.starts_with("//!"))
        .map(str::to_owned)
        .collect()
}

fn is_colon(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(mark) if mark.as_char() == ':')
}

/// Whether `#[cfg(test)]` stands here.
fn is_for_tests(tokens: &[TokenTree]) -> bool {
    let [TokenTree::Punct(mark), TokenTree::Group(attribute), ..] = tokens else {
        return false;
    };
    mark.as_char() == '#' && attribute.stream().to_string().replace(' ', "") == "cfg(test)"
}

/// Behind the item that begins at `at`: behind its semicolon or its body.
fn end_of_item(tokens: &[TokenTree], at: usize) -> usize {
    // The braces of a `use` are not its end.
    let is_use = matches!(tokens.get(at), Some(TokenTree::Ident(word)) if word == "use");
    let is_end = |token: &TokenTree| match token {
        TokenTree::Punct(mark) => mark.as_char() == ';',
        TokenTree::Group(group) => !is_use && group.delimiter() == Delimiter::Brace,
        _ => false,
    };
    let length = tokens[at..].iter().position(is_end);
    length.map_or(tokens.len(), |length| at + length + 1)
}

/// The names of the path that begins at `at`, and where it ends.
fn path_at(tokens: &[TokenTree], mut at: usize) -> (Vec<String>, usize) {
    let mut names = Vec::new();
    while let Some(TokenTree::Ident(name)) = tokens.get(at) {
        names.push(name.to_string());
        at += 1;
        match tokens.get(at..at + 3) {
            Some([TokenTree::Punct(first), TokenTree::Punct(second), TokenTree::Ident(_)])
                if first.as_char() == ':' && first.spacing() == Spacing::Joint && second.as_char() == ':' =>
            {
                at += 2;
            }
            _ => break,
        }
    }
    (names, at)
}

/// A path that begins with `crate`, `self` or `super`, from the crate's root.
fn absolute(module: &[String], names: &[String]) -> Option<ModulePath> {
    let mut base = match names.first()?.as_str() {
        "crate" => Vec::new(),
        "self" | "super" => module.to_vec(),
        _ => return None,
    };
    let mut rest = names;
    if rest[0] == "crate" || rest[0] == "self" {
        rest = &rest[1..];
    }
    while rest.first().is_some_and(|name| name == "super") {
        base.pop();
        rest = &rest[1..];
    }
    base.extend_from_slice(rest);
    // `self` as a method's receiver names nothing.
    (names.len() > 1).then_some(base)
}

/// The modules that are on a cycle: from which one comes back to them.
fn on_cycles(edges: &BTreeMap<(String, String), String>) -> BTreeSet<String> {
    let reaches = |start: &str, goal: &str| {
        let mut seen = BTreeSet::new();
        let mut next = vec![start.to_owned()];
        while let Some(at) = next.pop() {
            for (_, to) in edges.keys().filter(|(from, _)| *from == at) {
                if to == goal {
                    return true;
                }
                next.extend(seen.insert(to.clone()).then(|| to.clone()));
            }
        }
        false
    };
    let starts: BTreeSet<_> = edges.keys().map(|(from, _)| from.clone()).collect();
    starts.into_iter().filter(|start| reaches(start, start)).collect()
}

fn crates() -> Vec<Crate> {
    let packages = workspace();
    let libraries = packages.iter().filter_map(|package| {
        let library = package.targets.iter().find(|target| target.is_lib())?;
        let is_production = !package.manifest_path.as_str().contains("/tests/");
        is_production.then(|| Crate::read(&package.name, &PathBuf::from(&library.src_path)))
    });
    libraries.collect()
}

#[test]
fn siblings_use_each_other_in_one_direction_only() {
    let mut cycles = Vec::new();
    for crate_ in crates() {
        for (level, edges) in crate_.sibling_edges() {
            let knot = on_cycles(&edges);
            let ties = edges
                .iter()
                .filter(|((from, to), _)| knot.contains(from) && knot.contains(to));
            if !knot.is_empty() {
                let ties: Vec<_> = ties.map(|(_, example)| format!("    {example}")).collect();
                let names: Vec<_> = knot.iter().map(String::as_str).collect();
                let place = [std::slice::from_ref(&crate_.name), level.as_slice()]
                    .concat()
                    .join("::");
                cycles.push(format!(
                    "{place} has a cycle of {}: {}\n{}",
                    knot.len(),
                    names.join(", "),
                    ties.join("\n")
                ));
            }
        }
    }
    check_none(&cycles, "move what both need below both");
}

#[test]
fn children_call_no_function_of_their_parents() {
    let mut found = Vec::new();
    for crate_ in crates() {
        for edge in crate_.edges() {
            let is_function = edge
                .item
                .as_ref()
                .is_some_and(|item| item.starts_with(char::is_lowercase));
            let is_ancestor = edge.from.len() > edge.to.len() && edge.from.starts_with(&edge.to);
            if is_function && is_ancestor {
                let item = edge.item.unwrap_or_default();
                let to = edge.to.join("::");
                found.push(format!("{}: {} uses {to}::{item}", crate_.name, edge.from.join("::")));
            }
        }
    }
    check_none(&found, "move these below, beside the modules that call them");
}

#[test]
fn the_root_of_a_crate_lists_its_layers_and_edges_lead_down() {
    let mut found = Vec::new();
    for crate_ in crates() {
        let name = &crate_.name;
        let top: BTreeSet<_> = crate_
            .modules
            .keys()
            .filter(|path| path.len() == 1)
            .map(|path| path[0].clone())
            .collect();
        let Some(layers) = crate_.listed_layers() else {
            if top.len() > UNLISTED_AT_MOST {
                found.push(format!("{name}: no list under `{HEADING}`"));
            }
            continue;
        };
        let floor = |module: &str| layers.iter().position(|layer| layer.iter().any(|name| name == module));
        for module in &top {
            if floor(module).is_none() {
                found.push(format!("{name}: `{module}` is in no layer"));
            }
        }
        let listed = layers.iter().flatten();
        found.extend(
            listed
                .filter(|module| !top.contains(*module))
                .map(|module| format!("{name}: there is no module `{module}`")),
        );
        let edges = crate_.sibling_edges().remove(&Vec::new()).unwrap_or_default();
        for ((from, to), example) in edges {
            if floor(&from) > floor(&to) {
                found.push(format!("{name}: {example}, which is above it"));
            }
        }
    }
    check_none(&found, "what the roots say of their layers is not what the sources do");
}
