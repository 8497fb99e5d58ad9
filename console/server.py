"""The Dagster UI as a child process: on loopback unless told otherwise, one with a daemon a folder."""

import socket
import subprocess
import sys
from ipaddress import ip_address
from pathlib import Path

from filelock import FileLock, Timeout

from console.location import CommandError, home, opened_history, require_writable

# Dagster's option that names this repository's workspace file.
WORKSPACE = ("-w", "workspace.yaml")


def serve_ui(host: str, port: int, *, read_only: bool) -> int:
    """Serve the UI until it ends; returns its exit status. CommandError where the port or the folder is taken."""
    if not is_loopback(host):
        print(
            f"warning: {host} is not a loopback address, and the Dagster UI has no login: whoever reaches it "
            "can launch runs and read every result. Put a proxy with authentication before it, or add --read-only.",
            file=sys.stderr,
        )
    require_writable(home())
    require_free(host, port)
    with FileLock(home() / ".first_use.lock"):
        opened_history(home())
    address = ["--host", host, "--port", str(port)]
    if read_only:
        return run_until_it_ends("dagster-webserver", *WORKSPACE, *address, "--read-only")
    try:
        with FileLock(home() / ".ui.lock", timeout=0):
            return run_until_it_ends("dagster", "dev", *WORKSPACE, *address)
    except Timeout:
        raise CommandError("a UI of this folder is running already; --read-only serves a second one") from None


def run_until_it_ends(program: str, *arguments: str) -> int:
    """Run a program beside this Python; Ctrl-C reaches it by itself, and it is waited for so that nothing is left."""
    server = subprocess.Popen([str(Path(sys.executable).with_name(program)), *arguments])
    while True:
        try:
            return server.wait()
        except KeyboardInterrupt:
            print("stopping the UI …", file=sys.stderr)


def require_free(host: str, port: int) -> None:
    """CommandError where nothing can listen at that address."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            why = error.strerror or error
            raise CommandError(f"{host} port {port}: {why}; a UI may run there already, --port takes another") from None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
