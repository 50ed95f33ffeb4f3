#!/usr/bin/env python3
"""`penstock scheduler` against a stand-in API server.

usage: scheduler_test.py --tool FILE [--pods N] [unittest arguments]
"""

import argparse
import collections
import os
import random
import signal
import subprocess
import sys
import time
import unittest

from api_server import ApiServer
from live import CLEAN, Live, node, pod, wait_until

TOOL = ""
PODS = 120
FAST_LEASE = ("--lease-duration-ms", "3000", "--renew-deadline-ms", "2000", "--retry-period-ms",
              "300")
FAST_RETRY = ("--backoff-ms", "50", "--max-backoff-ms", "200")


def mine(name, *arguments, **more):
    return pod(name, *arguments, scheduler="penstock", **more)


class SchedulerTest(unittest.TestCase):
    def setUp(self):
        self.server = ApiServer(seed=7)
        self.addCleanup(self.server.stop)

    def scheduler(self, *arguments, **more):
        retry = () if "--backoff-ms" in arguments else FAST_RETRY
        return Live(TOOL, "scheduler", "--api-server", self.server.url, *FAST_LEASE, *retry,
                    *arguments, **more)

    def node_of(self, key):
        item = self.server.get("pods", key)
        return item and item["spec"].get("nodeName")

    def wait_bound(self, keys, seconds=60):
        wait_until(lambda: all(self.node_of(key) for key in keys),
                   lambda: f"bound: {[(k, self.node_of(k)) for k in keys]}", seconds)

    def check_once(self):
        """No pod was bound twice, and no node holds more than it has."""
        counts = collections.Counter(uid for uid, _ in self.server.bindings)
        self.assertEqual([uid for uid, n in counts.items() if n > 1], [])
        used = collections.Counter()
        for item in self.server.all("pods").values():
            name = item["spec"].get("nodeName")
            if name:
                used[name] += int(item["spec"]["containers"][0]["resources"]["requests"]["cpu"])
        for name, item in self.server.all("nodes").items():
            self.assertLessEqual(used[name], int(item["status"]["allocatable"]["cpu"]), name)

    def events(self, reason):
        return [event for event in list(self.server.events) if event["reason"] == reason]


