//! Screens code before it is compiled. Compiling can take time and memory far beyond the size of a module; the causes
//! can be counted in advance.

use transfer::ByteCount;
use wasmparser::{Encoding, FunctionBody, Operator, Parser, Payload, Validator, WasmFeatures};

/// The largest plugin: what a file of a package may have. The largest honest ones bring a JavaScript engine that was made
/// for browsers and have 12.4 MiB.
pub const MAX_PLUGIN_BYTES: usize = 16 * 1024 * 1024;

/// Core modules of a component.
const MAX_MODULES: usize = 4;

/// Memories of a component.
const MAX_MEMORIES: u32 = 1;

/// Tables of a component.
const MAX_TABLES: u32 = 4;

/// Functions of a component.
const MAX_FUNCTIONS: usize = 20_000;

/// The longest function. The longest honest one that was seen has 427 KiB.
const MAX_BODY_BYTES: usize = 512 * 1024;

/// Local variables of one function. The most that was seen is 271.
const MAX_LOCALS: u32 = 1_000;

/// Blocks times local variables of one function: determines a compiler's effort. Honest code has up to half a million;
/// modules made to hang a compiler have a hundred million.
const MAX_BLOCKS_TIMES_LOCALS: u64 = 4_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Component,
    Module,
}

/// Why a plugin's bytes are not compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScreenError {
    #[error("not valid WebAssembly: {0}")]
    Invalid(String),
    #[error("it is larger than {}", ByteCount(MAX_PLUGIN_BYTES as u64))]
    TooLarge,
    #[error("it has {count} {what}; the limit is {limit}")]
    TooMuch { what: &'static str, count: u64, limit: u64 },
}

pub(crate) fn screen(bytes: &[u8], features_off: WasmFeatures) -> Result<Kind, ScreenError> {
    if bytes.len() > MAX_PLUGIN_BYTES {
        return Err(ScreenError::TooLarge);
    }
    let mut seen = Seen::default();
    let mut kind = None;
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.map_err(invalid)?;
        if let (None, Payload::Version { encoding, .. }) = (kind, &payload) {
            kind = Some(match encoding {
                Encoding::Component => Kind::Component,
                Encoding::Module => Kind::Module,
            });
        }
        seen.take(&payload)?;
    }
    Validator::new_with_features(WasmFeatures::default() - features_off)
        .validate_all(bytes)
        .map_err(invalid)?;
    kind.ok_or_else(|| ScreenError::Invalid("it is empty".to_owned()))
}

#[derive(Default)]
struct Seen {
    modules: usize,
    functions: usize,
    memories: u32,
    tables: u32,
}

impl Seen {
    fn take(&mut self, payload: &Payload<'_>) -> Result<(), ScreenError> {
        match payload {
            Payload::Version {
                encoding: Encoding::Module,
                ..
            } => {
                self.modules += 1;
                limit("core modules", self.modules as u64, MAX_MODULES as u64)
            }
            Payload::MemorySection(memories) => {
                self.memories = self.memories.saturating_add(memories.count());
                limit("memories", self.memories.into(), MAX_MEMORIES.into())
            }
            Payload::TableSection(tables) => {
                self.tables = self.tables.saturating_add(tables.count());
                limit("tables", self.tables.into(), MAX_TABLES.into())
            }
            Payload::CodeSectionEntry(body) => {
                self.functions += 1;
                limit("functions", self.functions as u64, MAX_FUNCTIONS as u64)?;
                check_body(body)
            }
            _ => Ok(()),
        }
    }
}

fn check_body(body: &FunctionBody<'_>) -> Result<(), ScreenError> {
    limit(
        "bytes in one function",
        body.range().len() as u64,
        MAX_BODY_BYTES as u64,
    )?;
    let mut locals = 0_u32;
    for group in body.get_locals_reader().map_err(invalid)? {
        let (count, _) = group.map_err(invalid)?;
        locals = locals.saturating_add(count);
        limit("local variables in one function", locals.into(), MAX_LOCALS.into())?;
    }
    let mut blocks = 1_u64;
    for operator in body.get_operators_reader().map_err(invalid)? {
        blocks += u64::from(starts_block(&operator.map_err(invalid)?));
    }
    limit(
        "blocks times local variables in one function",
        blocks * u64::from(locals),
        MAX_BLOCKS_TIMES_LOCALS,
    )
}

fn starts_block(operator: &Operator<'_>) -> bool {
    use Operator::{Block, Br, BrIf, BrTable, Else, If, Loop, Return, Unreachable};
    matches!(
        operator,
        Block { .. } | Loop { .. } | If { .. } | Else | Br { .. } | BrIf { .. } | BrTable { .. } | Return | Unreachable
    )
}

fn limit(what: &'static str, count: u64, limit: u64) -> Result<(), ScreenError> {
    if count > limit {
        return Err(ScreenError::TooMuch { what, count, limit });
    }
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "it stands where a closure would")]
fn invalid(error: wasmparser::BinaryReaderError) -> ScreenError {
    ScreenError::Invalid(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::features_off;

    fn check(wat: &str) -> Result<Kind, ScreenError> {
        screen(&wat::parse_str(wat).unwrap(), features_off())
    }

    fn too_much(result: &Result<Kind, ScreenError>) -> Option<&'static str> {
        match result {
            Err(ScreenError::TooMuch { what, .. }) => Some(what),
            _ => None,
        }
    }

    #[test]
    fn honest_modules_and_components_pass() {
        assert_eq!(check("(module (memory 1) (func (local i32) nop))"), Ok(Kind::Module));
        assert_eq!(check("(component (core module (memory 1)))"), Ok(Kind::Component));
    }

    #[test]
    fn what_is_not_wasm_is_said_to_be_so() {
        for bytes in [&b""[..], b"\0asm", b"PK\x03\x04", &[0; 100]] {
            assert!(matches!(screen(bytes, features_off()), Err(ScreenError::Invalid(_))));
        }
        for wat in [
            "(module (memory i64 1))",
            "(module (memory 1 1 shared))",
            "(module (memory 1) (memory 1))",
            "(module (tag))",
        ] {
            assert!(check(wat).is_err(), "{wat}");
        }
    }

    #[test]
    fn modules_made_to_hang_a_compiler_are_refused() {
        let locals = "(local i32)".repeat(900);
        let blocks = "block end ".repeat(5000);
        let bomb = check(&format!("(module (func {locals} {blocks}))"));
        assert_eq!(too_much(&bomb), Some("blocks times local variables in one function"));
        let locals = check(&format!("(module (func {}))", "(local i64)".repeat(1001)));
        assert_eq!(too_much(&locals), Some("local variables in one function"));
        let functions = check(&format!("(module {})", "(func)".repeat(20_001)));
        assert_eq!(too_much(&functions), Some("functions"));
        let modules = check(&format!("(component {})", "(core module)".repeat(5)));
        assert_eq!(too_much(&modules), Some("core modules"));
        let memories = check("(component (core module (memory 1)) (core module (memory 1)))");
        assert_eq!(too_much(&memories), Some("memories"));
    }
}
