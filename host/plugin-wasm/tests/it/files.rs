//! Guests that work on the files of a finished download.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use plugin_host::{
    PluginFault,
    manifest::Tool,
    runtime::{CallWorkspace, Workspace},
};
use plugin_wasm::{CallContext, Limits, Loaded};
use transfer::Secret;

use crate::{
    guest::{MEMORY, post_processor},
    rig::{Rig, context},
};

const URL: &str = "https://example.org/set.zip";

/// Writes down what is asked of it, and does nothing.
#[derive(Debug, Default)]
struct Asked(Mutex<Vec<String>>);

impl Asked {
    fn note(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Workspace for Asked {
    fn names(&self) -> Vec<String> {
        self.note("names".to_owned());
        vec!["set.zip".to_owned(), "b.txt".to_owned()]
    }

    fn archives(&self) -> Vec<String> {
        self.note("archives".to_owned());
        Vec::new()
    }

    fn size(&self, name: String) -> BoxFuture<'_, Result<u64, String>> {
        self.note(format!("size {name}"));
        Box::pin(async { Ok(1 << 40) })
    }

    fn read(&self, name: String, offset: u64, length: u32) -> BoxFuture<'_, Result<Vec<u8>, String>> {
        self.note(format!("read {name} {offset} {length}"));
        Box::pin(async { Ok(b"abc".to_vec()) })
    }

    fn write_new(&self, name: String, bytes: Vec<u8>) -> BoxFuture<'_, Result<(), String>> {
        self.note(format!("write {name} {}", String::from_utf8(bytes).unwrap()));
        Box::pin(async { Ok(()) })
    }

    fn rename(&self, from: String, to: String) -> BoxFuture<'_, Result<(), String>> {
        self.note(format!("rename {from} {to}"));
        Box::pin(async { Ok(()) })
    }

    fn unpack(&self, name: String, passwords: Vec<Secret>) -> BoxFuture<'_, Result<Vec<String>, String>> {
        let passwords: Vec<_> = passwords.iter().map(Secret::expose).collect();
        self.note(format!("unpack {name} {passwords:?}"));
        Box::pin(async { Ok(vec!["set".to_owned()]) })
    }

    fn remove_archive(&self, name: String) -> Result<(), String> {
        self.note(format!("remove {name}"));
        Ok(())
    }

    fn mux(&self, video: String, audio: String, output: String) -> BoxFuture<'_, Result<(), String>> {
        self.note(format!("mux {video} {audio} {output}"));
        Box::pin(async { Ok(()) })
    }
}

/// Imports a method of the directory: its parameters after the handle, the last of which is where the answer goes.
fn import(method: &str, parameters: &str) -> String {
    format!(r#"(import "svc:plugin/workspace@0.1.0" "[method]dir.{method}" (func ${method} (param i32 {parameters})))"#)
}

/// All methods, and `$check`, which crashes if the answer at 512 is an error.
fn items() -> String {
    let methods = [
        ("names", "i32"),
        ("archives", "i32"),
        ("size", "i32 i32 i32"),
        ("read", "i32 i32 i64 i32 i32"),
        ("write-new", "i32 i32 i32 i32 i32"),
        ("rename", "i32 i32 i32 i32 i32"),
        ("unpack", "i32 i32 i32 i32 i32"),
        ("remove-archive", "i32 i32 i32"),
        ("mux", "i32 i32 i32 i32 i32 i32 i32"),
    ];
    let imports = methods.map(|(method, parameters)| import(method, parameters)).concat();
    // At 256 a text of two letters; at 264 a list of it.
    format!(
        r#"{imports} {MEMORY} (data (i32.const 256) "pw\00\00\00\00\00\00\00\01\00\00\02\00\00\00")
           (func $check (if (i32.load8_u (i32.const 512)) (then unreachable)))"#
    )
}

async fn call(loaded: &Loaded, work: Option<CallWorkspace>) -> Result<(), PluginFault> {
    let context = CallContext { work, ..context().0 };
    loaded
        .post_process(URL, "set.zip", context, Limits::post())
        .await
        .result
}

#[tokio::test]
async fn every_function_reaches_the_files_with_its_arguments() {
    let (name, text, answer) = (
        "(local.get $main) (local.get $length)",
        "(i32.const 256) (i32.const 2)",
        "(i32.const 512)",
    );
    let work = "(local.get $work)";
    let body = format!(
        "(call $names {work} {answer})
         (if (i32.ne (i32.load (i32.const 516)) (i32.const 2)) (then unreachable))
         (call $archives {work} {answer})
         (if (i32.load (i32.const 516)) (then unreachable))
         (call $size {work} {name} {answer}) (call $check)
         (if (i64.ne (i64.load (i32.const 520)) (i64.const 1099511627776)) (then unreachable))
         (call $read {work} {name} (i64.const 4294967297) (i32.const 3) {answer}) (call $check)
         (if (i32.ne (i32.load8_u (i32.load (i32.const 516))) (i32.const 97)) (then unreachable))
         (call $write-new {work} {name} {text} {answer}) (call $check)
         (call $rename {work} {name} {text} {answer}) (call $check)
         (call $unpack {work} {name} (i32.const 264) (i32.const 1) {answer}) (call $check)
         (call $remove-archive {work} {name} {answer}) (call $check)
         (call $mux {work} {name} {text} {name} {answer}) (call $check)"
    );
    let loaded = Rig::new().load(post_processor(&items(), &body)).await;
    assert_eq!(loaded.interface().exports, ["post-processor"]);
    let asked = Arc::new(Asked::default());
    let tools = vec![Tool::Unpack, Tool::Mux];
    call(&loaded, Some(CallWorkspace::new(Arc::clone(&asked) as _, tools)))
        .await
        .unwrap();
    let expected = [
        "names",
        "archives",
        "size set.zip",
        "read set.zip 4294967297 3",
        "write set.zip pw",
        "rename set.zip pw",
        "unpack set.zip [\"pw\"]",
        "remove set.zip",
        "mux set.zip pw set.zip",
    ];
    assert_eq!(asked.all(), expected);
}

#[tokio::test]
async fn a_tool_that_was_not_allowed_and_files_that_are_not_there_are_refused() {
    let name = "(local.get $main) (local.get $length)";
    let body = format!(
        "(call $unpack (local.get $work) {name} (i32.const 264) (i32.const 0) (i32.const 512))
         (if (i32.eqz (i32.load8_u (i32.const 512))) (then unreachable))
         (call $mux (local.get $work) {name} {name} {name} (i32.const 512))
         (if (i32.eqz (i32.load8_u (i32.const 512))) (then unreachable))"
    );
    let loaded = Rig::new().load(post_processor(&items(), &body)).await;
    let asked = Arc::new(Asked::default());
    call(&loaded, Some(CallWorkspace::new(Arc::clone(&asked) as _, Vec::new())))
        .await
        .unwrap();
    assert_eq!(asked.all(), Vec::<String>::new());
    let fault = call(&loaded, None).await.unwrap_err();
    assert!(matches!(fault, PluginFault::Unsupported(_)), "{fault:?}");
}
