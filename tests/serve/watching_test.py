#!/usr/bin/env python3
"""`penstock extender` behind an API server that behaves badly.

usage: watching_test.py --tool FILE [unittest arguments]
"""

import argparse
import os
import random
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

from api_server import ApiServer
from live import Live, args, node, pod, wait_until

TOOL = ""


class Watching(unittest.TestCase):
    """The extender follows an API server, whatever that does."""

    @staticmethod
    def expected(server):
        nodes = {}
        pods = server.all("pods")
        for name, item in server.all("nodes").items():
            nodes[name] = {
                "unschedulable": item["spec"].get("unschedulable", False),
                "labels": item["metadata"]["labels"], "taints": 0,
                "cpu": int(item["status"]["allocatable"]["cpu"]) * 1000,
                "pods": sorted(key for key, pod_ in pods.items()
                               if pod_["spec"].get("nodeName") == name and
                               pod_["status"]["phase"] not in ("Succeeded", "Failed"))}
        pending = sorted(key for key, pod_ in pods.items() if not pod_["spec"].get("nodeName") and
                         pod_["status"]["phase"] not in ("Succeeded", "Failed"))
        return {"nodes": nodes, "pending": pending}

    @staticmethod
    def found(live):
        state = live.state()
        for item in state["nodes"].values():
            item["cpu"] = item.pop("allocatable")["cpu"]
        return {"nodes": state["nodes"], "pending": state["pending"]}

    def check_equal(self, live, server):
        try:
            wait_until(lambda: self.found(live) == self.expected(server), "")
        except AssertionError:
            self.assertEqual(self.found(live), self.expected(server))

    @staticmethod
    def change_something(rng, server, number):
        names, pods = sorted(server.all("nodes")), sorted(server.all("pods"))
        kind = rng.randrange(9)
        if kind == 0 or len(names) < 3:
            server.put("nodes", node(f"node-{rng.randrange(12)}", cpu=str(rng.randint(4, 64))))
        elif kind == 1:
            server.remove("nodes", rng.choice(names))
        elif kind == 2:
            server.change("nodes", rng.choice(names), lambda item: item["spec"].update(
                unschedulable=rng.random() < 0.5))
        elif kind == 3:
            server.change("nodes", rng.choice(names), lambda item: item["metadata"][
                "labels"].update(zone=f"z{rng.randrange(3)}"))
        elif kind in (4, 5) or not pods:
            server.put("pods", pod(f"pod-{number}", on=rng.choice(names + [None])))
        elif kind == 6:
            server.remove("pods", rng.choice(pods))
        elif kind == 7:
            server.change("pods", rng.choice(pods), lambda item: item["status"].update(
                phase=rng.choice(["Running", "Succeeded", "Failed"])))
        else:
            key = rng.choice(pods)
            if not server.get("pods", key)["spec"].get("nodeName"):
                server.change("pods", key,
                              lambda item: item["spec"].update(nodeName=rng.choice(names)))

    def storm(self, seed, faults, *arguments, changes=250, rounds=2):
        server = ApiServer(seed)
        rng = random.Random(seed)
        for number in range(40):
            self.change_something(rng, server, number)
        try:
            with Live(TOOL, "extender", "--api-server", server.url, "--watch-timeout-ms", 3000,
                      *arguments) as live:
                live.wait_ready()
                self.check_equal(live, server)
                for round_ in range(rounds):
                    for name, value in faults.items():
                        setattr(server.faults, name, value)
                    for number in range(changes):
                        self.change_something(rng, server, 1000 * (round_ + 1) + number)
                        if rng.random() < 0.1:
                            time.sleep(0.005)
                    if "expire" in faults:
                        server.compact()
                    for name in faults:
                        setattr(server.faults, name, 0.0)
                    self.check_equal(live, server)
                return {name: live.metric("penstock_watch_restarts_total") for name in ("restarts",)}
        finally:
            server.stop()

    def test_quiet(self):
        self.assertEqual(self.storm(1, {})["restarts"], 0)

    def test_watches_that_end_and_break(self):
        found = self.storm(2, {"close": 0.1, "cut": 0.05})
        self.assertGreater(found["restarts"], 0)

    def test_events_repeated_late_and_out_of_order(self):
        self.storm(3, {"duplicate": 0.3, "reorder": 0.3, "delay": 0.05})

    def test_versions_that_are_gone(self):
        found = self.storm(4, {"close": 0.1, "expire": 0.3, "expire_event": 0.02, "fail_list": 0.3,
                               "slow_list": 0.3})
        self.assertGreater(found["restarts"], 0)

    def test_lost_events_are_made_up_for_by_lists(self):
        self.storm(5, {"lose": 0.2}, "--resync-seconds", 1, changes=100, rounds=1)

    def test_a_server_that_is_away_for_a_while(self):
        server = ApiServer()
        server.put("nodes", node("node-1"))
        try:
            with Live(TOOL, "extender", "--api-server", server.url) as live:
                live.wait_ready()
                server.faults.down = True
                with server.lock:
                    server.lock.notify_all()
                time.sleep(0.3)
                server.put("nodes", node("node-2"))
                server.remove("nodes", "node-1")
                self.assertEqual(live.request("GET", "/readyz")[0], 200, "it decides on what it has")
                server.faults.down = False
                self.check_equal(live, server)
        finally:
            server.stop()

    def test_not_ready_before_everything_is_listed(self):
        server = ApiServer()
        server.faults.down = True
        try:
            with Live(TOOL, "extender", "--api-server", server.url) as live:
                self.assertEqual(live.request("GET", "/readyz")[0], 503)
                self.assertEqual(live.request("GET", "/healthz")[0], 200)
                self.assertEqual(live.request("POST", "/filter", args(pod("a"), ["n"]))[0], 503)
                server.faults.down = False
                live.wait_ready()
        finally:
            server.stop()

    def test_an_object_that_cannot_be_read_is_left_out(self):
        server = ApiServer()
        server.put("nodes", node("good"))
        server.put("nodes", node("bad", cpu="plenty"))
        try:
            with Live(TOOL, "extender", "--api-server", server.url) as live:
                live.wait_ready()
                self.assertEqual(list(live.state()["nodes"]), ["good"])
                self.assertEqual(live.metric("penstock_cache_unreadable_objects"), 1)
                server.put("nodes", node("bad", cpu="3"))
                self.check_equal(live, server)
                server.put("nodes", node("good", cpu="plenty"))
                wait_until(lambda: list(live.state()["nodes"]) == ["bad"], "good is left out")
        finally:
            server.stop()

    def test_bind(self):
        server = ApiServer()
        server.put("nodes", node("node-1", cpu="2"))
        item = server.put("pods", pod("a", "2"))
        try:
            with Live(TOOL, "extender", "--api-server", server.url) as live:
                live.wait_ready()
                wait_until(lambda: live.state()["pending"] == ["default/a"], "the pod is seen")
                binding = {"PodName": "a", "PodNamespace": "default",
                           "PodUID": item["metadata"]["uid"], "Node": "node-1"}
                self.assertEqual(live.post("/bind", binding), {"Error": ""})
                # At once, whether the watch has told it or not.
                answer = live.post("/filter", args(pod("b", "1"), ["node-1"]))
                self.assertEqual(answer["FailedNodes"], {"node-1": "Insufficient cpu"})
                self.check_equal(live, server)
                self.assertIn("already assigned", live.post("/bind", binding)["Error"])
                self.assertEqual(live.metric("penstock_conflicts_total"), 1)
                self.assertEqual(server.bindings, [(item["metadata"]["uid"], "node-1")])
                binding["PodName"] = "nobody"
                self.assertIn("404", live.post("/bind", binding)["Error"])
        finally:
            server.stop()

    @unittest.skipUnless(shutil.which("openssl"), "no openssl to make certificates with")
    def test_tls_and_token(self):
        server = ApiServer()
        server.put("nodes", node("node-1"))
        with tempfile.TemporaryDirectory() as folder:
            def path(name):
                return os.path.join(folder, name)

            for name in ("server", "other"):
                subprocess.run(
                    ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                     "ec_paramgen_curve:P-256", "-nodes", "-keyout", path(f"{name}.key"), "-out",
                     path(f"{name}.crt"), "-days", "2", "-subj", "/CN=api", "-addext",
                     "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(path("server.crt"), path("server.key"))
            server.server.socket = context.wrap_socket(server.server.socket, server_side=True)
            with open(path("token"), "w", encoding="ascii") as file:
                file.write("secret\n")
            seen = []
            handle = server.handle

            def checked(request, method):
                seen.append(request.headers.get("Authorization"))
                return handle(request, method)

            server.handle = checked
            url = f"https://127.0.0.1:{server.port}"
            try:
                with Live(TOOL, "extender", "--api-server", url, "--api-ca", path("server.crt"),
                          "--api-token", path("token")) as live:
                    live.wait_ready()
                    self.assertEqual(list(live.state()["nodes"]), ["node-1"])
                self.assertEqual(set(seen), {"Bearer secret"})
                with Live(TOOL, "extender", "--api-server", url, "--api-ca",
                          path("other.crt")) as live:
                    time.sleep(0.5)
                    self.assertEqual(live.request("GET", "/readyz")[0], 503, "not that authority")
            finally:
                server.stop()


def main():
    global TOOL
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    options, rest = parser.parse_known_args()
    TOOL = options.tool
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
