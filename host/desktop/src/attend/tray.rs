//! The icon in the tray and its menu, as a `StatusNotifierItem` (freedesktop.org) with a menu of
//! `com.canonical.dbusmenu`: what KDE has, and GNOME with its extension for them. Pure: calls in, answers out; [`super::bus`] has the connection.

use message_bus::{Call, Writer};

/// The program that shows icons.
pub(super) const WATCHER: &str = "org.kde.StatusNotifierWatcher";
pub(super) const WATCHER_PATH: &str = "/StatusNotifierWatcher";

/// Signals that the watcher has come or gone.
pub(super) const WATCHER_RULE: &str = "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',\
                                       member='NameOwnerChanged',arg0='org.kde.StatusNotifierWatcher'";

pub(super) const ITEM: &str = "org.kde.StatusNotifierItem";
/// Where every host looks for an item that registered with its name.
pub(super) const ITEM_PATH: &str = "/StatusNotifierItem";
pub(super) const MENU: &str = "com.canonical.dbusmenu";
pub(super) const MENU_PATH: &str = "/MenuBar";

const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
const INTROSPECTABLE: &str = "org.freedesktop.DBus.Introspectable";
const PEER: &str = "org.freedesktop.DBus.Peer";

const TITLE: &str = "Svc";

/// For hosts that ask what there is before they call it.
const DESCRIPTION: &str = r#"<node>
<interface name="org.kde.StatusNotifierItem">
<property name="Category" type="s" access="read"/><property name="Id" type="s" access="read"/>
<property name="Title" type="s" access="read"/><property name="Status" type="s" access="read"/>
<property name="IconName" type="s" access="read"/><property name="ToolTip" type="(sa(iiay)ss)" access="read"/>
<property name="ItemIsMenu" type="b" access="read"/><property name="Menu" type="o" access="read"/>
<method name="Activate"><arg name="x" type="i" direction="in"/><arg name="y" type="i" direction="in"/></method>
<method name="SecondaryActivate"><arg name="x" type="i" direction="in"/><arg name="y" type="i" direction="in"/></method>
<signal name="NewToolTip"/>
</interface>
<interface name="com.canonical.dbusmenu">
<property name="Version" type="u" access="read"/><property name="TextDirection" type="s" access="read"/>
<property name="Status" type="s" access="read"/><property name="IconThemePath" type="as" access="read"/>
<method name="GetLayout"><arg type="i" name="parentId" direction="in"/><arg type="i" name="recursionDepth" direction="in"/><arg type="as" name="propertyNames" direction="in"/><arg type="u" name="revision" direction="out"/><arg type="(ia{sv}av)" name="layout" direction="out"/></method>
<method name="GetGroupProperties"><arg type="ai" name="ids" direction="in"/><arg type="as" name="propertyNames" direction="in"/><arg type="a(ia{sv})" name="properties" direction="out"/></method>
<method name="Event"><arg type="i" name="id" direction="in"/><arg type="s" name="eventId" direction="in"/><arg type="v" name="data" direction="in"/><arg type="u" name="timestamp" direction="in"/></method>
<method name="AboutToShow"><arg type="i" name="id" direction="in"/><arg type="b" name="needUpdate" direction="out"/></method>
<signal name="LayoutUpdated"><arg type="u" name="revision"/><arg type="i" name="parent"/></signal>
</interface>
</node>"#;

/// What the user chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    OpenPage,
    PauseAll,
    ResumeAll,
    Quit,
}

/// An entry of the menu. Its id is its place from one on; zero is the menu itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry {
    Choice(Choice, &'static str),
    /// How many downloads there are, and how fast they are. It cannot be chosen.
    State,
    Separator,
}

const ENTRIES: [Entry; 7] = [
    Entry::Choice(Choice::OpenPage, "Open Svc"),
    Entry::State,
    Entry::Separator,
    Entry::Choice(Choice::PauseAll, "Pause all"),
    Entry::Choice(Choice::ResumeAll, "Resume all"),
    Entry::Separator,
    Entry::Choice(Choice::Quit, "Quit"),
];

