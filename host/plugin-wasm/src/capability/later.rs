//! Interfaces of the contract that this host does not implement yet. A plugin that imports one can be loaded; calls of
//! the interface fail with an explanation.

use plugin_host::PluginFault;
use wasmtime::{
    Engine,
    component::{Component, Linker, LinkerInstance, ResourceType, types::ComponentItem},
};

use crate::{capability::state::CallState, code::interface};

/// The interfaces, with descriptions for messages.
const LATER: &[(&str, &str)] = &[("workspace", "finished files")];

/// Type of the resources of these interfaces; never constructed.
struct Nothing;

/// Links what `component` imports of these interfaces.
pub(crate) fn add_to_linker(
    linker: &mut Linker<CallState>,
    engine: &Engine,
    component: &Component,
) -> wasmtime::Result<()> {
    for (import, item) in component.component_type().imports(engine) {
        let later = LATER.iter().find(|(name, _)| interface::own_name(import) == Some(name));
        if let (Some((_, what)), ComponentItem::ComponentInstance(instance)) = (later, item.ty) {
            let mut target = linker.instance(import)?;
            for (name, item) in instance.exports(engine) {
                add_item(&mut target, name, &item.ty, what)?;
            }
        }
    }
    Ok(())
}

fn add_item(
    target: &mut LinkerInstance<'_, CallState>,
    name: &str,
    item: &ComponentItem,
    what: &'static str,
) -> wasmtime::Result<()> {
    match item {
        ComponentItem::ComponentFunc(_) => {
            target.func_new(name, move |_, _, _, _| Err(PluginFault::Unsupported(what).into()))
        }
        ComponentItem::Resource(_) => target.resource(name, ResourceType::host::<Nothing>(), |_, _| Ok(())),
        _ => Ok(()),
    }
}
