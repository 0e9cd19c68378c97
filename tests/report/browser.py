"""A page in headless Chromium, driven over its debugging pipe (file descriptors 3 and 4, messages ended by NUL)."""

import base64
import json
import os
import select
import subprocess
import tempfile
import time


class Browser:
    def __init__(self, program="chromium"):
        down_read, self.down = os.pipe()
        self.up, up_write = os.pipe()
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)

        def plug():  # the child's ends become descriptors 3 and 4; copies first, as they may be these already
            a, b = os.dup(down_read), os.dup(up_write)
            os.dup2(a, 3)
            os.dup2(b, 4)

        arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--no-first-run",
            "--remote-debugging-pipe",
            "--user-data-dir=" + self.folder.name,
        ]
        self.process = subprocess.Popen(
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=plug,
            close_fds=False,
        )
        os.close(down_read)
        os.close(up_write)
        self.buffer, self.number, self.events = b"", 0, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def receive(self, seconds=60):
        end = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            if not select.select([self.up], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self.up, 1 << 16)
            if not part:
                raise EOFError("the browser is gone")
            self.buffer += part
        line, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(line)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if getattr(self, "session", None):
            message["sessionId"] = self.session
        os.write(self.down, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def run(self, script):
        """The value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"].get("exception", {}).get("description", script))
        return result["result"].get("value")

    def open(self, path, width=1200, height=900, dark=False):
        """Loads a file; returns what went wrong: messages of the console, exceptions, requests beyond the file."""
        self.events = []
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.call(
            "Emulation.setEmulatedMedia",
            media="",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.receive())
        self.run("1")
        return self.problems()

    def problems(self):
        found = []
        for event in self.events:
            method, what = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(what["exceptionDetails"].get("exception", {}).get("description", "exception"))
            elif method == "Runtime.consoleAPICalled":
                found.append("console: " + str(what["args"]))
            elif method == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning"):
                found.append(what["entry"]["text"])
            elif method == "Network.requestWillBeSent" and not what["request"]["url"].startswith(("file://", "data:")):
                found.append("request: " + what["request"]["url"])
        return found

    def press(self, key, code=None, number=0):
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=code or key, windowsVirtualKeyCode=number, **text
            )

    def screenshot(self, path, full=False):
        with open(path, "wb") as file:
            file.write(
                base64.b64decode(
                    self.call(
                        "Page.captureScreenshot",
                        captureBeyondViewport=full,
                        **({"clip": self.extent()} if full else {}),
                    )["data"]
                )
            )

    def extent(self):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}

    def close(self):
        try:
            self.call("Browser.close")
            self.process.wait(20)
        except (EOFError, OSError, TimeoutError, RuntimeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()
