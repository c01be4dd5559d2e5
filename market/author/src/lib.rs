//! The commands of `svc` for plugin authors and for maintainers of plugin sources.
//!
//! *Owns* the folder of a plugin under development: creating, building, checking, testing and packing it; and the
//! terminal side of `market-tool`.
//!
//! *Never* knows how the sandbox is started or the network is reached: the executable supplies both in [`Facilities`].
//!
//! # Layers
//! - `dev`, `pack`
//! - `inspect`, `lint`, `maintain`, `new`, `test`
//! - `build`
//! - `loader`: a plugin loaded in the sandbox of this process

mod build;
mod dev;
mod inspect;
mod lint;
mod loader;
mod maintain;
mod new;
mod pack;
mod test;

use std::pin::Pin;

use command::{Exit, environment::Environment, runtime};
use market_tool::command::AuthorCommand as SigningCommand;

pub use loader::Sandbox;
pub use maintain::{advice, exit, maintain};

/// What the executable supplies to these commands.
#[derive(Clone, Copy)]
pub struct Facilities<'a> {
    /// The process's environment.
    pub environment: &'a Environment,
    /// How to run plugin code.
    pub sandbox: Sandbox<'a>,
    /// How to reach sources that are not local folders.
    pub origins: market_tool::command::Origins<'a>,
}

impl std::fmt::Debug for Facilities<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Facilities")
            .field("environment", &self.environment)
            .finish_non_exhaustive()
    }
}

/// A command for those who write plugins.
#[derive(Debug, clap::Subcommand)]
pub enum AuthorCommand {
    /// Make the folder of a new plugin
    #[command(after_help = new::EXAMPLES)]
    New(new::NewArgs),
    /// Build a plugin's component, and show what it can do
    #[command(after_help = build::EXAMPLES)]
    Build(build::BuildArgs),
    /// Run a plugin from its folder in a service, and load every change
    #[command(after_help = dev::EXAMPLES)]
    Dev(dev::DevArgs),
    /// Replay a plugin's recorded calls in the sandbox, or record one
    #[command(after_help = test::EXAMPLES)]
    Test(test::TestArgs),
    /// Look for problems that users of a plugin would have
    #[command(after_help = lint::EXAMPLES)]
    Lint(lint::LintArgs),
    /// Make the ZIP of a plugin that others install
    #[command(after_help = pack::EXAMPLES)]
    Pack(pack::PackArgs),
    /// Show the permissions that users of a plugin must grant, derived from its code
    #[command(after_help = inspect::EXAMPLES)]
    Inspect(inspect::InspectArgs),
    /// Make keys and sign with them
    #[command(flatten)]
    Signing(SigningCommand),
}

/// Executes an author's command.
pub fn run(command: AuthorCommand, facilities: Facilities<'_>) -> anyhow::Result<Exit> {
    let Facilities {
        environment, sandbox, ..
    } = facilities;
    // Boxed, because each of these futures is large and `block_on` is instantiated for every type that it is given.
    let work: Pin<Box<dyn Future<Output = anyhow::Result<Exit>> + '_>> = match command {
        AuthorCommand::New(args) => return new::run(&args),
        AuthorCommand::Signing(command) => return maintain::sign(command, facilities),
        AuthorCommand::Build(args) => Box::pin(build::run(args, sandbox)),
        AuthorCommand::Dev(args) => Box::pin(dev::run(args, environment)),
        AuthorCommand::Test(args) => Box::pin(test::run(args, sandbox)),
        AuthorCommand::Lint(args) => Box::pin(lint::run(args, sandbox)),
        AuthorCommand::Pack(args) => Box::pin(pack::run(args, sandbox)),
        AuthorCommand::Inspect(args) => Box::pin(inspect::run(args, sandbox)),
    };
    runtime::current_thread()?.block_on(work)
}
