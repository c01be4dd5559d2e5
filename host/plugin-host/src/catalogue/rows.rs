//! The rows of sources.

use std::{collections::BTreeMap, sync::Arc};

use ::store::sql::{self, Connection, Transaction};
use bytes::Bytes;
use jiff::Timestamp;
use market::{Freshness, SourceId, SourceState, StoredState};
use serde::{Deserialize, Serialize};

use super::{
    error::{Trouble, TroubleKind},
    known::{Catalogue, KnownSource},
};
use crate::error::RowError;

/// The unverified part of a source's row.
#[derive(Serialize, Deserialize)]
struct SourceRecord {
    url: String,
    key: String,
    name: String,
    added: Timestamp,
    refreshed: Timestamp,
    attempted: Timestamp,
    #[serde(default)]
    plugins: usize,
    trouble: Option<(TroubleKind, String)>,
}

impl From<&KnownSource> for SourceRecord {
    fn from(known: &KnownSource) -> Self {
        Self {
            url: known.url.to_string(),
            key: known.key.to_string(),
            name: known.name.clone(),
            added: known.added,
            refreshed: known.refreshed,
            attempted: known.attempted,
            plugins: known.plugins,
            trouble: known.trouble.clone().map(|trouble| (trouble.kind, trouble.message)),
        }
    }
}

fn parse_known(record: &str, stored: StoredState) -> Result<KnownSource, String> {
    let record: SourceRecord = serde_json::from_str(record).map_err(|error| error.to_string())?;
    let state = SourceState::from_stored(stored).map_err(|error| error.to_string())?;
    let trouble = record.trouble.map(|(kind, message)| Trouble { kind, message });
    // Only verified state is saved, so unknown freshness means a damaged row. The source is then refreshed at once.
    let is_damaged = state.freshness(record.refreshed) == Freshness::Unknown;
    let damage = || {
        Trouble::new(
            TroubleKind::Invalid,
            "what was saved of it is damaged; it is asked again",
        )
    };
    Ok(KnownSource {
        url: record.url.parse().map_err(|error| format!("{error}"))?,
        key: record.key.parse().map_err(|error| format!("{error}"))?,
        name: record.name,
        added: record.added,
        refreshed: record.refreshed,
        attempted: if is_damaged {
            Timestamp::UNIX_EPOCH
        } else {
            record.attempted
        },
        plugins: if is_damaged { 0 } else { record.plugins },
        trouble: is_damaged.then(damage).or(trouble),
        revocations: Arc::new(state.revocations().map_err(|error| error.to_string())?),
        state,
        turn: Arc::default(),
    })
}

/// The row of a source.
pub(crate) struct Row {
    id: String,
    record: String,
    stored: StoredState,
}

impl Row {
    pub(crate) fn new(id: &SourceId, known: &KnownSource) -> Self {
        Self {
            id: id.to_string(),
            record: serde_json::to_string(&SourceRecord::from(known)).expect("the record has only what JSON has"),
            stored: known.state.to_stored(),
        }
    }

    pub(crate) fn save(&self, transaction: &Transaction<'_>) -> sql::Result<()> {
        let values = (
            &self.id,
            &self.record,
            &self.stored.head,
            self.stored.index.as_deref(),
            self.stored.revocations.as_deref(),
        );
        transaction
            .prepare_cached(
                "INSERT OR REPLACE INTO market_source (id, record, head, plugins, revocations)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(values)
            .map(drop)
    }

    /// Writes everything but the two files, which may have megabytes and have not changed.
    pub(crate) fn save_head(&self, transaction: &Transaction<'_>) -> sql::Result<()> {
        transaction
            .prepare_cached("UPDATE market_source SET record = ?2, head = ?3 WHERE id = ?1")?
            .execute((&self.id, &self.record, &self.stored.head))
            .map(drop)
    }
}

pub(crate) fn remove(transaction: &Transaction<'_>, id: &SourceId) -> sql::Result<()> {
    transaction
        .execute("DELETE FROM market_source WHERE id = ?1", [id.to_string()])
        .map(drop)
}

/// Reads every source.
pub(crate) fn load(connection: &Connection) -> sql::Result<Result<Catalogue, RowError>> {
    let mut statement =
        connection.prepare("SELECT id, record, head, plugins, revocations FROM market_source ORDER BY id")?;
    let bytes = |bytes: Option<Vec<u8>>| bytes.map(Bytes::from);
    let found = statement.query_map([], |row| {
        let stored = StoredState {
            head: row.get(2)?,
            index: bytes(row.get(3)?),
            revocations: bytes(row.get(4)?),
        };
        Ok((row.get(0)?, row.get(1)?, stored))
    })?;
    let rows: Vec<(String, String, StoredState)> = found.collect::<sql::Result<_>>()?;
    let known = rows.into_iter().map(|(id, record, stored)| {
        let known = parse_known(&record, stored);
        let parsed = known.and_then(|known| Ok((id.parse::<SourceId>().map_err(|error| error.to_string())?, known)));
        let (id, known) = parsed.map_err(|reason| RowError::Source { id, reason })?;
        Ok((id, Arc::new(known)))
    });
    Ok(known
        .collect::<Result<BTreeMap<_, _>, _>>()
        .map(|known| Catalogue { known }))
}
