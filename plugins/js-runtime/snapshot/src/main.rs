//! Starts the engine of scripts when it is built: runs its `start` and writes the module anew with the memory that this
//! leaves. An instance of it then begins where `start` ended, and the system copies only the pages that it changes.
//!
//! `snapshot IN OUT`. The same input gives the same output: there is no clock, no chance and nothing to import.

use std::{env, error::Error, fs, ops::Range, process::ExitCode};

use wasm_encoder::{
    ConstExpr, DataSection, ExportSection, MemorySection, MemoryType, Module as Encoded,
    reencode::{self, Reencode, utils},
};
use wasmi::{Engine, Instance, Linker, Memory, Module, Store, Val};
use wasmparser::{DataSectionReader, ExportSectionReader, GlobalSectionReader, MemorySectionReader, Parser, Payload};

/// What is run. The output does not have it.
const START: &str = "start";

/// The one function of the host that starting may ask: the engine wants the time to make chance of, which the prelude
/// replaces.
const CLOCK: &str = "now-ms";

/// Zeros of this length are left out.
const GAP_BYTES: usize = 1024;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    match env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [from, to] => match snapshot(from, to) {
            Ok(()) => return ExitCode::SUCCESS,
            Err(error) => eprintln!("{from}: {error}"),
        },
        _ => eprintln!("snapshot IN OUT"),
    }
    ExitCode::FAILURE
}

fn snapshot(from: &str, to: &str) -> Result<()> {
    let wasm = fs::read(from)?;
    check_globals(&wasm)?;
    let mut encoded = Encoded::new();
    let memory = started(&wasm)?;
    Started { memory: &memory }
        .parse_core_module(&mut encoded, Parser::new(0), &wasm)
        .map_err(|error| error.to_string())?;
    fs::write(to, encoded.finish())?;
    Ok(())
}

/// The stack pointer is where it was when `start` has returned. What else could change would be lost.
fn check_globals(wasm: &[u8]) -> Result<()> {
    let mut mutable = 0;
    for payload in Parser::new(0).parse_all(wasm) {
        if let Payload::GlobalSection(globals) = payload? {
            mutable += count_mutable(globals)?;
        }
    }
    if mutable == 1 {
        Ok(())
    } else {
        Err(format!("it has {mutable} globals that change, instead of one").into())
    }
}

fn count_mutable(globals: GlobalSectionReader<'_>) -> Result<usize> {
    let mut mutable = 0;
    for global in globals {
        mutable += usize::from(global?.ty.mutable);
    }
    Ok(mutable)
}

/// The memory when the engine has started.
fn started(wasm: &[u8]) -> Result<Vec<u8>> {
    let engine = Engine::default();
    let module = Module::new(&engine, wasm)?;
    let mut store = Store::new(&engine, ());
    let mut linker = Linker::new(&engine);
    for import in module.imports() {
        let Some(function) = import.ty().func() else {
            return Err(format!("it imports {}, which is no function", import.name()).into());
        };
        let name = import.name().to_owned();
        linker.func_new(
            import.module(),
            import.name(),
            function.clone(),
            move |_, _, results| {
                match results {
                    [time] if name == CLOCK => *time = Val::I64(0),
                    _ => return Err(wasmi::Error::new(format!("starting asks the host for {name}"))),
                }
                Ok(())
            },
        )?;
    }
    let instance: Instance = linker.instantiate_and_start(&mut store, &module)?;
    instance.get_typed_func::<(), ()>(&store, START)?.call(&mut store, ())?;
    let memory: Memory = instance.get_memory(&store, "memory").ok_or("it has no memory")?;
    Ok(memory.data(&store).to_vec())
}

/// What is in a memory, without its long runs of zeros.
fn filled(memory: &[u8]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (at, _) in memory.iter().enumerate().filter(|(_, byte)| **byte != 0) {
        match ranges.last_mut() {
            Some(last) if at - last.end < GAP_BYTES => last.end = at + 1,
            _ => ranges.push(at..at + 1),
        }
    }
    ranges
}

/// Writes the module as it was, but for its memory.
struct Started<'a> {
    memory: &'a [u8],
}

impl Reencode for Started<'_> {
    type Error = wasmparser::BinaryReaderError;

    fn parse_memory_section(
        &mut self,
        memories: &mut MemorySection,
        _: MemorySectionReader<'_>,
    ) -> std::result::Result<(), reencode::Error<Self::Error>> {
        memories.memory(MemoryType {
            minimum: (self.memory.len() >> 16) as u64,
            maximum: None,
            memory64: false,
            shared: false,
            page_size_log2: None,
        });
        Ok(())
    }

    fn parse_data_section(
        &mut self,
        data: &mut DataSection,
        _: DataSectionReader<'_>,
    ) -> std::result::Result<(), reencode::Error<Self::Error>> {
        for range in filled(self.memory) {
            let offset = i32::try_from(range.start).expect("no memory of two gigabytes is started");
            data.active(0, &ConstExpr::i32_const(offset), self.memory[range].iter().copied());
        }
        Ok(())
    }

    fn data_count(&mut self, _: u32) -> std::result::Result<u32, reencode::Error<Self::Error>> {
        Ok(u32::try_from(filled(self.memory).len()).expect("no memory has so many gaps"))
    }

    fn parse_export_section(
        &mut self,
        exports: &mut ExportSection,
        section: ExportSectionReader<'_>,
    ) -> std::result::Result<(), reencode::Error<Self::Error>> {
        for export in section {
            let export = export?;
            if export.name != START {
                utils::parse_export(self, exports, export)?;
            }
        }
        Ok(())
    }
}
