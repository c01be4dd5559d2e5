"""pyftpdlib in front of a folder: prints its port, and then a line for each transfer that ended.

Arguments: the folder, and any of `tls=CERTIFICATE` (PEM with its key), `rate=BYTES` a second for each connection,
`names=bytes` for names that are not UTF-8, `logins=N` at most, `host=ADDRESS` to listen on (127.0.0.1).
"""

import logging
import os
import sys

from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib.handlers import FTPHandler, ThrottledDTPHandler
from pyftpdlib.servers import FTPServer

USER, PASSWORD = "me", os.environ.get("FTP_PASSWORD", "canary-password")


def main():
    folder = sys.argv[1]
    options = dict(argument.split("=", 1) for argument in sys.argv[2:])
    logging.basicConfig(level=logging.ERROR)
    authorizer = DummyAuthorizer()
    authorizer.add_user(USER, PASSWORD, folder, perm="elr")
    if "tls" in options:
        from pyftpdlib.handlers import TLS_FTPHandler as Handler
        from pyftpdlib.handlers import TLS_DTPHandler

        class Transfers(TLS_DTPHandler):
            pass

        Handler.certfile = options["tls"]
        Handler.tls_control_required = True
        Handler.tls_data_required = True
    else:
        Handler = FTPHandler

    class Server(Handler):
        def on_login(self, username):
            print("login", flush=True)

        def on_file_sent(self, file):
            print("sent", self.data_channel.get_transmitted_bytes() if self.data_channel else 0, flush=True)

        def on_incomplete_file_sent(self, file):
            print("cut", self.data_channel.get_transmitted_bytes() if self.data_channel else 0, flush=True)

    Server.authorizer = authorizer
    if "rate" in options:
        class Slow(ThrottledDTPHandler):
            write_limit = int(options["rate"])

        Server.dtp_handler = Slow
        # The kernel would send files without regard to the limit.
        Server.use_sendfile = False
    if options.get("names") == "bytes":
        Server.unicode_errors = "surrogateescape"
    server = FTPServer((options.get("host", "127.0.0.1"), 0), Server)
    if "logins" in options:
        server.max_cons = int(options["logins"])
    print(server.address[1], flush=True)
    server.serve_forever()


main()
