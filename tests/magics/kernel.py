"""A real ipykernel to run cells in, and what a cell did there, in a form in which two cells can be compared."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyter_client.manager import KernelManager

from nbkit.views.host.outputs import WIDGET_VIEW

TIMEOUT_S = 60
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Reply:
    """What one cell did: its status, its error's type and text, and its outputs as (kind, text) in order."""

    status: str
    error: tuple[str, str] | None
    outputs: list[tuple[str, str]] = field(default_factory=list)

    def texts(self, kind: str) -> list[str]:
        return [text for what, text in self.outputs if what == kind]

    def comparable(self) -> "Reply":
        """The same without shown traces, cell numbers, times, addresses and line 1 of a traceback's excerpt."""
        kept = [(kind, _comparable(text)) for kind, text in self.outputs if kind != "display"]
        return Reply(self.status, self.error and (self.error[0], _comparable(self.error[1])), kept)


def _comparable(text: str) -> str:
    text = re.sub(r"In ?\[\d+\]", "In[n]", text)
    text = re.sub(r"^ +1 .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"(ipykernel_\d+/)?\b\d+\.py", "FILE.py", text)
    return re.sub(r"[\d.]+ ?(ns|µs|μs|us|ms|s)\b", "TIME", text)


class Kernel:
    """Runs cells one after the other."""

    def __init__(self, manager: KernelManager) -> None:
        self.manager = manager
        self.client = manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=TIMEOUT_S)

    def run(self, code: str, on_print: Callable[[], None] | None = None, **metadata: Any) -> Reply:
        """Run a cell to its end; `on_print` is called when it first prints, `metadata` is what a notebook sends."""
        request = self._execute(code, metadata)
        outputs: list[tuple[str, str]] = []
        while (message := self._next_output(request)) is not None:
            _add(outputs, message["msg_type"], message["content"])
            if on_print is not None and message["msg_type"] == "stream":
                time.sleep(0.3)  # until the cell is past its print
                on_print()
                on_print = None
        content = self._reply(request)
        error = (content["ename"], content["evalue"]) if content["status"] == "error" else None
        return Reply(content["status"], error, outputs)

    def _execute(self, code: str, metadata: dict[str, Any]) -> str:
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": True, "stop_on_error": True}
        message = self.client.session.msg("execute_request", {**content, "user_expressions": {}}, metadata=metadata)
        self.client.shell_channel.send(message)
        return str(message["header"]["msg_id"])

    def value(self, expression: str) -> Any:
        """The value of an expression of literals, without running a cell."""
        request = self.client.execute("", silent=True, user_expressions={"value": f"repr(({expression}))"})
        answer = self._reply(request)["user_expressions"]["value"]
        assert answer["status"] == "ok", answer
        # repr of the repr: text/plain shows a str as a literal.
        return eval(eval(answer["data"]["text/plain"]))

    def stop(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

    def _next_output(self, request: str) -> dict[str, Any] | None:
        while True:
            message = self.client.get_iopub_msg(timeout=TIMEOUT_S)
            if message["parent_header"].get("msg_id") != request:
                continue
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                return None
            if message["msg_type"] in {"stream", "display_data", "execute_result", "error"}:
                return message

    def _reply(self, request: str) -> dict[str, Any]:
        while (message := self.client.get_shell_msg(timeout=TIMEOUT_S))["parent_header"]["msg_id"] != request:
            pass
        return message["content"]


def started(folder: Path) -> Kernel:
    """A kernel that runs in a folder; whoever asks for it stops it."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=str(folder))
    return Kernel(manager)


def _add(outputs: list[tuple[str, str]], kind: str, content: dict[str, Any]) -> None:
    if kind == "stream":
        name, text = content["name"], content["text"]
        if outputs and outputs[-1][0] == name:
            text = outputs.pop()[1] + text
        outputs.append((name, COLOURS.sub("", text)))
    elif kind == "error":
        outputs.append(("error", COLOURS.sub("", "\n".join(content["traceback"]))))
    elif WIDGET_VIEW not in content["data"]:  # a widget stands below its text, which is an output of its own
        name = "value" if kind == "execute_result" else "display"
        outputs.append((name, content["data"]["text/plain"]))
