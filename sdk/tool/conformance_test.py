#!/usr/bin/env python3
"""penstock conformance.

usage: conformance_test.py --tool FILE [unittest arguments]
"""

import json

from tool_case import ToolTest, main, tool


class Conformance(ToolTest):
    def test_quick(self):
        out, _ = tool("conformance", "--engine", "scalar", "--quick")
        self.assertIn("REDUCE sum", out)
        reports = json.loads(tool("conformance", "--engine", "scalar", "--quick", "--json")[0])
        self.assertGreater(len(reports[0]["rows"]), 70)
        self.assertEqual((reports[0]["name"], reports[0]["state"]), ("scalar", "ran"))
        # An engine that fails its third descriptor is not conforming.
        out, _ = tool("conformance", "--engine", "fault:scalar;fail=3:internal", "--quick", status=1)
        self.assertRegex(out, "(?i)fail")

    def test_all_is_one_table(self):
        # Without plugins: what they bring is listed with the reason.
        out, err = tool("conformance", "--engine", "all", "--quick", PENSTOCK_PLUGINS="none")
        lines = out.splitlines()
        self.assertRegex(lines[0], r"^operation +simd +scalar .*card:verilator")
        cells = {line.split("  ")[0]: line.split()[1:] for line in lines[2:]}
        self.assertEqual(cells["COPY"][:3], ["pass", "pass", "-"])
        self.assertRegex(out, r"\nnot (built|loaded) on .*: ")
        self.assertRegex(lines[-1], r"^all conform: \d+ comparisons on simd, scalar$")
        for name in ("simd", "scalar"):
            self.assertRegex(err, rf"conformance: {name} conforms after \d")
        columns = json.loads(tool("conformance", "--engine", "all", "--quick", "--json",
                                  PENSTOCK_PLUGINS="none")[0])
        self.assertEqual([column["state"] for column in columns[:2]], ["ran", "ran"])
        self.assertGreater(columns[0]["comparisons"], 100000)
        self.assertNotIn("rows", columns[2])
        self.assertTrue(columns[2]["reason"])

    def test_an_engine_that_does_not_start_has_failed(self):
        self.assert_one_line(["conformance", "--engine", "simd:fast"], "takes no argument")


if __name__ == "__main__":
    main()
