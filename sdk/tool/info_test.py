#!/usr/bin/env python3
"""penstock info, and the plugins that engines come in.

usage: info_test.py --tool FILE [unittest arguments]
"""

import json
import os

from tool_case import TOOL, ToolTest, main, tool


class Info(ToolTest):
    def test_json(self):
        info = json.loads(tool("info", "--json", PENSTOCK_TIMEOUT_MS="1234")[0])
        engines = {engine["name"]: engine for engine in info["engines"]}
        self.assertTrue(engines["scalar"]["available"])
        self.assertEqual(engines["scalar"]["reduce"]["bf16"],
                         ["sum", "prod", "min", "max", "avg", "premul_sum"])
        self.assertIn("REDUCE", engines["scalar"]["operations"])
        variables = {variable["name"]: variable for variable in info["environment"]}
        self.assertEqual(variables["PENSTOCK_TIMEOUT_MS"]["value"], "1234")
        self.assertEqual(variables["PENSTOCK_TIMEOUT_MS"]["origin"], "environment")
        self.assertEqual(variables["PENSTOCK_ENGINE"]["origin"], "default")
        self.assertEqual(info["problems"], [])
        self.assertEqual(info["memory"][0]["path"], "/dev/shm")
        self.assertEqual(info["processor"]["cpus"], len(os.sched_getaffinity(0)))

    def test_text_names_every_variable(self):
        out, _ = tool("info")
        self.assertGreaterEqual(out.count("PENSTOCK_"), 13)
        self.assertIn("scalar", out)


class Engines(ToolTest):
    STATES = ("available", "not here", "not loaded", "not built")

    def test_each_is_there_with_its_state(self):
        info = json.loads(tool("info", "--json")[0])
        engines = {engine["name"]: engine for engine in info["engines"]}
        self.assertLessEqual({"scalar", "simd", "fault", "opencl", "cuda", "hls", "card"},
                             set(engines))
        buses = {variant["name"]: variant for variant in engines["card"]["variants"]}
        self.assertLessEqual({"card:verilator", "card:systemc", "card:xrt"}, set(buses))
        for one in [*engines.values(), *buses.values()]:
            self.assertIn(one["state"], self.STATES)
            self.assertEqual(one["available"], one["state"] == "available")
            if not one["available"]:
                self.assertTrue(one["reason"], one)
        for name in ("card:verilator", "card:systemc"):
            self.assertTrue(buses[name]["simulated"] or not buses[name]["available"])
        # Each on a line of its own.
        out, _ = tool("info")
        for name in [*engines, *buses]:
            self.assertRegex(out, rf"(?m)^ +{name} +({'|'.join(self.STATES)})")

    def test_auto_takes_what_it_says(self):
        info = json.loads(tool("info", "--json", PENSTOCK_SPEED="none")[0])
        for purpose in ("collectives", "decisions"):
            self.assertEqual(info["auto"][purpose]["engine"], "simd")
            self.assertEqual(info["auto"][purpose]["candidates"][1]["name"], "scalar")
            self.assertTrue(info["auto"][purpose]["reason"])
            simulated = {name for engine in info["engines"] for name in
                         [engine["name"]] * engine["simulated"] + [
                             one["name"] for one in engine.get("variants", []) if one["simulated"]]}
            self.assertFalse(simulated & {one["name"] for one in
                                          info["auto"][purpose]["candidates"]})
        self.assertIn("auto takes simd for collectives", tool("info", PENSTOCK_SPEED="none")[0])

    def test_a_list_is_right_if_one_of_it_is(self):
        tool("info", PENSTOCK_ENGINE="frobnicate,scalar")
        for value in ("frobnicate", "frobnicate,gpu", "simd,,scalar", "simd:fast"):
            out, _ = tool("info", status=1, PENSTOCK_ENGINE=value)
            self.assertRegex(out, r"wrong: PENSTOCK_ENGINE: engine ")
        out, err = tool("perf", "all_reduce", "-b", "64K", "-e", "64K", "-n", "2", "-w", "0",
                        PENSTOCK_ENGINE="frobnicate,fault:simd;lost=1,scalar")
        self.assertIn("scalar instead", err.replace("fault:simd;lost=1 instead", "scalar instead"))


class Plugins(ToolTest):
    def engines(self, **variables):
        out, _ = tool("info", "--json", **variables)
        return {engine["name"]: engine for engine in json.loads(out)["engines"]}

    def test_the_card_comes_as_a_plugin(self):
        self.assertIn(self.engines(PENSTOCK_PLUGINS="none")["card"]["state"],
                      ("not loaded", "not built"))
        plugin = os.path.join(os.path.dirname(TOOL), "plugins", "penstock-card.so")
        if not os.path.exists(plugin):
            self.skipTest("it was not built")
        found = self.engines()["card"]
        self.assertIn("a card over a bus: ", found["reason"])
        self.assertEqual(self.engines(PENSTOCK_PLUGINS=plugin)["card"], found)
        self.assertEqual(self.engines(PENSTOCK_PLUGINS=os.path.dirname(plugin))["card"], found)

    def test_what_is_no_plugin_is_told(self):
        _, err = tool("info", PENSTOCK_PLUGINS=self.path("none.so"))
        self.assertIn("none.so", err)


if __name__ == "__main__":
    main()