/// The answer to a call.
#[derive(Debug)]
pub(super) enum Answer {
    Body(&'static str, Writer),
    /// The name of the error, and a message.
    Error(&'static str, &'static str),
}

const UNKNOWN_METHOD: Answer = Answer::Error("org.freedesktop.DBus.Error.UnknownMethod", "there is no such method");
const UNKNOWN_PROPERTY: Answer = Answer::Error(
    "org.freedesktop.DBus.Error.UnknownProperty",
    "there is no such property",
);
const WRONG_ARGUMENTS: Answer = Answer::Error("org.freedesktop.DBus.Error.InvalidArgs", "the arguments are not these");

/// The item. Its state changes with each text.
#[derive(Debug, Default)]
pub(super) struct Tray {
    /// What it says of the downloads.
    state: String,
    revision: u32,
}

impl Tray {
    pub(super) fn set(&mut self, state: String) {
        self.state = state;
        self.revision += 1;
    }

    /// The body of the signal that the menu has changed.
    pub(super) fn layout_updated(&self) -> Writer {
        let mut body = Writer::default();
        body.number(self.revision).number(0);
        body
    }

    /// Answers a call, and says what its user chose.
    pub(super) fn answer(&self, call: &mut Call) -> (Answer, Option<Choice>) {
        let done = || Answer::Body("", Writer::default());
        match (&*call.path, &*call.interface, &*call.member, &*call.signature) {
            (ITEM_PATH | MENU_PATH, PROPERTIES, "Get", "ss") => {
                let names = call
                    .body
                    .text()
                    .and_then(|interface| Ok((interface, call.body.text()?)));
                let Ok((_, name)) = names else {
                    return (WRONG_ARGUMENTS, None);
                };
                let mut body = Writer::default();
                let is_known = self.property(&call.path, &name, &mut body);
                (
                    if is_known {
                        Answer::Body("v", body)
                    } else {
                        UNKNOWN_PROPERTY
                    },
                    None,
                )
            }
            (ITEM_PATH | MENU_PATH, PROPERTIES, "GetAll", "s") => {
                let mut body = Writer::default();
                body.structures(|all| {
                    for name in names(&call.path) {
                        all.align(8).text(name);
                        self.property(&call.path, name, all);
                    }
                });
                (Answer::Body("a{sv}", body), None)
            }
            (_, INTROSPECTABLE, "Introspect", "") => {
                let mut body = Writer::default();
                body.text(DESCRIPTION);
                (Answer::Body("s", body), None)
            }
            (_, PEER, "Ping", "") => (done(), None),
            (ITEM_PATH, ITEM | "", "Activate" | "SecondaryActivate", "ii") => (done(), Some(Choice::OpenPage)),
            (ITEM_PATH, ITEM | "", "ContextMenu", "ii") | (ITEM_PATH, ITEM | "", "Scroll", "is") => (done(), None),
            (MENU_PATH, MENU | "", "GetLayout", "iias") => {
                let Ok(parent) = call.body.number() else {
                    return (WRONG_ARGUMENTS, None);
                };
                let mut body = Writer::default();
                body.number(self.revision).align(8);
                self.layout(parent, &mut body);
                (Answer::Body("u(ia{sv}av)", body), None)
            }
            (MENU_PATH, MENU | "", "GetGroupProperties", "aias") => {
                let mut body = Writer::default();
                // Of all entries: there are few, and their ids are fixed.
                body.structures(|all| {
                    for id in 0..=LAST {
                        all.align(8).number(id);
                        self.entry(id, all);
                    }
                });
                (Answer::Body("a(ia{sv})", body), None)
            }
            (MENU_PATH, MENU | "", "AboutToShow", "i") => {
                let mut body = Writer::default();
                body.boolean(false);
                (Answer::Body("b", body), None)
            }
            (MENU_PATH, MENU | "", "Event", "isvu") => {
                let event = call.body.number().and_then(|id| Ok((id, call.body.text()?)));
                let Ok((id, event)) = event else {
                    return (WRONG_ARGUMENTS, None);
                };
                let choice = match entry(id) {
                    Some(Entry::Choice(choice, _)) if event == "clicked" => Some(choice),
                    _ => None,
                };
                (done(), choice)
            }
            _ => (UNKNOWN_METHOD, None),
        }
    }