class Scheduling(SchedulerTest):
    def test_binds_what_names_it_and_nothing_else(self):
        self.server.put("nodes", node("node-1", "4"))
        self.server.put("nodes", node("node-2", "8"))
        a = self.server.put("pods", mine("a", "2"))
        self.server.put("pods", pod("other", scheduler="default-scheduler"))
        gated = mine("gated")
        gated["spec"]["schedulingGates"] = [{"name": "wait"}]
        self.server.put("pods", gated)
        with self.scheduler():
            self.wait_bound(["default/a"])
            # Least allocated: 6 of 8 cpus left against 2 of 4.
            self.assertEqual(self.server.bindings, [(a["metadata"]["uid"], "node-2")])
            self.server.put("pods", mine("b", "1"))
            self.wait_bound(["default/b"])
            wait_until(lambda: len(self.events("Scheduled")) == 2, "events")
            event = next(e for e in self.events("Scheduled") if e["regarding"]["name"] == "a")
            self.assertEqual(event["note"], "Successfully assigned default/a to node-2")
            self.assertEqual((event["type"], event["action"], event["reportingController"]),
                             ("Normal", "Binding", "penstock"))
            self.assertEqual(event["regarding"]["uid"], a["metadata"]["uid"])
            self.assertIsNone(self.node_of("default/other"))
            self.assertIsNone(self.node_of("default/gated"))
            self.server.change("pods", "default/gated",
                               lambda item: item["spec"].pop("schedulingGates"))
            self.wait_bound(["default/gated"])
        self.check_once()

    def test_one_that_fits_nowhere_is_said_and_tried_again(self):
        self.server.put("nodes", node("node-1", "4"))
        self.server.put("pods", pod("old", "3", on="node-1"))
        self.server.put("pods", mine("a", "2"))
        with self.scheduler() as live:
            wait_until(lambda: self.events("FailedScheduling"), "an event")
            event = self.events("FailedScheduling")[0]
            self.assertIn("0/1 nodes are available: 1 Insufficient cpu", event["note"])
            self.assertEqual((event["type"], event["action"]), ("Warning", "Scheduling"))

            def condition():
                item = self.server.get("pods", "default/a")
                return [c for c in item["status"].get("conditions", [])
                        if c["type"] == "PodScheduled"]
            found = wait_until(condition, "a condition")[0]
            self.assertEqual((found["status"], found["reason"]), ("False", "Unschedulable"))
            self.assertEqual(found["message"], event["note"])
            time.sleep(0.5)
            self.assertEqual(len(self.events("FailedScheduling")), 1, "said once")
            self.assertLess(live.metric("penstock_decisions_total"), 6, "and not tried in a loop")
            # Room: by a pod that goes, by a node that comes, by a cordon that is lifted.
            self.server.remove("pods", "default/old")
            self.wait_bound(["default/a"])
            self.server.put("pods", mine("b", "4"))
            wait_until(lambda: len(self.events("FailedScheduling")) >= 2, "an event")
            self.server.put("nodes", node("node-2", "4", unschedulable=True))
            time.sleep(0.4)
            self.assertIsNone(self.node_of("default/b"))
            self.server.change("nodes", "node-2", lambda item: item["spec"].clear())
            self.wait_bound(["default/b"])
            self.assertEqual(self.node_of("default/b"), "node-2")
        self.check_once()

    def test_higher_priority_first(self):
        self.server.put("pods", mine("low", "3", priority=1))
        self.server.put("pods", mine("high", "3", priority=1000))
        with self.scheduler("--backoff-ms", "300") as live:
            wait_until(lambda: live.metric("penstock_decisions_total") >= 2, "both were tried")
            self.server.put("nodes", node("node-1", "4"))
            self.wait_bound(["default/high"])
            time.sleep(0.5)
            self.assertIsNone(self.node_of("default/low"))

    def test_a_surge_with_every_fault(self):
        rng = random.Random(3)
        for number in range(8):
            self.server.put("nodes", node(f"node-{number}", str(PODS // 4), "1000Gi", pods="200"))
        faults = self.server.faults
        faults.bind_conflict, faults.bind_error, faults.bind_lost = 0.1, 0.1, 0.1
        faults.close, faults.cut, faults.duplicate, faults.delay = 0.03, 0.01, 0.1, 0.02
        faults.expire, faults.fail_list = 0.2, 0.2
        with self.scheduler("--watch-timeout-ms", "3000") as live:
            for number in range(PODS):
                self.server.put("pods", mine(f"pod-{number}", str(rng.randint(1, 2))))
                if number % 10 == 0:
                    self.server.compact()
            self.wait_bound([f"default/pod-{n}" for n in range(PODS)], 120)
            self.assertGreater(live.metric("penstock_conflicts_total"), 0)
            faults.__init__()

            def agrees():
                state = live.state()["nodes"]
                for name in self.server.all("nodes"):
                    expected = sorted(k for k, v in self.server.all("pods").items()
                                      if v["spec"].get("nodeName") == name)
                    if state[name]["pods"] != expected:
                        return False
                return not live.state()["assumed"]
            wait_until(agrees, "its state is the server's")
        self.check_once()

    def test_a_refused_binding_gives_the_place_back(self):
        self.server.put("nodes", node("node-1", "2"))
        self.server.faults.bind_refused = ("default/a",)
        self.server.put("pods", mine("a", "2"))
        with self.scheduler("--backoff-ms", "600000", "--max-backoff-ms", "600000") as live:
            wait_until(lambda: live.metric("penstock_bindings_total") == 1, "an attempt")
            # While the other waits for its next attempt.
            self.server.put("pods", mine("b", "2"))
            self.wait_bound(["default/b"])
            wait_until(lambda: live.state()["nodes"]["node-1"]["pods"] == ["default/b"], "state")
            self.assertEqual(live.metric("penstock_bindings_total"), 2)
            self.assertEqual(self.server.attempts[0], ("default/a", "node-1", 500))

    def test_a_pod_of_the_same_name_is_another(self):
        self.server.put("nodes", node("node-1", "2"))
        self.server.faults.bind_delay_s = 0.3
        first = self.server.put("pods", mine("a", "2"))
        with self.scheduler():
            wait_until(lambda: any("binding" in path for _, path in self.server.requests), "bind")
            self.server.remove("pods", "default/a")
            second = self.server.put("pods", mine("a", "1"))
            self.assertNotEqual(first["metadata"]["uid"], second["metadata"]["uid"])
            self.wait_bound(["default/a"])
            self.assertEqual([uid for uid, _ in self.server.bindings],
                             [second["metadata"]["uid"]])

    def test_the_end_waits_for_bindings(self):
        self.server.put("nodes", node("node-1", "2"))
        self.server.faults.bind_delay_s = 0.5
        self.server.put("pods", mine("a", "1"))
        live = self.scheduler()
        wait_until(lambda: any("binding" in path for _, path in self.server.requests), "bind")
        live.end()
        self.assertEqual(len(self.server.bindings), 1)
        self.assertEqual(self.server.leases["kube-system/penstock-scheduler"]["spec"]
                         ["holderIdentity"], "", "the lease was given back")

    def test_preemption(self):
        self.server.put("nodes", node("node-1", "4"))
        self.server.put("nodes", node("node-2", "4"))
        self.server.put("pods", pod("low", "3", on="node-1", priority=5))
        self.server.put("pods", pod("guarded", "3", on="node-2", priority=1,
                                    labels={"app": "guarded"}))
        self.server.put("poddisruptionbudgets", {
            "metadata": {"name": "guard", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "guarded"}}},
            "status": {"disruptionsAllowed": 0}})
        high = self.server.put("pods", mine("high", "2", priority=1000))
        # Would take the room that is made for the other, if nothing held it.
        self.server.put("pods", mine("equal", "4", priority=1))
        with self.scheduler("--preempt") as live:
            self.wait_bound(["default/high"])
            # The budget spares node-2, although its pod is of the lower priority.
            self.assertEqual(self.node_of("default/high"), "node-1")
            self.assertEqual(self.server.get("pods", "default/high")["status"]
                             ["nominatedNodeName"], "node-1")
            self.assertIsNone(self.server.get("pods", "default/low"))
            event = wait_until(lambda: self.events("Preempted"), "an event")[0]
            self.assertEqual(event["note"],
                             f"Preempted by pod {high['metadata']['uid']} on node node-1")
            self.assertEqual(event["regarding"]["name"], "low")
            self.assertEqual(live.metric("penstock_preemption_victims_total"), 1)
            time.sleep(0.3)
            self.assertIsNotNone(self.server.get("pods", "default/guarded"))
            self.assertIsNone(self.node_of("default/equal"), "1 is not more than 1")
        deletes = [path for method, path in self.server.requests if method == "DELETE"]
        self.assertEqual(len(deletes), 1)
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "sdk",
                              "kubernetes")
        allowed = (rules(os.path.join(folder, "scheduler.yaml")) |
                   rules(os.path.join(folder, "scheduler-preemption.yaml")))
        for method, path in self.server.requests:
            self.assertIn(needs(method, path), allowed, f"{method} {path}")

    def test_without_preemption_nobody_is_deleted(self):
        self.server.put("nodes", node("node-1", "4"))
        self.server.put("pods", pod("low", "3", on="node-1", priority=0))
        self.server.put("pods", mine("high", "2", priority=1000))
        with self.scheduler():
            wait_until(lambda: self.events("FailedScheduling"), "an event")
            time.sleep(0.3)
            self.assertIsNone(self.server.get("pods", "default/low")["metadata"].get(
                "deletionTimestamp"))

    def test_it_asks_for_no_more_than_its_role_allows(self):
        self.server.put("nodes", node("node-1", "2"))
        self.server.put("pods", mine("a", "1"))
        self.server.put("pods", mine("b", "9"))
        with self.scheduler():
            self.wait_bound(["default/a"])
            wait_until(lambda: self.server.get("pods", "default/b")["status"].get("conditions"),
                       "a condition")
        allowed = rules(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "sdk",
                                     "kubernetes", "scheduler.yaml"))
        for method, path in self.server.requests:
            self.assertIn(needs(method, path), allowed, f"{method} {path}")

    def test_usage(self):
        for arguments, word in (((), "--api-server"),
                                (("--api-server", self.server.url, "--renew-deadline-ms", "20000"),
                                 "renew deadline"),
                                (("--api-server", self.server.url, "--binders", "0"),
                                 "--binders")):
            done = subprocess.run([TOOL, "scheduler", *arguments], capture_output=True, text=True,
                                  env=CLEAN, timeout=60, check=False, stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(word, done.stderr)


def needs(method, path):
    """(group, resource, verb) of a request."""
    url, _, query = path.partition("?")
    parts = url.strip("/").split("/")
    group = "" if parts[0] == "api" else parts[1]
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if parts[0] == "namespaces" and len(parts) > 2:
        parts = parts[2:]
    resource = parts[0] + (f"/{parts[2]}" if len(parts) > 2 else "")
    verb = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}.get(method)
    if method == "GET":
        verb = "watch" if "watch=1" in query else "get" if len(parts) > 1 else "list"
    return group, resource, verb


