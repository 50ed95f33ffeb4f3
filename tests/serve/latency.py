#!/usr/bin/env python3
"""Latency of `penstock extender`'s verbs over one connection, by the number of nodes.

usage: latency.py --tool FILE [--nodes N,N,...] [--requests N]

Prints the median and the 99th percentile in milliseconds, from sending a request to having its
answer, with nodeCacheCapable (names) and without (whole nodes).
"""

import argparse
import http.client
import json
import os
import tempfile
import time

from live import Live, node, pod


def measure(connection, path, body, requests):
    times = []
    for _ in range(requests):
        start = time.perf_counter()
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = response.read()
        times.append(time.perf_counter() - start)
        if response.status != 200:
            raise SystemExit(f"{path}: {response.status} {answer[:200]}")
    times.sort()
    return times[len(times) // 2] * 1e3, times[min(len(times) - 1, len(times) * 99 // 100)] * 1e3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--nodes", default="100,1000,5000,10000")
    parser.add_argument("--requests", type=int, default=100)
    options = parser.parse_args()
    print(f"{'nodes':>7} {'verb':>22} {'median ms':>10} {'p99 ms':>10}")
    for count in map(int, options.nodes.split(",")):
        nodes = [node(f"node-{n}", cpu=str(8 + n % 57), labels={"zone": f"z{n % 3}"})
                 for n in range(count)]
        running = [pod(f"running-{n}", "1", on=f"node-{n}") for n in range(count)]
        with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
            json.dump({"kind": "List", "items": nodes + running}, file)
        asked = pod("asked", "2")
        names = json.dumps({"Pod": asked, "NodeNames": [item["metadata"]["name"]
                                                        for item in nodes]})
        whole = json.dumps({"Pod": asked, "Nodes": {"items": nodes}})
        try:
            for flags in ((), ("--best-only", "--assume-ms", "0")):
                with Live(options.tool, "extender", "--snapshot", file.name, *flags) as live:
                    connection = http.client.HTTPConnection("127.0.0.1", live.port)
                    cases = [("filter", names), ("filter, whole nodes", whole),
                             ("prioritize", names)] if not flags else [("filter, best only", names)]
                    for name, body in cases:
                        path = "/" + name.split(",")[0]
                        requests = options.requests if body is names else max(
                            5, options.requests // 10)
                        measure(connection, path, body, 2)
                        median, high = measure(connection, path, body, requests)
                        print(f"{count:>7} {name:>22} {median:>10.3f} {high:>10.3f}", flush=True)
                    connection.close()
        finally:
            os.unlink(file.name)


if __name__ == "__main__":
    main()
