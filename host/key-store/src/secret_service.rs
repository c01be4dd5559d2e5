//! Secrets as items of the default collection (Secret Service API Specification 0.2).
//!
//! Secrets are transferred without the encryption that the specification offers: the bus is a socket of this machine that
//! only the user's own processes can reach, and a process that can read it can query the store as well.

use message_bus::{BusAddress, BusError, Connection, Method, Writer};

use crate::{KeyStore, KeyStoreError};

const SERVICE: &str = "org.freedesktop.secrets";
const ROOT: &str = "/org/freedesktop/secrets";

/// What the items of this program are found by, beside their name.
const SCHEMA: &str = "svc.VaultKey";

/// What has no object path: an alias without a collection, and a call that needs no prompt.
const NOTHING: &str = "/";

/// The Secret Service of the user's session. Every call opens a connection of its own: the key is needed once at a start.
#[derive(Debug)]
pub struct SecretService {
    bus: BusAddress,
}

impl SecretService {
    /// The service on this bus. Nothing is opened before the first call.
    pub fn new(bus: BusAddress) -> Self {
        Self { bus }
    }

    fn open(&self) -> Result<Session, KeyStoreError> {
        let mut bus = Connection::open(&self.bus)?;
        let mut plain = Writer::default();
        plain.text("plain").signature("s").text("");
        let mut reply = bus.call(of_service("OpenSession"), "sv", &plain, "vo")?;
        reply.signature().map_err(BusError::from)?;
        reply.text().map_err(BusError::from)?;
        let path = reply.text().map_err(BusError::from)?;
        Ok(Session { bus, path })
    }
}

impl KeyStore for SecretService {
    fn load(&self, name: &str) -> Result<Option<Vec<u8>>, KeyStoreError> {
        let mut session = self.open()?;
        let Some(item) = session.find(name)? else {
            return Ok(None);
        };
        let mut asked = Writer::default();
        asked.text(&session.path);
        let of_item = of(&item, "org.freedesktop.Secret.Item", "GetSecret");
        let mut reply = session.bus.call(of_item, "o", &asked, "(oayays)")?;
        let mut read = || {
            reply.structure()?;
            reply.text()?;
            reply.byte_array()?;
            reply.byte_array()
        };
        Ok(Some(read().map_err(BusError::from)?))
    }

    fn save(&self, name: &str, secret: &[u8]) -> Result<(), KeyStoreError> {
        let mut session = self.open()?;
        let collection = session.collection()?;
        let mut item = Writer::default();
        item.structures(|properties| {
            let label = format!("Svc: the key that stored secrets are sealed with ({name})");
            properties.align(8).text("org.freedesktop.Secret.Item.Label");
            properties.signature("s").text(&label);
            properties.align(8).text("org.freedesktop.Secret.Item.Attributes");
            properties.signature("a{ss}");
            attributes(properties, name);
        });
        item.align(8)
            .text(&session.path)
            .bytes(b"")
            .bytes(secret)
            .text("text/plain");
        item.boolean(true);
        let create = of(&collection, "org.freedesktop.Secret.Collection", "CreateItem");
        let mut reply = session.bus.call(create, "a{sv}(oayays)b", &item, "oo")?;
        reply.text().map_err(BusError::from)?;
        done(&reply.text().map_err(BusError::from)?)
    }

    fn remove(&self, name: &str) -> Result<(), KeyStoreError> {
        let mut session = self.open()?;
        let Some(item) = session.find(name)? else {
            return Ok(());
        };
        let delete = of(&item, "org.freedesktop.Secret.Item", "Delete");
        let mut reply = session.bus.call(delete, "", &Writer::default(), "o")?;
        done(&reply.text().map_err(BusError::from)?)
    }
}

/// A connection with a session of the service.
struct Session {
    bus: Connection,
    path: String,
}

impl Session {
    /// The item of this name, if an unlocked collection has one.
    fn find(&mut self, name: &str) -> Result<Option<String>, KeyStoreError> {
        let mut asked = Writer::default();
        attributes(&mut asked, name);
        let mut reply = self.bus.call(of_service("SearchItems"), "a{ss}", &asked, "aoao")?;
        let unlocked = reply.paths().map_err(BusError::from)?;
        let locked = reply.paths().map_err(BusError::from)?;
        match unlocked.into_iter().next() {
            Some(item) => Ok(Some(item)),
            None if !locked.is_empty() => Err(KeyStoreError::Locked),
            // A locked collection may hide what it has.
            None => match self.collection() {
                Ok(_) | Err(KeyStoreError::NoCollection) => Ok(None),
                Err(error) => Err(error),
            },
        }
    }

    /// The default collection, unlocked.
    fn collection(&mut self) -> Result<String, KeyStoreError> {
        let mut asked = Writer::default();
        asked.text("default");
        let mut reply = self.bus.call(of_service("ReadAlias"), "s", &asked, "o")?;
        let path = reply.text().map_err(BusError::from)?;
        if path == NOTHING {
            return Err(KeyStoreError::NoCollection);
        }
        let mut asked = Writer::default();
        asked.text("org.freedesktop.Secret.Collection").text("Locked");
        let get = of(&path, "org.freedesktop.DBus.Properties", "Get");
        let mut reply = self.bus.call(get, "ss", &asked, "v")?;
        let mut read = || {
            let kind = reply.signature()?;
            reply.number().map(|value| kind == "b" && value == 0)
        };
        if read().map_err(BusError::from)? {
            Ok(path)
        } else {
            Err(KeyStoreError::Locked)
        }
    }
}

fn of_service(member: &str) -> Method<'_> {
    of(ROOT, "org.freedesktop.Secret.Service", member)
}

fn of<'a>(path: &'a str, interface: &'a str, member: &'a str) -> Method<'a> {
    Method {
        destination: SERVICE,
        path,
        interface,
        member,
    }
}

fn attributes(writer: &mut Writer, name: &str) {
    writer.structures(|attributes| {
        attributes.align(8).text("xdg:schema").text(SCHEMA);
        attributes.align(8).text("key").text(name);
    });
}

/// A call that wants to ask the user first has not happened.
fn done(prompt: &str) -> Result<(), KeyStoreError> {
    if prompt == NOTHING {
        Ok(())
    } else {
        Err(KeyStoreError::Locked)
    }
}