def rules(path):
    """What the Role and ClusterRole of a manifest allow; reads the form in which it is written."""
    allowed, lists = set(), {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            key, _, value = line.strip().lstrip("- ").partition(": ")
            if key in ("apiGroups", "resources", "verbs"):
                lists[key] = [word.strip().strip('"') for word in value.strip("[]").split(",")]
            if key == "verbs":
                allowed |= {(g, r, v) for g in lists["apiGroups"] for r in lists["resources"]
                            for v in lists["verbs"]}
    return allowed


class Election(SchedulerTest):
    def test_one_of_two_decides(self):
        self.server.put("nodes", node("node-1", "1000", "1000Gi", pods="1000"))
        with self.scheduler("--identity", "one") as one:
            wait_until(lambda: one.metric("penstock_leader") == 1, "one leads")
            with self.scheduler("--identity", "two") as two:
                for number in range(20):
                    self.server.put("pods", mine(f"a-{number}"))
                self.wait_bound([f"default/a-{n}" for n in range(20)])
                self.assertEqual(two.metric("penstock_decisions_total"), 0)
                self.assertEqual(two.metric("penstock_leader"), 0)
                one.end()  # gives the lease back
                for number in range(20):
                    self.server.put("pods", mine(f"b-{number}"))
                self.wait_bound([f"default/b-{n}" for n in range(20)])
                self.assertEqual(two.metric("penstock_leader"), 1)
        self.check_once()

    def test_failover_under_load(self):
        """The leader is killed, or suspended and woken up, in the middle of a surge."""
        for number in range(4):
            self.server.put("nodes", node(f"node-{number}", str(PODS), "1000Gi", pods="500"))
        self.server.faults.bind_delay_s = 0.02
        created = 0

        def surge(n):
            nonlocal created
            for _ in range(n):
                self.server.put("pods", mine(f"pod-{created}"))
                created += 1

        runs = [self.scheduler("--identity", f"s-{n}") for n in range(2)]
        try:
            def leader():
                holder = self.server.leases.get("kube-system/penstock-scheduler", {}).get(
                    "spec", {}).get("holderIdentity")
                return {"s-0": 0, "s-1": 1}.get(holder)

            wait_until(lambda: leader() is not None, "somebody leads")
            first = leader()
            surge(PODS // 3)
            wait_until(lambda: len(self.server.bindings) >= 5, "some are bound")
            runs[first].process.send_signal(signal.SIGSTOP)
            surge(PODS // 3)
            wait_until(lambda: leader() == 1 - first, "the other leads")
            runs[first].process.send_signal(signal.SIGCONT)
            surge(PODS // 3)
            self.wait_bound([f"default/pod-{n}" for n in range(created)])
            wait_until(lambda: runs[first].metric("penstock_leader") == 0, "it has noticed")
            runs[1 - first].kill()
            surge(10)
            self.wait_bound([f"default/pod-{n}" for n in range(created)])
            self.assertEqual(runs[first].metric("penstock_leader"), 1)
            runs[first].end()
            self.assertGreaterEqual(self.server.leases["kube-system/penstock-scheduler"]["spec"]
                                    ["leaseTransitions"], 2)
        finally:
            for run in runs:
                if run.process.poll() is None:
                    run.process.send_signal(signal.SIGCONT)
                    run.kill()
        self.check_once()

    def test_without_its_lease_it_stops_binding(self):
        self.server.put("nodes", node("node-1", "100", pods="500"))
        with self.scheduler() as live:
            wait_until(lambda: live.metric("penstock_leader") == 1, "it leads")
            self.server.faults.lease_down = True
            wait_until(lambda: live.metric("penstock_leader") == 0, "it has given up")
            self.server.put("pods", mine("a"))
            time.sleep(0.5)
            self.assertEqual(self.server.attempts, [])
            self.server.faults.lease_down = False
            self.wait_bound(["default/a"])

    def test_without_election(self):
        self.server.put("nodes", node("node-1"))
        self.server.put("pods", mine("a"))
        with self.scheduler("--no-leader-election"):
            self.wait_bound(["default/a"])
            self.assertEqual(self.server.leases, {})


def main():
    global TOOL, PODS
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--pods", type=int, default=PODS)
    options, rest = parser.parse_known_args()
    TOOL, PODS = options.tool, options.pods
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
