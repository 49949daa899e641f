"""`tokroof dashboard`: serve the dashboard to this machine alone, until it is interrupted."""

from __future__ import annotations

import argparse
import errno
import gc
import socket
from contextlib import suppress
from pathlib import Path

from model.commands.options import whole_number
from model.errors import InputError

APP = Path(__file__).parent.parent / "app.py"
HOST = "127.0.0.1"
DEFAULT_PORT = 8501


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare --port and --no-browser."""
    parser.add_argument(
        "--port",
        metavar="N",
        default=str(DEFAULT_PORT),
        help=f"port on {HOST} (default: {DEFAULT_PORT})",
    )
    parser.add_argument(
        "--no-browser", action="store_true", help="print the address instead of opening it"
    )


def execute(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C.

    Raises:
        InputError: the port is no port, or cannot be listened on.
    """
    port = whole_number("--port", options.port, least=1, most=65535)
    check_port(port)
    from streamlit.web import cli  # half a second, which a wrong port need not wait for

    prepare()
    cli.main(["run", str(APP), *server_options(port, options.no_browser)], standalone_mode=False)
    return 0


def prepare() -> None:
    """Load the model and answer the first question, so that the first page need not wait for it."""
    from dashboard.figures.which_trick import which_trick
    from dashboard.selection import Selection

    # What is wrong with a profile of one's own is said on the page, beside a choice of others.
    with suppress(InputError):
        which_trick(Selection())
    # What is loaded by now stays; the collector need not walk it again while a slider moves.
    gc.freeze()


def server_options(port: int, no_browser: bool) -> list[str]:
    """What must hold whatever the user's own Streamlit configuration says.

    Headless is left to Streamlit where a browser is wanted: it knows whether there is a display.
    """
    chosen = {
        "server.address": HOST,
        "server.port": str(port),
        "server.fileWatcherType": "none",
        "server.showEmailPrompt": "false",
        "browser.gatherUsageStats": "false",
    }
    if no_browser:
        chosen["server.headless"] = "true"
    return [f"--{name}={value}" for name, value in chosen.items()]


def check_port(port: int) -> None:
    """Refuse a port that cannot be listened on, before a server is built.

    Raises:
        InputError: it is in use, or reserved for the system.
    """
    with socket.socket() as probe:
        # As the server does: a port that was closed a moment ago is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            in_use = error.errno == errno.EADDRINUSE
            wrong = "is in use" if in_use else f"cannot be opened ({error.strerror})"
            raise InputError(f"port {port}", wrong, "give another with --port") from error