    /// Writes a property as a variant; returns whether there is one of this name.
    fn property(&self, path: &str, name: &str, to: &mut Writer) -> bool {
        let text = match (path, name) {
            (ITEM_PATH, "Category") => "ApplicationStatus",
            (ITEM_PATH, "Id" | "IconName") => "svc",
            (ITEM_PATH, "Title") => TITLE,
            (ITEM_PATH, "Status") => "Active",
            (MENU_PATH, "TextDirection") => "ltr",
            (MENU_PATH, "Status") => "normal",
            _ => return self.other_property(path, name, to),
        };
        to.signature("s").text(text);
        true
    }

    /// Those that are not texts.
    fn other_property(&self, path: &str, name: &str, to: &mut Writer) -> bool {
        match (path, name) {
            (ITEM_PATH, "ItemIsMenu") => {
                to.signature("b").boolean(false);
            }
            (ITEM_PATH, "Menu") => {
                to.signature("o").text(MENU_PATH);
            }
            (ITEM_PATH, "ToolTip") => {
                // The icon's name, its pixels, title and text.
                to.signature("(sa(iiay)ss)").align(8).text("");
                to.structures(|_| {}).text(TITLE).text(&self.state);
            }
            (MENU_PATH, "Version") => {
                to.signature("u").number(3);
            }
            (MENU_PATH, "IconThemePath") => {
                to.signature("as").texts(&[]);
            }
            _ => return false,
        }
        true
    }

    /// Writes an entry with what is below it.
    fn layout(&self, id: u32, to: &mut Writer) {
        to.number(id);
        self.entry(id, to);
        to.variants(|children| {
            if id == 0 {
                for child in 1..=LAST {
                    children.signature("(ia{sv}av)").align(8);
                    self.layout(child, children);
                }
            }
        });
    }

    /// Writes the properties of an entry.
    fn entry(&self, id: u32, to: &mut Writer) {
        to.structures(|all| {
            let mut text = |name: &str, value: &str| {
                all.align(8).text(name).signature("s").text(value);
            };
            match entry(id) {
                None => text("children-display", "submenu"),
                Some(Entry::Separator) => text("type", "separator"),
                Some(Entry::Choice(_, label)) => text("label", label),
                Some(Entry::State) => {
                    // An underscore would mark the next letter as a key.
                    text("label", &self.state.replace('_', "__"));
                    all.align(8).text("enabled").signature("b").boolean(false);
                }
            }
        });
    }
}

/// The id of the last entry.
const LAST: u32 = 7;

fn entry(id: u32) -> Option<Entry> {
    let place = usize::try_from(id).ok()?.checked_sub(1)?;
    ENTRIES.get(place).copied()
}

/// The properties of an object.
fn names(path: &str) -> &'static [&'static str] {
    if path == ITEM_PATH {
        &[
            "Category",
            "Id",
            "Title",
            "Status",
            "IconName",
            "ItemIsMenu",
            "Menu",
            "ToolTip",
        ]
    } else {
        &["Version", "TextDirection", "Status", "IconThemePath"]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_has_an_id() {
        assert_eq!(usize::try_from(LAST).unwrap(), ENTRIES.len());
        assert_eq!(entry(0), None);
        assert_eq!(entry(LAST), Some(Entry::Choice(Choice::Quit, "Quit")));
        assert_eq!(entry(LAST + 1), None);
    }

    #[test]
    fn every_property_that_is_listed_has_a_value() {
        let mut tray = Tray::default();
        tray.set("2 downloads".to_owned());
        for path in [ITEM_PATH, MENU_PATH] {
            assert!(
                names(path)
                    .iter()
                    .all(|name| tray.property(path, name, &mut Writer::default()))
            );
        }
        assert!(!tray.property(ITEM_PATH, "IconPixmap", &mut Writer::default()));
    }
}
