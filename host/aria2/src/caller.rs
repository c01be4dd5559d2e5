//! The client of one message or connection: its rights, and the commands of its calls.

use std::sync::{Arc, RwLockReadGuard};

use protocol::OkResult;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    board::Board,
    dialect::Dialect,
    option::Options,
    service::{Client, Rights},
    vocabulary::fault::{CommandError, Fault},
};

/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct Caller {
    pub(crate) dialect: Arc<Dialect>,
    pub(crate) client: Arc<dyn Client>,
    /// The visitor whose rights this call is limited to, if any.
    pub(crate) visitor: Option<Arc<str>>,
    /// Member names of code and message of a fault within a result; JSON-RPC and XML-RPC differ.
    pub(crate) fault_names: [&'static str; 2],
}

impl Caller {
    /// A client whose rights `client` decides.
    pub fn new(dialect: Arc<Dialect>, client: Arc<dyn Client>) -> Self {
        Self {
            dialect,
            client,
            visitor: None,
            fault_names: ["code", "message"],
        }
    }

    /// Like `self`, with answers in XML-RPC.
    #[must_use]
    pub fn for_xml(mut self) -> Self {
        self.fault_names = ["faultCode", "faultString"];
        self
    }

    /// The rights of a call with this token.
    pub(crate) fn rights(&self, token: Option<&str>) -> Result<Rights, Fault> {
        self.client.rights(token)
    }

    /// Whether calls need no token.
    pub(crate) fn is_known(&self) -> bool {
        self.rights(None).is_ok()
    }

    /// Whether this token grants rights that the caller lacks without it.
    pub(crate) fn is_right(&self, token: Option<&str>) -> bool {
        token.is_some_and(|token| self.rights(Some(token)).is_ok())
    }

    /// The lists, if they are current.
    pub(crate) fn board(&self) -> Result<RwLockReadGuard<'_, Board>, Fault> {
        self.dialect.service.check()?;
        Ok(self.dialect.board())
    }

    /// Sends a command to the service.
    pub(crate) async fn command<R: DeserializeOwned>(
        &self,
        method: protocol::Method,
        params: &(impl Serialize + Sync),
    ) -> Result<R, CommandError> {
        let failed = |error: serde_json::Error| CommandError::Failed(error.to_string());
        let params = to_raw_value(params).map_err(failed)?;
        self.command_raw(method, &params).await
    }

    /// Like [`Self::command`], with encoded parameters.
    pub(crate) async fn command_raw<R: DeserializeOwned>(
        &self,
        method: protocol::Method,
        params: &RawValue,
    ) -> Result<R, CommandError> {
        let result = self.dialect.service.command(method, params).await?;
        let unreadable = |_| CommandError::Failed("the daemon's answer could not be read".to_owned());
        serde_json::from_str(result.get()).map_err(unreadable)
    }

    /// Sends a command without a result. Its effect is visible to reads afterwards.
    pub(crate) async fn order(&self, method: protocol::Method, params: &(impl Serialize + Sync)) -> Result<(), Fault> {
        let OkResult { .. } = self.command(method, params).await?;
        Ok(())
    }

    /// Fails if one download is to have what is the same for all torrents, and is otherwise there.
    pub(crate) fn check_shared(&self, options: &Options) -> Result<(), Fault> {
        let given = ["bt-enable-lpd", "enable-peer-exchange"];
        let mut given = given
            .into_iter()
            .filter_map(|name| Some((name, options.get(name)?)))
            .peekable();
        if given.peek().is_none() {
            return Ok(());
        }
        let settings = Options::of_settings(&self.dialect.service.config()?, "", false);
        for (name, value) in given {
            if settings.get(name).is_some_and(|shared| shared != value) {
                return Err(Fault::new(format!(
                    "The option '--{name}' is the same for all torrents: change it with aria2.changeGlobalOption."
                )));
            }
        }
        Ok(())
    }

    /// The directory of downloads without `dir`.
    pub(crate) fn save_dir(&self) -> Result<String, Fault> {
        Ok(self.dialect.service.stats()?.save_dir)
    }
}
