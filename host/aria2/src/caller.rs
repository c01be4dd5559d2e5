//! A client of the dialect, for one message or one connection: its rights, and the commands that its calls give.

use std::sync::{Arc, RwLockReadGuard};

use protocol::OkResult;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    board::Board,
    dialect::Dialect,
    service::{Client, Rights},
    vocabulary::fault::{CommandError, Fault},
};

/// A client of the dialect. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Caller {
    pub(crate) dialect: Arc<Dialect>,
    pub(crate) client: Arc<dyn Client>,
    /// For whom this call is, if it may do no more than a browser without a key.
    pub(crate) visitor: Option<Arc<str>>,
    /// What code and text of a fault are called within a result.
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

    /// The same, answered in XML-RPC.
    #[must_use]
    pub fn for_xml(mut self) -> Self {
        self.fault_names = ["faultCode", "faultString"];
        self
    }

    /// What a call with this token may do now.
    pub(crate) fn rights(&self, token: Option<&str>) -> Result<Rights, Fault> {
        self.client.rights(token)
    }

    /// Whether calls need no token.
    pub(crate) fn is_known(&self) -> bool {
        self.rights(None).is_ok()
    }

    /// Whether this token gives rights to a caller that has none without.
    pub(crate) fn is_right(&self, token: Option<&str>) -> bool {
        token.is_some_and(|token| self.rights(Some(token)).is_ok())
    }

    /// The orders, while they are current.
    pub(crate) fn board(&self) -> Result<RwLockReadGuard<'_, Board>, Fault> {
        self.dialect.service.check()?;
        Ok(self.dialect.board())
    }

    /// Has the service do something.
    pub(crate) async fn command<R: DeserializeOwned>(
        &self,
        method: protocol::Method,
        params: &(impl Serialize + Sync),
    ) -> Result<R, CommandError> {
        let failed = |error: serde_json::Error| CommandError::Failed(error.to_string());
        let params = to_raw_value(params).map_err(failed)?;
        self.command_raw(method, &params).await
    }

    /// The same with parameters that are encoded.
    pub(crate) async fn command_raw<R: DeserializeOwned>(
        &self,
        method: protocol::Method,
        params: &RawValue,
    ) -> Result<R, CommandError> {
        let result = self.dialect.service.command(method, params).await?;
        let unreadable = |_| CommandError::Failed("the daemon's answer could not be read".to_owned());
        serde_json::from_str(result.get()).map_err(unreadable)
    }

    /// Has the service do something that has no result; what it did can be read afterwards.
    pub(crate) async fn order(&self, method: protocol::Method, params: &(impl Serialize + Sync)) -> Result<(), Fault> {
        let OkResult { .. } = self.command(method, params).await?;
        Ok(())
    }

    /// Where files go that name no directory.
    pub(crate) fn save_dir(&self) -> Result<String, Fault> {
        Ok(self.dialect.service.stats()?.save_dir)
    }
}
