"""Runs the live front ends for tests, and talks to them."""

import http.client
import json
import os
import re
import signal
import subprocess
import time

CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
TESTDATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "testdata")


def wait_until(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what() if callable(what) else what}")
        time.sleep(0.02)


class Live:
    """`penstock extender` or `penstock scheduler` with a free port."""

    def __init__(self, tool, command, *arguments, log="warn", wrapper=()):
        self.process = subprocess.Popen(
            [*wrapper, tool, command, "--listen", "127.0.0.1:0", *map(str, arguments)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
            env={**CLEAN, "PENSTOCK_LOG": log})
        line = self.process.stdout.readline()
        match = re.match(r"penstock \w+: serving at (https?)://127\.0\.0\.1:(\d+)$", line)
        if not match:
            self.process.kill()
            raise AssertionError(f"{line!r}: {self.process.communicate()[1]}")
        self.scheme, self.port = match[1], int(match[2])

    def __enter__(self):
        return self

    def __exit__(self, *_arguments):
        self.end()

    def request(self, method, path, body=None, headers=None, timeout=30):
        """(status, text); a body that is no text is sent as JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            if body is not None and not isinstance(body, (str, bytes)):
                body = json.dumps(body)
            if body is not None and headers is None:
                headers = {"Content-Type": "application/json"}
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def post(self, path, body):
        """The answer of a request that is fine."""
        status, text = self.request("POST", path, body)
        if status != 200:
            raise AssertionError(f"{path}: {status} {text}")
        return json.loads(text)

    def state(self):
        return json.loads(self.request("GET", "/state")[1])

    def metric(self, name):
        """The sum over all labels."""
        text = self.request("GET", "/metrics")[1]
        values = re.findall(rf"^{re.escape(name)}(?:\{{[^}}]*\}})? (\S+)$", text, re.M)
        return sum(map(float, values))

    def wait_ready(self, seconds=60):
        wait_until(lambda: self.request("GET", "/readyz")[0] == 200, "ready", seconds)

    def end(self, signal_number=signal.SIGTERM, status=0):
        """Asks for the end; its standard error."""
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        try:
            _, errors = self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            _, errors = self.process.communicate()
            raise AssertionError(f"it does not end: {errors[-2000:]}") from None
        if status is not None and self.process.returncode != status:
            raise AssertionError(f"exit status {self.process.returncode}: {errors[-3000:]}")
        return errors

    def kill(self):
        """Without any chance to say goodbye."""
        self.process.kill()
        self.process.communicate()


def node(name, cpu="4", memory="8Gi", pods="110", **more):
    """A Node; `more`: labels, unschedulable, taints."""
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name,
                                                  **more.get("labels", {})}},
            "spec": {key: more[key] for key in ("unschedulable", "taints") if key in more},
            "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": pods}}}


def pod(name, cpu="1", memory="1Gi", on=None, **more):
    """A Pod; `more`: namespace, scheduler, priority, uid, labels, selector."""
    spec = {"containers": [{"name": "main", "image": "example.com/app:1",
                            "resources": {"requests": {"cpu": cpu, "memory": memory}}}]}
    if on:
        spec["nodeName"] = on
    if "scheduler" in more:
        spec["schedulerName"] = more["scheduler"]
    if "priority" in more:
        spec["priority"] = more["priority"]
    if "selector" in more:
        spec["nodeSelector"] = more["selector"]
    metadata = {"name": name, "namespace": more.get("namespace", "default"),
                "labels": more.get("labels", {}),
                "creationTimestamp": "2026-01-01T00:00:00Z"}
    if "uid" in more:
        metadata["uid"] = more["uid"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec,
            "status": {"phase": "Running" if on else "Pending"}}


def testdata(name):
    with open(os.path.join(TESTDATA, name), encoding="utf-8") as file:
        return json.load(file)


def args(a_pod, names=None, nodes=None):
    """What kube-scheduler sends to /filter and /prioritize."""
    return {"Pod": a_pod, "NodeNames": names,
            "Nodes": None if nodes is None else {"items": nodes}}
