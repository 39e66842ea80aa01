"""A real Chromium, driven by its own protocol over a pair of pipes."""
import fcntl
import json
import os
import queue
import shutil
import subprocess
import tempfile
import threading

from harness import DEADLINE_S, until

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         "--no-first-run", "--disable-extensions", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--remote-debugging-pipe"]


class Chromium:
    """One page of it. What the page writes to its console, and what fails in it, is kept."""

    def __init__(self, width=1200, height=900):
        self.folder = tempfile.TemporaryDirectory(prefix="baton-chromium-",
                                                  ignore_cleanup_errors=True)
        theirs_in, self.out = os.pipe()
        self.into, theirs_out = os.pipe()

        def place():  # as the descriptors 3 and 4; all others of Python's end with exec
            for end, wanted in zip([fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 100)
                                    for end in (theirs_in, theirs_out)], (3, 4)):
                os.dup2(end, wanted)
        self.run = subprocess.Popen(
            [PROGRAM, *FLAGS, "--user-data-dir=" + self.folder.name,
             "--window-size=%d,%d" % (width, height), "about:blank"], preexec_fn=place,
            close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, "HOME": self.folder.name})
        os.close(theirs_in)
        os.close(theirs_out)
        self.count, self.answers, self.said, self.session = 0, {}, [], None
        self.news = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        target = until(self.page, "a page")
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.ask("Runtime.enable")
        self.ask("Page.enable")
        self.ask("Log.enable")

    def read(self):
        text = b""
        while True:
            chunk = os.read(self.into, 1 << 16)
            if not chunk:
                return
            *messages, text = (text + chunk).split(b"\0")
            for message in map(json.loads, messages):
                if "id" in message:
                    self.news.put(message)
                else:
                    self.note(message)

    def note(self, event):
        parameters = event.get("params", {})
        if event["method"] == "Runtime.exceptionThrown":
            self.said.append(json.dumps(parameters["exceptionDetails"]))
        elif event["method"] == "Runtime.consoleAPICalled" and parameters["type"] == "error":
            self.said.append(json.dumps(parameters["args"]))
        elif event["method"] == "Log.entryAdded" and parameters["entry"]["source"] == "security":
            self.said.append(parameters["entry"]["text"])

    def ask(self, method, **parameters):
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while self.count not in self.answers:
            answer = self.news.get(timeout=DEADLINE_S)
            self.answers[answer["id"]] = answer
        answer = self.answers.pop(self.count)
        if "error" in answer:
            raise AssertionError("%s: %s" % (method, answer["error"]))
        return answer["result"]

    def page(self):
        targets = self.ask("Target.getTargets")["targetInfos"]
        return next((one["targetId"] for one in targets if one["type"] == "page"), None)

    def go(self, url):
        self.ask("Page.navigate", url=url)

    def value(self, expression):
        """What an expression of JavaScript gives, which may be a promise."""
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True,
                          awaitPromise=True)
        if "exceptionDetails" in result:
            raise AssertionError("%s: %s" % (expression, result["exceptionDetails"]))
        return result["result"].get("value")

    def text(self, selector):
        return self.value("document.querySelector(%s)?.innerText ?? ''" % json.dumps(selector))

    def wait_text(self, selector, wanted):
        until(lambda: wanted in self.text(selector),
              lambda: "%r in %s; there is %r; said: %s" % (wanted, selector, self.text(selector),
                                                           self.said))

    def key(self, name, code):
        for kind in "keyDown", "keyUp":
            self.ask("Input.dispatchKeyEvent", type=kind, key=name, code=name,
                     windowsVirtualKeyCode=code, text="\r" if name == "Enter" and
                     kind == "keyDown" else "")

    def emulate(self, width, height, scheme="light"):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia",
                 features=[{"name": "prefers-color-scheme", "value": scheme}])

    def close(self):
        self.run.kill()
        self.run.wait()
        os.close(self.out)
        os.close(self.into)
        self.folder.cleanup()
