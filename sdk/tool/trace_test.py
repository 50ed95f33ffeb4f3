#!/usr/bin/env python3
"""penstock trace, and the statistics of a run.

usage: trace_test.py --tool FILE [unittest arguments]
"""

import glob
import json
import os
import tempfile
import time

from tool_case import ToolTest, main, tool


class Trace(ToolTest):
    """run --stats, run --trace and trace merge."""

    def perf(self, *options, ranks=3, **environment):
        return tool("run", "-n", str(ranks), *options, "--", "penstock", "perf", "all_reduce", "-b",
                    "1K", "-e", "64K", "-f", "64", "-n", "10", **environment)

    def slices(self, path):
        with open(path, encoding="utf-8") as file:
            trace = json.load(file)
        return trace, [event for event in trace["traceEvents"] if event["ph"] == "X"]

    def test_a_timeline_of_all_ranks(self):
        path = self.path("t.json")
        self.perf("--trace", path)
        self.assertEqual(os.listdir(self.folder), ["t.json"])
        trace, slices = self.slices(path)
        self.assertEqual(trace["otherData"]["slices"], len(slices))
        self.assertEqual(trace["otherData"]["dropped"], 0)
        names = {event["args"]["name"].split(" (")[0] for event in trace["traceEvents"]
                 if event["name"] == "process_name"}
        self.assertEqual(names, {"rank 0", "rank 1", "rank 2"})
        self.assertEqual({event["pid"] for event in slices}, {0, 1, 2})
        self.assertLessEqual({"call", "copy", "reduce"}, {event["cat"] for event in slices})
        # All ranks took part in the same span of time.
        spans = [(min(times), max(times)) for times in
                 ([event["ts"] for event in slices if event["pid"] == rank] for rank in range(3))]
        self.assertLess(max(first for first, _ in spans), min(last for _, last in spans))
        # A fold of three ranks lies inside of some call or wait, and says so.
        folds = [event for event in slices if event["cat"] == "reduce"]
        self.assertEqual({event["args"]["sources"] for event in folds}, {3})

    def test_merge(self):
        path = self.path("t.json")
        self.perf(PENSTOCK_TRACE=path)
        self.assertEqual(sorted(os.listdir(self.folder)), ["t.json.0", "t.json.1", "t.json.2"])
        whole = self.path("whole.json")
        out, err = tool("trace", "merge", path, "-o", whole)
        self.assertRegex(out, r"whole.json: \d+ slices of 3 ranks, 0 dropped")
        self.assertEqual(err, "")
        _, slices = self.slices(whole)
        self.assertEqual({event["pid"] for event in slices}, {0, 1, 2})
        # A rank that left none, and one whose part was cut, are named; the rest is there.
        os.remove(path + ".1")
        with open(path + ".2", "r+", encoding="utf-8") as part:
            part.truncate(os.path.getsize(path + ".2") * 2 // 3)
        out, err = tool("trace", "merge", path, "--remove", status=1)
        self.assertIn("rank 1 left no part", err)
        self.assertIn("t.json.2 was cut", err)
        _, slices = self.slices(path)
        self.assertEqual({event["pid"] for event in slices}, {0, 2})
        self.assertEqual(sorted(os.listdir(self.folder)), ["t.json", "whole.json"])

    def test_what_is_no_timeline(self):
        self.assert_one_line(["trace", "merge", self.path("t.json")], "t.json.0", "PENSTOCK_TRACE")
        self.path("t.json.0", '{"a": 1}\n')
        self.assert_one_line(["trace", "merge", self.path("t.json")], "t.json.0",
                             "no part of a timeline")
        # Files of others that only look like parts stay.
        self.path("t.json.2024", "mine")
        self.perf("--trace", self.path("t.json"), ranks=1)
        self.assertEqual(sorted(os.listdir(self.folder)), ["t.json", "t.json.0", "t.json.2024"])

    def test_a_full_buffer_says_what_it_dropped(self):
        path = self.path("t.json")
        _, err = self.perf("--trace", path, ranks=2, PENSTOCK_TRACE_EVENTS="5")
        self.assertRegex(err, r"--trace: \d+ slices were dropped; PENSTOCK_TRACE_EVENTS")
        trace, slices = self.slices(path)
        self.assertEqual(len(slices), 10)
        self.assertGreater(trace["otherData"]["dropped"], 0)

    def test_statistics(self):
        out, _ = self.perf("--stats")
        table = out[out.index("comm '"):].splitlines()
        rows = {line.split()[0]: line.split()[1:] for line in table[1:]}
        # Each rank makes 5 + 10 calls per size, in place and not; two sizes; three ranks.
        self.assertGreaterEqual(int(rows["all_reduce"][0]), 3 * 2 * 2 * 15)
        self.assertEqual(len(rows["all_reduce"]), 10)
        shares = [float(share) for share in rows["all_reduce"][6:]]
        self.assertAlmostEqual(sum(shares), 100, delta=1)
        self.assertEqual({"0", "1", "2"} - set(rows), set())
        self.assertEqual(glob.glob(os.path.join(tempfile.gettempdir(), "penstock-report-*")), [])

    def test_statistics_as_json(self):
        path = self.path("s.json")
        self.perf(ranks=2, PENSTOCK_STATS=path)
        for rank in range(2):
            with open(f"{path}.{rank}", encoding="utf-8") as file:
                report = json.load(file)
            self.assertEqual((report["rank"], report["size"]), (rank, 2))
            numbers = report["reports"][0]["collectives"]["all_reduce"]
            self.assertGreater(numbers["ns"], 0)
            self.assertGreater(numbers["bytes"], numbers["calls"] * 8)


if __name__ == "__main__":
    main()
