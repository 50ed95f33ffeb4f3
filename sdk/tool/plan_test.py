#!/usr/bin/env python3
"""penstock plan.

usage: plan_test.py --tool FILE [unittest arguments]
"""

import json

from tool_case import ToolTest, main, tool


class Plan(ToolTest):
    def test_every_algorithm_passes_its_check(self):
        lines = tool("plan", "--list")[0].splitlines()
        self.assertEqual(len({line.split()[0] for line in lines}), 10)
        for line in lines:
            collective, algorithm = line.split()[:2]
            ranks = "2" if collective == "send_recv" else "4"
            group = "2" if algorithm == "two_level" else "0"
            out, _ = tool("plan", collective, "--ranks", ranks, "--devices", "3", "--size", "5001",
                          "--type", "bf16", "--algorithm", algorithm, "--group", group, "--check")
            self.assertIn("the plan is right", out)

    def test_groups_change_the_definition(self):
        out, _ = tool("plan", "reduce", "--ranks", "6", "--group", "3", "--size", "1K", "--check")
        self.assertIn("left fold over 2 groups, in order, of the left folds in rank order inside each "
                      "group of 3 ranks", out)
        self.assertIn("the plan is right", out)
        self.assert_one_line(["plan", "reduce", "--ranks", "6", "--group", "4"], "group is 4",
                             "must divide ranks, 6")
        self.assert_one_line(["plan", "all_reduce", "--group", "2", "--algorithm", "one_shot"],
                             "all_reduce has auto, two_level")

    def test_text(self):
        out, _ = tool("plan", "all_reduce", "--ranks", "2", "--devices", "1", "--size", "64",
                      "--algorithm", "one_shot")
        self.assertIn("left fold", out)
        self.assertNotIn("passes", out.split("\n")[0])
        self.assertIn("rank 1", out)

    def test_json_is_the_plan_of_a_pass(self):
        plan = json.loads(tool("plan", "all_gather", "--ranks", "4", "--devices", "3", "--size",
                               "10M", "--block-bytes", "1M", "--format", "json", "--check")[0])
        self.assertEqual(plan["part_bytes"], (10 << 20) // 4)
        self.assertEqual(plan["pass_part_bytes"], 1 << 20)
        self.assertEqual(plan["passes"], 3)
        self.assertEqual(plan["findings"], [])
        self.assertEqual(len(plan["plan"]["ranks"]), 4)
        self.assertIn("tail", plan)

    def test_chrome_trace(self):
        trace = json.loads(tool("plan", "broadcast", "--ranks", "3", "--format", "chrome")[0])
        events = trace["traceEvents"] if isinstance(trace, dict) else trace
        self.assertEqual({event["tid"] for event in events if event.get("ph") == "X"}, {0, 1, 2})


if __name__ == "__main__":
    main()
