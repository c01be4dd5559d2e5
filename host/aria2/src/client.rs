//! aria2's interface within the process of the service: calls without HTTP, and notifications. Used by `svc aria2c`.

use std::{collections::BTreeMap, sync::Arc};

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    caller::Caller,
    dialect::Dialect,
    notices::Notices,
    option::Refusal,
    service::{Client, Rights},
    vocabulary::{fault::Fault, method::Method, params::Params},
};

/// The program itself, which has all rights.
#[derive(Debug)]
struct Own;

impl Client for Own {
    fn rights(&self, _: Option<&str>) -> Result<Rights, Fault> {
        Ok(Rights::Full)
    }

    fn restricted_to(&self) -> Option<&str> {
        None
    }
}

/// An in-process client. It needs no key.
#[derive(Debug, Clone)]
pub struct Aria2(Caller);

impl Aria2 {
    /// A client of this dialect.
    pub fn new(dialect: Arc<Dialect>) -> Self {
        Self(Caller::new(dialect, Arc::new(Own)))
    }

    /// Calls a method and reads its result.
    pub async fn call<R: DeserializeOwned>(&self, method: &str, params: Vec<Value>) -> Result<R, Refusal> {
        let known = Method::parse(method).ok_or_else(|| Fault::unknown_method(method))?;
        let result = self.0.call(known, Params(params)).await?;
        let read = serde_json::from_slice(&result);
        Ok(read.map_err(|error| Fault::new(error.to_string()))?)
    }

    /// Changes settings of the service that aria2 has no method for.
    pub async fn change_settings(&self, values: BTreeMap<String, String>) -> Result<(), Refusal> {
        Ok(self.0.patch(values).await?)
    }

    /// Subscribes to notifications from now on.
    pub fn notices(&self) -> Notices {
        Notices::of(&self.0)
    }
}
