//! Guests for tests: small core modules by hand, made into components with the real contract or a changed one.

use wit_component::{ComponentEncoder, StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::{LiftLowerAbi, ManglingAndAbi, Resolve, WorldId};

/// The contract as plugins are built for it.
pub(crate) const WIT: &str = include_str!("../../../../plugin-sdk/wit/plugin.wit");

/// A component for the world `world` of a contract, all of whose functions crash.
pub(crate) fn dummy(wit: &str, world: &str) -> Vec<u8> {
    let (resolve, world) = resolve(wit, world);
    let module = dummy_module(&resolve, world, ManglingAndAbi::Legacy(LiftLowerAbi::Sync));
    component(module, &resolve, world)
}

/// A world that exports `previewer` and imports these interfaces.
pub(crate) fn previewer_world(imports: &[&str]) -> String {
    let imports = imports.join("; import ");
    format!("{WIT}\nworld test {{ import {imports}; export previewer; }}")
}

/// A component that exports `previewer`, whose one function does what `body` says. It may use the parameters `$url`,
/// `$length` and `$listing`, and `$done`, which gives the listing back and answers that all is well.
pub(crate) fn previewer(imports: &[&str], items: &str, body: &str) -> Vec<u8> {
    let mut imports = imports.to_vec();
    imports.push("listing");
    component_of(&previewer_world(&imports), items, body)
}

/// The same with what a process usually has: an environment, arguments, folders, sockets.
pub(crate) fn previewer_with_wasi(items: &str, body: &str) -> Vec<u8> {
    let imports = [
        "listing",
        "wasi:cli/environment@0.2.0",
        "wasi:filesystem/preopens@0.2.0",
        "wasi:sockets/instance-network@0.2.0",
        "wasi:sockets/tcp-create-socket@0.2.0",
        "wasi:sockets/ip-name-lookup@0.2.0",
    ];
    component_of(&format!("{}{WASI}", previewer_world(&imports)), items, body)
}

fn component_of(wit: &str, items: &str, body: &str) -> Vec<u8> {
    let wat = format!(
        r#"(module
            (import "svc:plugin/listing@0.1.0" "[resource-drop]listing" (func $give_back (param i32)))
            {items}
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) i32.const 1024)
            (func $done (param $listing i32) (result i32)
                (call $give_back (local.get $listing))
                (i32.const 16))
            (func (export "svc:plugin/previewer@0.1.0#preview")
                (param $url i32) (param $length i32) (param $listing i32) (result i32)
                {body}
                (call $done (local.get $listing))))"#
    );
    let (resolve, world) = resolve(wit, "test");
    component(wat::parse_str(wat).unwrap(), &resolve, world)
}

/// A component that exports `post-processor`, whose one function does what `body` says and answers that all is well. It may
/// use the parameters `$main`, `$length` and `$work`, and what `items` import of `workspace`.
pub(crate) fn post_processor(items: &str, body: &str) -> Vec<u8> {
    let wat = format!(
        r#"(module
            (import "svc:plugin/workspace@0.1.0" "[resource-drop]dir" (func $give_back (param i32)))
            {items}
            (global $next (mut i32) (i32.const 1024))
            (func (export "cabi_realloc") (param i32 i32 i32) (param $size i32) (result i32)
                (local $at i32)
                (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
                (global.set $next (i32.add (local.get $at) (local.get $size)))
                (local.get $at))
            (func (export "svc:plugin/post-processor@0.1.0#done")
                (param i32 i32) (param $main i32) (param $length i32) (param $work i32) (result i32)
                {body}
                (call $give_back (local.get $work))
                (i32.const 16)))"#
    );
    let world = format!("{WIT}\nworld test {{ import workspace; export post-processor; }}");
    let (resolve, world) = resolve(&world, "test");
    component(wat::parse_str(wat).unwrap(), &resolve, world)
}

/// The memory of most guests.
pub(crate) const MEMORY: &str = r#"(memory (export "memory") 1)"#;

fn resolve(wit: &str, world: &str) -> (Resolve, WorldId) {
    let mut resolve = Resolve::default();
    let package = resolve.push_str("plugin.wit", wit).unwrap();
    let world = resolve.select_world(&[package], Some(world)).unwrap();
    (resolve, world)
}

fn component(mut module: Vec<u8>, resolve: &Resolve, world: WorldId) -> Vec<u8> {
    embed_component_metadata(&mut module, resolve, world, StringEncoding::UTF8).unwrap();
    let mut encoder = ComponentEncoder::default().validate(true).module(&module).unwrap();
    encoder.encode().unwrap()
}

/// What of WASI a guest of a test imports.
const WASI: &str = "
    package wasi:cli@0.2.0 {
        interface environment {
            get-environment: func() -> list<tuple<string, string>>;
            get-arguments: func() -> list<string>;
        }
    }
    package wasi:filesystem@0.2.0 {
        interface types { resource descriptor; }
        interface preopens {
            use types.{descriptor};
            get-directories: func() -> list<tuple<descriptor, string>>;
        }
    }
    package wasi:sockets@0.2.0 {
        interface network {
            resource network;
            enum error-code {
                unknown, access-denied, not-supported, invalid-argument, out-of-memory, timeout, concurrency-conflict,
                not-in-progress, would-block, invalid-state, new-socket-limit, address-not-bindable, address-in-use,
                remote-unreachable, connection-refused, connection-reset, connection-aborted, datagram-too-large,
                name-unresolvable, temporary-resolver-failure, permanent-resolver-failure
            }
            enum ip-address-family { ipv4, ipv6 }
            type ipv4-address = tuple<u8, u8, u8, u8>;
            type ipv6-address = tuple<u16, u16, u16, u16, u16, u16, u16, u16>;
            record ipv4-socket-address { port: u16, address: ipv4-address }
            record ipv6-socket-address { port: u16, flow-info: u32, address: ipv6-address, scope-id: u32 }
            variant ip-socket-address { ipv4(ipv4-socket-address), ipv6(ipv6-socket-address) }
        }
        interface instance-network {
            use network.{network};
            instance-network: func() -> network;
        }
        interface tcp {
            use network.{network, error-code, ip-socket-address};
            resource tcp-socket {
                start-connect: func(network: borrow<network>, remote: ip-socket-address) -> result<_, error-code>;
            }
        }
        interface tcp-create-socket {
            use network.{error-code, ip-address-family};
            use tcp.{tcp-socket};
            create-tcp-socket: func(family: ip-address-family) -> result<tcp-socket, error-code>;
        }
        interface ip-name-lookup {
            use network.{network, error-code};
            resource resolve-address-stream;
            resolve-addresses: func(network: borrow<network>, name: string) -> result<resolve-address-stream, error-code>;
        }
    }";
