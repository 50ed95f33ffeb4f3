#!/usr/bin/env python3
"""`penstock extender` as kube-scheduler and worse clients see it.

usage: extender_test.py --tool FILE [--fuzz N] [--seed N] [unittest arguments]
"""

import argparse
import copy
import http.client
import json
import os
import random
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from api_server import ApiServer
from live import CLEAN, Live, TESTDATA, node, pod, wait_until

TOOL = ""
FUZZ = 1500
SEED = 1


def testdata(name):
    with open(os.path.join(TESTDATA, name), encoding="utf-8") as file:
        return json.load(file)


def snapshot(*arguments, **more):
    return Live(TOOL, "extender", "--snapshot", os.path.join(TESTDATA, "cluster.json"), *arguments,
                **more)


def args(a_pod, names=None, nodes=None):
    return {"Pod": a_pod, "NodeNames": names,
            "Nodes": None if nodes is None else {"items": nodes}}


class Protocol(unittest.TestCase):
    """Answers that were worked out by hand from testdata/cluster.json."""

    @classmethod
    def setUpClass(cls):
        cls.live = snapshot()
        cls.names = ["large", "small", "full", "cordoned"]

    @classmethod
    def tearDownClass(cls):
        cls.live.end()

    def test_filter_by_name(self):
        case = testdata("filter_names.json")
        self.assertEqual(self.live.post("/filter", case["request"]), case["answer"])

    def test_filter_by_node_gives_the_nodes_back(self):
        nodes = [item for item in testdata("cluster.json")["items"] if item["kind"] == "Node"]
        answer = self.live.post("/filter", args(pod("new", "1"), nodes=nodes))
        self.assertIsNone(answer["NodeNames"])
        self.assertEqual(answer["Nodes"]["items"], nodes[:2])
        self.assertEqual(set(answer["FailedNodes"]), {"full"})
        self.assertEqual(set(answer["FailedAndUnresolvableNodes"]), {"cordoned"})

    def test_nodes_of_the_request_are_used(self):
        with snapshot() as live:
            fresh = node("fresh", cpu="64")
            shrunk = node("large", cpu="3")
            shrunk["metadata"]["resourceVersion"] = "99"
            small = node("small", cpu="2")
            small["metadata"]["resourceVersion"] = "50"
            live.post("/filter", args(pod("x"), nodes=[small]))
            old = node("small", cpu="64")
            old["metadata"]["resourceVersion"] = "5"  # older than what is known
            answer = live.post("/filter", args(pod("x", "4"), nodes=[fresh, shrunk, old]))
            self.assertEqual([n["metadata"]["name"] for n in answer["Nodes"]["items"]], ["fresh"])
            self.assertEqual(answer["FailedAndUnresolvableNodes"],
                             {"large": "Insufficient cpu", "small": "Insufficient cpu"})
            # They stay known.
            self.assertEqual(live.post("/filter", args(pod("x", "4"), ["fresh"]))["NodeNames"],
                             ["fresh"])

    def test_prioritize(self):
        answer = self.live.post("/prioritize", args(pod("new", "1"), ["small", "large"]))
        self.assertEqual(answer, [{"Host": "small", "Score": 0}, {"Host": "large", "Score": 10}])
        answer = self.live.post("/prioritize", args(pod("new", "1"), ["large", "nowhere"]))
        self.assertEqual(answer, [{"Host": "large", "Score": 10}, {"Host": "nowhere", "Score": 0}])
        self.assertEqual(self.live.post("/prioritize", args(pod("new"), [])), [])

    def test_prioritize_keeps_the_order(self):
        nodes = [node(f"n{i:02}", cpu=str(4 + 3 * i)) for i in range(30)]
        answer = self.live.post("/prioritize", args(pod("new", "2", "0"), nodes=nodes))
        scores = [entry["Score"] for entry in answer]
        self.assertEqual(scores, sorted(scores))
        self.assertEqual((scores[0], scores[-1]), (0, 10))
        self.assertGreater(len(set(scores)), 5)

    def test_unknown_and_empty_candidates(self):
        answer = self.live.post("/filter", args(pod("new"), ["nowhere"]))
        self.assertEqual(answer["NodeNames"], [])
        self.assertIn("nowhere", {**answer["FailedNodes"], **answer["FailedAndUnresolvableNodes"]})
        self.assertEqual(self.live.post("/filter", args(pod("new"), []))["NodeNames"], [])
        answer = self.live.post("/filter", args(pod("new"), nodes=[]))
        self.assertEqual(answer["Nodes"]["items"], [])

    def test_bind_without_an_api_server_says_so(self):
        answer = self.live.post("/bind", {"PodName": "new", "PodNamespace": "shop",
                                          "PodUID": "p-3", "Node": "large"})
        self.assertIn("snapshot", answer["Error"])

    def test_preempt_keeps_the_victims_that_are_needed(self):
        # full has 4 cpus: web takes 2, batch 1.5. A pod of 2 needs batch gone and web spared.
        for victims in ({"NodeNameToMetaVictims": {"full": {
                "Pods": [{"UID": "p-1"}, {"UID": "p-2"}], "NumPDBViolations": 2}}},
                        {"NodeNameToVictims": {"full": {
                            "Pods": [{"metadata": {"name": "web", "namespace": "shop",
                                                   "uid": "p-1"}},
                                     {"metadata": {"name": "batch", "namespace": "shop",
                                                   "uid": "p-2"}}], "NumPDBViolations": 2}}}):
            answer = self.live.post("/preempt", {"Pod": pod("new", "2", priority=100), **victims})
            self.assertEqual(answer, {"NodeNameToMetaVictims": {"full": {
                "Pods": [{"UID": "p-2"}], "NumPDBViolations": 1}}})

    def test_preempt_drops_nodes_that_are_no_use(self):
        before = self.live.state()
        answer = self.live.post("/preempt", {
            "Pod": pod("new", "5", priority=100),
            "NodeNameToMetaVictims": {
                "full": {"Pods": [{"UID": "p-1"}, {"UID": "p-2"}]},     # 4 cpus, all gone: no
                "cordoned": {"Pods": []}, "nowhere": {"Pods": []},
                "small": {"Pods": [{"UID": "unknown"}]},
                "large": {"Pods": []}}})                                # fits as it is
        self.assertEqual(answer, {"NodeNameToMetaVictims": {
            "large": {"Pods": [], "NumPDBViolations": 0}}})
        self.assertEqual(self.live.state(), before)

    def test_best_only(self):
        with snapshot("--best-only", "--assume-ms", "0") as live:
            for _ in range(2):
                answer = live.post("/filter", args(pod("new", "1"), self.names))
                self.assertEqual(answer["NodeNames"], ["large"])
            answer = live.post("/filter", args(pod("new", "9"), self.names))
            self.assertEqual(answer["NodeNames"], [])
            # More than they have at all: nobody's going helps.
            self.assertEqual(answer["FailedAndUnresolvableNodes"],
                             {"cordoned": "node(s) were unschedulable",
                              **{name: "Insufficient cpu" for name in ("large", "small", "full")}})

    def test_best_only_counts_what_it_named(self):
        with snapshot("--best-only") as live:
            for _ in range(2):
                answer = live.post("/filter", args(pod("new", "7"), self.names))
                self.assertEqual(answer["NodeNames"], ["large"], "the same pod again")
            answer = live.post("/filter", args(pod("other", "7"), self.names))
            self.assertEqual(answer["NodeNames"], [], "taken by the pod before")
        with snapshot("--best-only", "--assume-ms", "50") as live:
            live.post("/filter", args(pod("one", "7"), self.names))
            wait_until(lambda: live.post("/filter", args(pod("two", "7"), self.names))["NodeNames"],
                       "the assumption is over")

    def test_url_prefix(self):
        with snapshot("--url-prefix", "/penstock") as live:
            self.assertEqual(live.request("POST", "/filter", {})[0], 404)
            self.assertEqual(live.post("/penstock/filter", args(pod("new"), []))["NodeNames"], [])


