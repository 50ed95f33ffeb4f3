#!/usr/bin/env python3
"""`penstock extender` as kube-scheduler and its operators see it.

usage: extender_test.py --tool FILE [unittest arguments]
"""

import argparse
import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from live import CLEAN, Live, TESTDATA, args, node, pod, testdata, wait_until

TOOL = ""


def snapshot(*arguments, **more):
    return Live(TOOL, "extender", "--snapshot", os.path.join(TESTDATA, "cluster.json"), *arguments,
                **more)


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


def main():
    global TOOL
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    options, rest = parser.parse_known_args()
    TOOL = options.tool
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
