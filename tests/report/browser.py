"""A headless Chromium that tests drive: pages are opened, scripts run, mouse and keys pressed. It talks the DevTools protocol
through two pipes, so nothing but Python's library is needed."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome"]
HANG_S = 1800  # ends a test that hangs, and nothing else


class Failed(Exception):
    """The browser said no, or nothing."""


def find():
    """Path of a browser, or None. ACS_TEST_BROWSER names one."""
    named = os.environ.get("ACS_TEST_BROWSER")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """A process of the browser. Each page is a target of it."""

    def __init__(self, path):
        self.profile = tempfile.TemporaryDirectory()
        to_read, self.to = os.pipe()
        self.from_, from_write = os.pipe()

        def pipes():
            # 3 and 4 are where the browser looks; the ends may stand there already.
            read, write = os.dup(to_read), os.dup(from_write)
            high_read, high_write = os.dup2(read, 63), os.dup2(write, 62)
            os.dup2(high_read, 3)
            os.dup2(high_write, 4)

        words = ["--headless=new"] if "headless-shell" not in path else []
        self.process = subprocess.Popen(
            [path, *words, "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
             "--disable-background-networking", "--user-data-dir=" + self.profile.name, "--remote-debugging-pipe", "about:blank"],
            preexec_fn=pipes, pass_fds=(3,
                4), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)
        self.buffer, self.number, self.events = b"", 0, []

    def close(self):
        """End the browser, which knows by its pipe."""
        os.close(self.to)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.from_)
        self.profile.cleanup()

    def message(self, until):
        """The next message, or None at the time."""
        while b"\0" not in self.buffer:
            if not select.select([self.from_], [], [], max(0, until - time.monotonic()))[0]:
                return None
            more = os.read(self.from_, 1 << 20)
            if not more:
                raise Failed("the browser ended")
            self.buffer += more
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, session=None, **parameters):
        """A command and its result. Events on the way are kept."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        until = time.monotonic() + HANG_S
        while True:
            answer = self.message(until)
            if answer is None:
                raise Failed("no answer to %s" % method)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise Failed("%s: %s" % (method, answer["error"]["message"]))
                return answer["result"]
            self.events.append(answer)

    def page(self, url, width=1300, height=900, dark=False):
        """Open a page."""
        return Page(self, url, width, height, dark)


class Page:
    """An open page. `wrong`: errors of its scripts and console; `asked`: addresses it asked for."""

    def __init__(self, browser, url, width, height, dark):
        self.browser = browser
        self.target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        if dark:
            self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        self.call("Page.navigate", url=url)

    def call(self, method, **parameters):
        """A command for this page."""
        return self.browser.call(method, self.session, **parameters)

    def run(self, script):
        """The value of an expression."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise Failed("%s: %s" % (script, result["exceptionDetails"].get("exception", {}).get("description", result)))
        return result["result"].get("value")

    def wait(self, script):
        """Wait until an expression is true."""
        until = time.monotonic() + HANG_S
        while not self.run(script):
            if time.monotonic() > until:
                raise Failed("never true: " + script)
            time.sleep(0.02)

    def ready(self):
        """Wait until the page has said that it is drawn, or that it failed."""
        self.wait("document.readyState === 'complete' && (document.documentElement.hasAttribute('data-ready') ||"
                  " document.documentElement.hasAttribute('data-error'))")
        return self

    def frame(self):
        """Wait until what was asked for is drawn."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def mouse(self, kind, x, y, **more):
        """A mouse event at a place of the window."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        """Press and release."""
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)

    def key(self, key):
        """Press a key."""
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def picture(self, path):
        """Write what the window shows to a PNG file."""
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def mine(self, method):
        """Events of this page."""
        self.run("1")
        return [event["params"] for event in self.browser.events if event.get("sessionId") == self.session and event["method"] == method]

    @property
    def wrong(self):
        """Exceptions, and errors in the console."""
        found = [event["exceptionDetails"]["text"] + " " + event["exceptionDetails"].get("exception", {}).get("description",
            "")
                 for event in self.mine("Runtime.exceptionThrown")]
        found += [str(event["args"]) for event in self.mine("Runtime.consoleAPICalled") if event["type"] in ("error",
            "assert")]
        return found + [event["entry"]["text"] for event in self.mine("Log.entryAdded") if event["entry"]["level"] == "error"]

    @property
    def asked(self):
        """Addresses that it asked for, but its own and data."""
        urls = [event["request"]["url"] for event in self.mine("Network.requestWillBeSent")]
        return [url for url in urls[1:] if not url.startswith("data:")]

    def close(self):
        """Close it."""
        self.browser.call("Target.closeTarget", targetId=self.target)
