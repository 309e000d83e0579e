"""A JupyterLab or Notebook 7 for tests: a server on loopback with one notebook, and what there is to do in its page."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from playwright.sync_api import Page

from tests.support.executed import written

ROOT = Path(__file__).parents[2]
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
SETTINGS = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "notebook-extension/tracker": {"windowingMode": "none"},
}
EVALUATE = """async code => {
  const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
  const reply = await kernel.requestExecute({code: '', user_expressions: {value: code}}).done;
  return reply.content.user_expressions.value;
}"""


# Of each program, the module that starts it and the address of notebooks in it.
PATHS = {"jupyterlab": "doc/tree", "notebook": "notebooks"}
# The servers of this worker end when a test of another folder comes: one takes seconds to start and to end.
SHARED = contextlib.ExitStack()
URLS: dict[str, str] = {}


@contextlib.contextmanager
def running_lab(folder: Path, cells: Sequence[str], program: str = "jupyterlab") -> Iterator[str]:
    """Serve a notebook of these cells from `folder`, with settings of its own; the address that opens it alone."""
    written(cells, folder / "step.ipynb", **KERNEL)
    if program not in URLS:
        URLS[program] = SHARED.enter_context(running_server(folder.parent, program))
        SHARED.callback(URLS.pop, program)
    reset_settings(folder.parent / program)
    try:
        yield f"{URLS[program]}/{PATHS[program]}/{folder.name}/step.ipynb{'?reset' * (program == 'jupyterlab')}"
    finally:
        for session in json.load(urlopen(f"{URLS[program]}/api/sessions")):
            urlopen(Request(f"{URLS[program]}/api/sessions/{session['id']}", method="DELETE")).close()


def in_program(url: str, program: str) -> str:
    """The address of the same notebook in another program of the server, which it opens anew."""
    return url.replace(PATHS["jupyterlab"], PATHS["notebook"]).removesuffix("?reset") if program == "notebook" else url


@contextlib.contextmanager
def running_server(root: Path, program: str) -> Iterator[str]:
    """Serve all notebooks below `root`; the address of the server."""
    folder = root / program
    folder.mkdir()
    port, log = free_port(), folder / "server.log"
    with log.open("w") as stream:
        command = server_command(root, port, program)
        server = subprocess.Popen(command, env=environment(folder), stdout=stream, stderr=stream)
        try:
            wait_until_up(f"http://127.0.0.1:{port}/api", server, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:  # it waits for a kernel, whose tests are over
                server.kill()
                server.wait()


def server_command(folder: Path, port: int, program: str) -> list[str]:
    options = {"ip": "127.0.0.1", "port": port, "port_retries": 0, "root_dir": folder, "open_browser": False}
    options["disable_check_xsrf"] = True  # sessions are ended from here
    flags = [f"--ServerApp.{name}={value}" for name, value in options.items()]
    flags += ["--allow-root", "--IdentityProvider.token=", "--ServerApp.password="]
    # A server of JupyterLab has Notebook 7, too.
    flags += [f"--{app}.expose_app_in_browser=True" for app in ("LabApp", "JupyterNotebookApp")]
    return [sys.executable, "-m", program, *flags]


def environment(folder: Path) -> dict[str, str]:
    """The environment with nothing of the developer's own Jupyter settings, so that the run is the same everywhere."""
    own = {"JUPYTERLAB_SETTINGS_DIR": "settings", "JUPYTER_CONFIG_DIR": "config", "JUPYTERLAB_WORKSPACES_DIR": "spaces"}
    own |= {"IPYTHONDIR": "ipython", "JUPYTER_RUNTIME_DIR": "runtime"}
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return os.environ | {name: str(folder / value) for name, value in own.items()} | {"PYTHONPATH": path}


def reset_settings(folder: Path) -> None:
    """Forget what the pages of another file set, such as a theme; the server reads the files for each page."""
    shutil.rmtree(folder / "settings", ignore_errors=True)
    for name, values in SETTINGS.items():
        file = folder / f"settings/@jupyterlab/{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until_up(url: str, server: subprocess.Popen[bytes], log: Path, seconds: float = 120) -> None:
    """Return once the server answers; raises with its log if it ends or does not."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and server.poll() is None:
        with contextlib.suppress(OSError), urlopen(url, timeout=5):
            return
        time.sleep(0.1)
    raise RuntimeError(f"The server is not up:\n{log.read_text()[-2000:]}")


def run_all(page: Page) -> None:
    """Run every cell, once the kernel is idle. The command is not awaited: on a fresh server it would never end."""
    page.wait_for_function(
        "window.jupyterapp?.shell.currentWidget?.sessionContext?.kernelDisplayStatus === 'idle'", timeout=120_000
    )
    page.evaluate("void window.jupyterapp.commands.execute('notebook:run-all-cells')")


def in_kernel(page: Page, expression: str) -> str:
    """What the expression is in the notebook's kernel, as its repr."""
    value: dict[str, Any] = page.evaluate(EVALUATE, expression)
    if value["status"] != "ok":
        raise RuntimeError(f"{expression}: {value['ename']}: {value['evalue']}")
    return str(value["data"]["text/plain"])


def wait_for_kernel(page: Page, expression: str, tries: int = 600) -> str:
    """What the expression is in the kernel once it is not None: a widget's message takes its time to get there."""
    for _ in range(tries):
        if (value := in_kernel(page, expression)) != "None":
            return value
        page.wait_for_timeout(100)
    raise RuntimeError(f"{expression} is still None in the kernel.")


def change_theme(page: Page, name: str, *, light: bool) -> None:
    """Switch JupyterLab's theme and wait until the page has it."""
    page.evaluate("name => void window.jupyterapp.commands.execute('apputils:change-theme', {theme: name})", name)
    page.wait_for_selector(f"body[data-jp-theme-light={str(light).lower()}]", state="attached")
