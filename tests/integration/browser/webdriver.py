"""A WebDriver client of a few lines: a headless Chromium driven through chromedriver over HTTP."""

import base64
import json
import re
import subprocess
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    def __init__(self, driver="chromedriver", size=(1280, 900)):
        self.process = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, text=True)
        try:
            self.base = None
            for line in self.process.stdout:
                found = re.search(r"successfully on port (\d+)", line)
                if found:
                    self.base = "http://127.0.0.1:" + found.group(1)
                    break
            arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                         "--window-size=%d,%d" % size, "--force-device-scale-factor=1"]
            wanted = {"browserName": "chrome", "goog:chromeOptions": {"args": arguments},
                      "goog:loggingPrefs": {"browser": "ALL"}}
            self.base += "/session/" + self.begin(wanted)["sessionId"]
        except BaseException:
            self.process.kill()
            raise

    def begin(self, wanted):
        """On a busy machine the browser's first process may not be up in the time that chromedriver gives it."""
        for left in 2, 1, 0:
            try:
                return self.ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
            except RuntimeError as error:
                if left == 0 or "session not created" not in str(error):
                    raise

    def __enter__(self):
        return self

    def __exit__(self, *error):
        try:
            self.ask("DELETE", "")
        finally:
            self.process.terminate()
            self.process.wait(10)

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError("%s %s: %s" % (method, path, error.read().decode()[:600])) from None

    def open(self, url):
        self.ask("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        return self.ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def find(self, selector):
        return self.ask("POST", "/element", {"using": "css selector", "value": selector})

    def click(self, element):
        self.ask("POST", "/element/%s/click" % element[ELEMENT], {})

    def type(self, element, text):
        self.ask("POST", "/element/%s/value" % element[ELEMENT], {"text": text})

    def clear(self, element):
        self.ask("POST", "/element/%s/clear" % element[ELEMENT], {})

    def hover(self, element):
        move = {"type": "pointerMove", "duration": 0, "x": 0, "y": 0, "origin": element}
        self.ask("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": [move]}]})

    def press(self, *keys):
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.ask("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def prefer(self, scheme):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("POST", "/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}})

    def resize(self, width, height):
        self.ask("POST", "/window/rect", {"width": width, "height": height})

    def errors(self):
        """What the console has said since the last time, errors alone."""
        log = self.ask("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in log if entry["level"] == "SEVERE"]

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.ask("GET", "/screenshot")))

    def print_page(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.ask("POST", "/print", {"background": True})))
