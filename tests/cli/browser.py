"""A headless browser, driven through the two pipes of its DevTools protocol."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome", "headless_shell")

SECONDS = 60  # that the browser may take for an answer


def installed() -> str | None:
    """The path of a browser here; None where there is none."""
    return next((found for found in map(shutil.which, NAMES) if found), None)


class Browser:
    """One page in a browser of its own. `complaints` are the errors, warnings and exceptions that the page caused."""

    def __init__(self, program: str, folder: Path, width: int = 1280, height: int = 900) -> None:
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        options = [
            "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run", "--disable-extensions",
            f"--user-data-dir={folder}", f"--window-size={width},{height}", "about:blank",
        ]  # fmt: skip
        command = f'exec "$0" "$@" 3<&{to_read} 4>&{to_write}'  # the protocol's pipes are the descriptors 3 and 4
        self._process = subprocess.Popen(
            ["bash", "-c", command, program, *options],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._rest, self._number, self.complaints = b"", 0, list[str]()
        self._session: str | None = None
        target = self._call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._session = self._call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable", {})
        self._size(width, height)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self._write)
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)

    def _call(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """Sends a message and gives its answer; events in between are kept where they are complaints."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                result: dict[str, Any] = answer["result"]
                return result
            self._event(answer)

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], SECONDS)
            more = os.read(self._read, 1 << 16) if ready else b""
            assert more, "the browser has ended" if ready else f"the browser says nothing for {SECONDS} seconds"
            self._rest += more
        first, self._rest = self._rest.split(b"\0", 1)
        message: dict[str, Any] = json.loads(first)
        return message

    def _event(self, event: dict[str, Any]) -> None:
        match event:
            case {"method": "Runtime.exceptionThrown", "params": details}:
                self.complaints.append(json.dumps(details))
            case {"method": "Runtime.consoleAPICalled", "params": {"type": "error" | "warning" | "assert"} as details}:
                self.complaints.append(json.dumps(details))
            case {"method": "Log.entryAdded", "params": {"entry": {"level": "error" | "warning"} as entry}}:
                self.complaints.append(json.dumps(entry))
            case {"method": "Network.requestWillBeSent", "params": {"request": {"url": url}}} if not url.startswith("file:"):
                self.complaints.append(f"asks for {url}")

    def _size(self, width: int, height: int) -> None:
        values = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._call("Emulation.setDeviceMetricsOverride", values)

    def open(self, path: Path, seconds: float = 30) -> None:
        """Opens a file and waits until the page's script has run."""
        self._call("Page.navigate", {"url": path.as_uri()})
        end = time.monotonic() + seconds
        while self.value("document.documentElement?.dataset.ready") != "yes":
            assert time.monotonic() < end, f"the page is not ready: {self.complaints}"
            time.sleep(0.05)

    def value(self, expression: str) -> Any:
        """What an expression gives in the page; of a promise, what it comes to."""
        found = self._call("Runtime.evaluate", {"expression": expression, "returnByValue": True, "awaitPromise": True})
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def middle(self, element: str) -> tuple[float, float]:
        """Brings an element (an expression) into view; where its middle is."""
        box = f"(() => {{ const e = {element}; e.scrollIntoView({{block: 'center'}}); const b = e.getBoundingClientRect();"
        x, y = self.value(box + " return [b.left + b.width / 2, b.top + b.height / 2]; })()")
        return x, y

    def point(self, x: float, y: float) -> None:
        """Moves the mouse."""
        self._call("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})

    def click(self, element: str) -> None:
        """Clicks the middle of an element (an expression)."""
        x, y = self.middle(element)
        for kind in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1})

    def press(self, key: str) -> None:
        """Presses a key, such as ArrowDown."""
        code = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}[key]
        for kind in ("keyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", {"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code})

    def resize(self, width: int, height: int = 900) -> None:
        """Gives the window another size, and waits until the page is drawn in it."""
        self._size(width, height)
        drawn = "const drawn = () => innerWidth === %d ? requestAnimationFrame(() => requestAnimationFrame(done)) :"
        self.value(f"new Promise((done) => {{ {drawn % width} requestAnimationFrame(drawn); drawn(); }})")

    def dark(self, on: bool) -> None:
        """Asks for the dark colours, or for the light ones."""
        features = [{"name": "prefers-color-scheme", "value": "dark" if on else "light"}]
        self._call("Emulation.setEmulatedMedia", {"features": features})

    def picture(self, path: Path, whole: bool = True) -> None:
        """Writes a picture of the window, or of the whole page, as PNG."""
        import base64

        found = self._call("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": whole})
        path.write_bytes(base64.b64decode(found["data"]))
