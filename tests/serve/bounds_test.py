#!/usr/bin/env python3
"""`penstock extender` as bad clients see it.

usage: bounds_test.py --tool FILE [--fuzz N] [--seed N] [unittest arguments]
"""

import argparse
import copy
import http.client
import json
import os
import random
import socket
import sys
import time
import unittest

from live import Live, TESTDATA, args, node, pod, testdata, wait_until

TOOL = ""
FUZZ = 1500
SEED = 1


def snapshot(*arguments, **more):
    return Live(TOOL, "extender", "--snapshot", os.path.join(TESTDATA, "cluster.json"), *arguments,
                **more)


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
