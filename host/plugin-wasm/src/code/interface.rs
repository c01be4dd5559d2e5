//! Reads a plugin's imports and exports from its code. They are proof: a function that is not imported cannot be
//! called.

use plugin_host::runtime::Interface;
use wasmtime::{
    Engine,
    component::{Component, types::ComponentItem},
};

/// The package that all our interfaces are in.
const PACKAGE: &str = "svc:plugin/";

/// The interfaces of our package that a component exports, and the functions that it imports.
pub(crate) fn of(engine: &Engine, component: &Component) -> Interface {
    let component = component.component_type();
    let exports = component.exports(engine).filter_map(|(name, _)| own_name(name));
    let mut interface = Interface {
        exports: exports.map(str::to_owned).collect(),
        imports: Vec::new(),
    };
    for (name, item) in component.imports(engine) {
        let (Some(name), ComponentItem::ComponentInstance(instance)) = (own_name(name), item.ty) else {
            continue;
        };
        let items = instance.exports(engine);
        let functions = items.filter(|(_, item)| matches!(item.ty, ComponentItem::ComponentFunc(_)));
        let functions = functions.map(|(function, _)| format!("{name}.{function}"));
        interface.imports.extend(functions);
    }
    interface
}

/// The first imported interface that is not in the contract.
pub(crate) fn unknown_import(engine: &Engine, component: &Component) -> Option<String> {
    let component = component.component_type();
    let mut names = component.imports(engine).map(|(name, _)| name);
    let unknown_import = names.find(|name| own_name(name).is_none() && !name.starts_with("wasi:"));
    unknown_import.map(str::to_owned)
}

/// The name of an interface of ours, without package and version.
fn own_name(interface: &str) -> Option<&str> {
    let name = interface.strip_prefix(PACKAGE)?;
    Some(name.split_once('@').map_or(name, |(name, _)| name))
}
