"""A program that shows icons in a tray: it has the name that items look for, and prints the names of those that register.

    tray_watcher.py

Runs with the Python of the system, which has D-Bus.
"""

import dbus
import dbus.service
from dbus.mainloop.glib import DBusGMainLoop
from gi.repository import GLib

NAME = "org.kde.StatusNotifierWatcher"


class Watcher(dbus.service.Object):
    @dbus.service.method(NAME, in_signature="s")
    def RegisterStatusNotifierItem(self, service):
        print(service, flush=True)


DBusGMainLoop(set_as_default=True)
bus = dbus.SessionBus()
# The object is there before its name is.
watcher = Watcher(bus, "/StatusNotifierWatcher")
name = dbus.service.BusName(NAME, bus, do_not_queue=True)
GLib.MainLoop().run()