class Bounds(unittest.TestCase):
    """What is wrong is answered with 4xx and a sentence, and the next request is served."""

    BAD = [  # method, path, body, status, in the answer
        ("POST", "/filter", "", 400, "no JSON"),
        ("POST", "/filter", "{", 400, "no JSON"),
        ("POST", "/filter", "[]", 400, "expected an object"),
        ("POST", "/filter", "null", 400, "expected an object"),
        ("POST", "/filter", '{"Pod": NaN}', 400, "no JSON"),
        ("POST", "/filter", '{"Pod": {}, "NodeNames": []}', 400, "metadata.name"),
        ("POST", "/filter", '{"Pod": null, "NodeNames": []}', 400, "expected a Pod"),
        ("POST", "/filter", '{"Pod": 7, "NodeNames": []}', 400, "Pod"),
        ("POST", "/filter", '{"Pod": {"metadata": {"name": "a"}}}', 400, "neither"),
        ("POST", "/filter", '{"Pod": {"metadata": {"name": "a"}}, "NodeNames": "x"}', 400, "array"),
        ("POST", "/filter", '{"Pod": {"metadata": {"name": "a"}}, "NodeNames": [7]}', 400, "text"),
        ("POST", "/filter", '{"Pod": {"metadata": {"name": "a"}}, "Nodes": {"items": [7]}}', 400,
         "expected a Node"),
        ("POST", "/filter", '{"Pod": {"metadata": {"name": "a"}}, "Nodes": {"items": [{}]}}', 400,
         "metadata.name"),
        ("POST", "/filter", json.dumps(args(pod("a", cpu="many"), [])), 400, "cpu"),
        ("POST", "/filter", json.dumps(args(pod("a", cpu="NaN"), [])), 400, "cpu"),
        ("POST", "/filter", json.dumps(args(pod("a"), nodes=[node("n", cpu="-x")])), 400, "cpu"),
        ("POST", "/filter", "[" * 100000, 400, "deeper"),
        ("POST", "/filter", b'{"Pod": "\xff"}', 400, "no JSON"),
        ("POST", "/prioritize", "{}", 400, "Pod"),
        ("POST", "/bind", "{}", 400, "PodNamespace"),
        ("POST", "/bind", '{"PodName": "a/b", "PodNamespace": "x", "Node": "n"}', 400, "PodName"),
        ("POST", "/bind", '{"PodName": 7, "PodNamespace": "x", "Node": "n"}', 400, "PodName"),
        ("POST", "/preempt", json.dumps({"Pod": pod("a")}), 400, "neither"),
        ("POST", "/preempt", json.dumps({"Pod": pod("a"), "NodeNameToMetaVictims": {
            "n": {"Pods": [{}]}}}), 400, "uid"),
        ("POST", "/preempt", json.dumps({"Pod": pod("a"), "NodeNameToMetaVictims": {
            "n": {"Pods": [], "NumPDBViolations": 1e300}}}), 400, "NumPDBViolations"),
        ("GET", "/filter", None, 405, "GET"),
        ("PUT", "/filter", "{}", 405, "PUT"),
        ("POST", "/healthz", "{}", 405, "POST"),
        ("POST", "/nothing", "{}", 404, "/filter"),
        ("GET", "/", None, 404, "/healthz"),
    ]

    @classmethod
    def setUpClass(cls):
        cls.live = snapshot("--max-body", "200000", "--max-header", "4096", "--max-connections",
                            "8", "--request-timeout-ms", "2000", "--idle-timeout-ms", "60000")

    @classmethod
    def tearDownClass(cls):
        cls.live.end()

    def raw(self, data, then=b"", wait_s=0.0, to_the_end=False):
        """What the server sends for these bytes: one answer, or everything until it closes."""
        with socket.create_connection(("127.0.0.1", self.live.port), timeout=30) as client:
            client.sendall(data)
            for at in range(len(then)):
                time.sleep(wait_s)
                try:
                    client.sendall(then[at:at + 1])
                except OSError:
                    break
            out = b""
            try:
                while True:
                    part = client.recv(65536)
                    if not part:
                        return out.decode(errors="replace")
                    out += part
                    if not then and not to_the_end and b"\r\n\r\n" in out and b"close" not in out:
                        return out.decode(errors="replace")
            except ConnectionResetError:
                return out.decode(errors="replace")

    def check_serving(self):
        case = testdata("filter_names.json")
        wait_until(lambda: self.live.request("POST", "/filter", case["request"])[0] == 200,
                   "it serves again")
        self.assertEqual(self.live.post("/filter", case["request"]), case["answer"])

    def test_bad_requests(self):
        for method, path, body, status, word in self.BAD:
            with self.subTest(method=method, path=path, body=str(body)[:80]):
                found, text = self.live.request(method, path, body,
                                                {"Content-Type": "application/json"})
                self.assertEqual(found, status, text)
                self.assertIn(word, json.loads(text)["error"])
        self.check_serving()

    def test_a_body_that_is_not_json_by_its_header(self):
        for headers in ({"Content-Type": "text/plain"}, {},
                        {"Content-Type": "multipart/form-data; boundary=x"},
                        {"Content-Type": "application/json", "Content-Encoding": "gzip"}):
            status, text = self.live.request("POST", "/filter", "{}", headers)
            self.assertEqual(status, 415, text)
        self.check_serving()

    def test_too_large(self):
        big = json.dumps(args(pod("a"), ["x" * 300000]))
        status, text = self.live.request("POST", "/filter", big)
        self.assertEqual(status, 413, text)
        self.assertIn("200000", text)
        # In chunks, without a length; and one that only claims to be long.
        chunks = b"".join(b"1000\r\n" + b"x" * 4096 + b"\r\n" for _ in range(100))
        head = b"POST /filter HTTP/1.1\r\nContent-Type: application/json\r\n"
        self.assertIn(" 413 ", self.raw(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks))
        self.assertIn(" 413 ", self.raw(head + b"Content-Length: 99999999999\r\n\r\n"))
        self.assertIn(" 431 ", self.raw(b"GET /healthz HTTP/1.1\r\nX: " + b"y" * 5000 + b"\r\n\r\n"))
        self.assertIn(" 431 ", self.raw(b"GET /" + b"y" * 70000 + b" HTTP/1.1\r\n\r\n"))
        many = b"".join(b"X-%d: y\r\n" % i for i in range(2000))
        self.assertIn(" 431 ", self.raw(b"GET /healthz HTTP/1.1\r\n" + many + b"\r\n"))
        self.check_serving()

    def test_no_http(self):
        for data in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"hello\r\n\r\n",
                     b"GET\r\n\r\n", b"GET /healthz HTTP/9.9\r\n\r\n",
                     b"POST /filter HTTP/1.1\r\nContent-Type: application/json\r\n\r\n"):
            self.assertRegex(self.raw(data), r"HTTP/1.1 4\d\d ")
        self.check_serving()

    def test_slow_loris(self):
        text = self.raw(b"POST /filter HTTP/1.1\r\nContent-Type: application/json\r\n",
                        b"X-Slow: 0123456789", 0.15)
        self.assertIn(" 408 ", text)
        self.assertIn("2000 ms", text)
        text = self.raw(b"POST /filter HTTP/1.1\r\nContent-Type: application/json\r\n"
                        b"Content-Length: 1000\r\n\r\n", b"0123456789", 0.25)
        self.assertIn(" 408 ", text)
        self.check_serving()

    def test_too_many_connections(self):
        idle = [socket.create_connection(("127.0.0.1", self.live.port)) for _ in range(8)]
        try:
            def refused():
                # One of those before may have been refused for the sake of one that was just ending.
                try:
                    idle.append(socket.create_connection(("127.0.0.1", self.live.port)))
                    return " 429 " in self.raw(b"GET /healthz HTTP/1.1\r\n\r\n")
                except OSError:
                    return False
            wait_until(refused, "a further connection is refused")
        finally:
            for client in idle:
                client.close()
        self.check_serving()

    def test_several_requests_on_a_connection(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.live.port, timeout=30)
        for _ in range(5):
            connection.request("POST", "/filter", json.dumps(args(pod("a"), [])),
                               {"Content-Type": "application/json"})
            response = connection.getresponse()
            self.assertEqual(response.status, 200)
            response.read()
        connection.close()
        # Two in one packet.
        one = b"GET /healthz HTTP/1.1\r\n\r\n"
        last = b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n"
        self.assertEqual(self.raw(one + last, to_the_end=True).count("HTTP/1.1 200"), 2)

    def test_fuzz(self):
        rng = random.Random(SEED)
        seeds = [json.dumps(testdata("filter_names.json")["request"]),
                 json.dumps(args(pod("a", selector={"disk": "ssd"}),
                                 nodes=[node("large"), node("b", unschedulable=True)])),
                 json.dumps({"PodName": "a", "PodNamespace": "b", "PodUID": "c", "Node": "large"}),
                 json.dumps({"Pod": pod("a", priority=5), "NodeNameToMetaVictims": {
                     "full": {"Pods": [{"UID": "p-1"}], "NumPDBViolations": 0}}})]
        codes = {}
        for _ in range(FUZZ):
            text = mutated(rng, rng.choice(seeds))
            path = rng.choice(["/filter", "/prioritize", "/bind", "/preempt"])
            try:
                status, _answer = self.live.request("POST", path, text)
            except (OSError, http.client.HTTPException):
                status = 0
            codes[status] = codes.get(status, 0) + 1
            self.assertIsNone(self.live.process.poll(), f"it ended on {text[:500]!r}")
        self.assertGreater(codes.get(200, 0), FUZZ // 50, codes)
        self.assertGreater(codes.get(400, 0), FUZZ // 10, codes)
        self.assertEqual(codes.get(500, 0) + codes.get(0, 0), 0, codes)
        with snapshot() as fresh:  # what was sent may have added nodes; this one tells what is right
            case = testdata("filter_names.json")
            self.assertEqual(fresh.post("/filter", case["request"]), case["answer"])
        self.assertEqual(self.live.request("GET", "/healthz")[0], 200)

    def test_fuzz_of_bytes(self):
        rng = random.Random(SEED + 1)
        request = (b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                   b"Content-Length: 2\r\nConnection: close\r\n\r\n{}")
        for _ in range(max(40, FUZZ // 20)):
            data = bytearray(request)
            for _ in range(rng.randint(1, 6)):
                at = rng.randrange(len(data))
                if rng.random() < 0.5:
                    data[at] = rng.randrange(256)
                else:
                    del data[at]
            with socket.create_connection(("127.0.0.1", self.live.port), timeout=30) as client:
                client.sendall(bytes(data))
                client.shutdown(socket.SHUT_WR)
                try:
                    while client.recv(65536):
                        pass
                except ConnectionResetError:
                    pass
            self.assertIsNone(self.live.process.poll(), f"it ended on {bytes(data)!r}")
        self.check_serving()


def mutated(rng, text):
    """The text with a few changes of its bytes or of its JSON values."""
    if rng.random() < 0.5:
        value = json.loads(text)
        for _ in range(rng.randint(1, 3)):
            places = []

            def collect(at):
                for key, item in at.items() if isinstance(at, dict) else enumerate(at):
                    places.append((at, key))
                    if isinstance(item, (dict, list)):
                        collect(item)

            collect(value)
            if not places:
                break
            at, key = rng.choice(places)
            at[key] = copy.deepcopy(rng.choice([
                None, 0, -1, 1e308, 2 ** 63, 2 ** 70, "", "x", "-9223372036854775808", "1e400", [],
                {}, [None], True, "9" * 400, {"a": {"b": []}}, "\u0000", "ü", [[[]]], "0", "1Ei"]))
        return json.dumps(value)
    data = bytearray(text.encode())
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(data))
        kind = rng.random()
        if kind < 0.4:
            data[at] = rng.randrange(256)
        elif kind < 0.7:
            del data[at:at + rng.randint(1, 20)]
        else:
            data[at:at] = data[at:at + rng.randint(1, 20)]
        if not data:
            return b"{}"
    return bytes(data)


class Operation(unittest.TestCase):
    def test_metrics_and_health(self):
        with snapshot() as live:
            self.assertEqual(live.request("GET", "/healthz"), (200, "ok\n"))
            self.assertEqual(live.request("GET", "/readyz"), (200, "ok\n"))
            case = testdata("filter_names.json")
            for _ in range(3):
                live.post("/filter", case["request"])
            live.request("POST", "/filter", "{")
            live.request("GET", "/made-up-by-anybody")
            text = live.request("GET", "/metrics")[1]
            self.assertIn('penstock_http_requests_total{code="200",verb="filter"} 3', text)
            self.assertIn('penstock_http_requests_total{code="400",verb="filter"} 1', text)
            self.assertIn('penstock_decisions_total{result="placed"} 3', text)
            self.assertIn("penstock_decision_duration_seconds_count 3", text)
            self.assertIn("penstock_conflicts_total 0", text)
            self.assertIn("penstock_cache_nodes 4", text)
            self.assertIn("penstock_cache_age_seconds", text)
            self.assertNotIn("made-up", text)

    def test_a_request_in_flight_is_answered_at_the_end(self):
        live = snapshot()
        body = json.dumps(testdata("filter_names.json")["request"]).encode()
        client = socket.create_connection(("127.0.0.1", live.port), timeout=30)
        client.sendall(b"POST /filter HTTP/1.1\r\nContent-Type: application/json\r\n"
                       b"Content-Length: %d\r\n\r\n" % len(body) + body[:50])
        time.sleep(0.2)
        ender = threading.Thread(target=live.end)
        ender.start()
        time.sleep(0.3)
        client.sendall(body[50:])
        answer = b""
        while True:
            part = client.recv(65536)
            if not part:
                break
            answer += part
        client.close()
        ender.join()
        self.assertIn(b"HTTP/1.1 200", answer)
        self.assertIn(b"Connection: close", answer)
        self.assertIn(b'"large"', answer)

    def test_usage(self):
        def run(*arguments):
            done = subprocess.run([TOOL, "extender", *arguments], capture_output=True, text=True,
                                  env=CLEAN, timeout=60, check=False, stdin=subprocess.DEVNULL)
            return done.returncode, done.stderr

        cluster = os.path.join(TESTDATA, "cluster.json")
        for arguments, word in (
                ((), "--snapshot"),
                (("--snapshot", "/nowhere/cluster.json"), "/nowhere/cluster.json"),
                (("--snapshot", cluster, "--api-server", "http://127.0.0.1:1"), "exclude"),
                (("--snapshot", cluster, "--listen", "here"), "HOST:PORT"),
                (("--snapshot", cluster, "--listen", "127.0.0.1:99999"), "HOST:PORT"),
                (("--snapshot", cluster, "--listen", "203.0.113.1:8888"), "203.0.113.1"),
                (("--snapshot", cluster, "--tls-cert", cluster), "key"),
                (("--snapshot", cluster, "--tls-cert", cluster, "--tls-key", cluster), "PEM"),
                (("--snapshot", cluster, "--max-body", "0"), "--max-body"),
                (("--snapshot", cluster, "--url-prefix", "x"), "--url-prefix"),
                (("--api-server", "ftp://x"), "http://"),
                (("--api-server", "http://127.0.0.1:1/path"), "path"),
                (("--in-cluster",), "KUBERNETES_SERVICE_HOST"),
                (("--api-server", "https://127.0.0.1:1", "--api-ca", "/nowhere"), "/nowhere")):
            with self.subTest(arguments=arguments):
                status, errors = run(*arguments)
                self.assertEqual(status, 2, errors)
                self.assertIn(word, errors)
                self.assertEqual(errors.count("\n"), 1, errors)

    def test_the_address_is_taken(self):
        with snapshot() as live:
            done = subprocess.run(
                [TOOL, "extender", "--snapshot", os.path.join(TESTDATA, "cluster.json"),
                 "--listen", f"127.0.0.1:{live.port}"], capture_output=True, text=True, env=CLEAN,
                timeout=60, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn("in use", done.stderr)

    def test_others_than_this_host_are_warned_about(self):
        process = subprocess.Popen(
            [TOOL, "extender", "--snapshot", os.path.join(TESTDATA, "cluster.json"), "--listen",
             "0.0.0.0:0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=CLEAN)
        self.assertIn("serving at", process.stdout.readline())
        process.terminate()
        with process:
            self.assertIn("without encryption", process.communicate(timeout=60)[1])

    @unittest.skipUnless(shutil.which("openssl"), "no openssl to make certificates with")
    def test_tls_with_client_certificates(self):
        with tempfile.TemporaryDirectory() as folder:
            def path(name):
                return os.path.join(folder, name)

            def openssl(*arguments):
                subprocess.run(["openssl", *arguments], check=True, capture_output=True)

            for name in ("ca", "other-ca"):
                openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                        "-nodes", "-keyout", path(f"{name}.key"), "-out", path(f"{name}.crt"),
                        "-days", "2", "-subj", f"/CN={name}")
            with open(path("san"), "w", encoding="ascii") as file:
                file.write("subjectAltName=IP:127.0.0.1")
            for name, authority in (("server", "ca"), ("client", "ca"), ("stranger", "other-ca")):
                openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-keyout", path(f"{name}.key"), "-out", path(f"{name}.csr"), "-subj",
                        f"/CN={name}")
                openssl("x509", "-req", "-in", path(f"{name}.csr"), "-CA",
                        path(f"{authority}.crt"), "-CAkey", path(f"{authority}.key"),
                        "-CAcreateserial", "-out", path(f"{name}.crt"), "-days", "2", "-extfile",
                        path("san"))
            with snapshot("--tls-cert", path("server.crt"), "--tls-key", path("server.key"),
                          "--client-ca", path("ca.crt")) as live:
                self.assertEqual(live.scheme, "https")

                def ask(name):
                    context = ssl.create_default_context(cafile=path("ca.crt"))
                    if name:
                        context.load_cert_chain(path(f"{name}.crt"), path(f"{name}.key"))
                    connection = http.client.HTTPSConnection("127.0.0.1", live.port,
                                                             context=context, timeout=30)
                    body = json.dumps(testdata("filter_names.json")["request"])
                    try:
                        connection.request("POST", "/filter", body,
                                           {"Content-Type": "application/json"})
                        return json.loads(connection.getresponse().read())
                    finally:
                        connection.close()

                self.assertEqual(ask("client"), testdata("filter_names.json")["answer"])
                for name in (None, "stranger"):
                    with self.assertRaises((ssl.SSLError, OSError, http.client.HTTPException)):
                        ask(name)
                self.assertEqual(ask("client"), testdata("filter_names.json")["answer"])


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
    global TOOL, FUZZ, SEED
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--fuzz", type=int, default=FUZZ)
    parser.add_argument("--seed", type=int, default=SEED)
    options, rest = parser.parse_known_args()
    TOOL, FUZZ, SEED = options.tool, options.fuzz, options.seed
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
