#!/usr/bin/env python3
"""coverage.py on counts that were written here by hand."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "coverage.py")
SOURCE = """module m;
  always_ff @(posedge clk_i) begin
    if (a) b <= c;
    else d <= e;
    default: f <= g;
  end
endmodule
"""


class Coverage(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = os.path.realpath(self.folder.name)
        os.makedirs(os.path.join(self.root, "rtl", "sync"))
        os.makedirs(os.path.join(self.root, "data"))
        self.write("rtl/sync/m.sv", SOURCE)
        self.waive()

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, text):
        with open(os.path.join(self.root, name), "w", encoding="utf-8") as file:
            file.write(text)

    def waive(self, *waivers):
        self.write("waivers.json", json.dumps({"waivers": waivers}))

    def point(self, kind, line, column, name, lines):
        keys = {"f": os.path.join(self.root, "rtl/sync/m.sv"), "l": line, "n": column,
                "page": f"{kind}/m", "o": name, "S": lines}
        return "C '" + "".join(f"\1{key}\2{value}" for key, value in keys.items()) + "' "

    def data(self, name, *points):
        self.write(f"data/{name}.dat", "# SystemC::Coverage-3\n"
                   + "".join(f"{point}{count}\n" for point, count in points))

    def run_script(self, *arguments):
        result = subprocess.run(
            [sys.executable, SCRIPT, "--root", self.root, "--data", os.path.join(self.root, "data"),
             "--waivers", os.path.join(self.root, "waivers.json"),
             "--json", os.path.join(self.root, "out.json"), *arguments],
            capture_output=True, text=True, check=False)
        self.said = result.stdout + result.stderr
        return result.returncode

    def sums(self, kind):
        with open(os.path.join(self.root, "out.json"), encoding="utf-8") as file:
            figures = json.load(file)["blocks"]["sync"][kind]
        return figures["hit"], figures["total"]

    def counts(self, taken, otherwise, default, cover):
        return [(self.point("v_line", 2, 3, "block", "2"), 9),
                (self.point("v_branch", 3, 5, "if", "3"), taken),
                (self.point("v_branch", 3, 6, "else", "4"), otherwise),
                (self.point("v_line", 5, 5, "case", "5"), default),
                (self.point("v_user", 6, 3, "g__BRA__0__KET__", "6"), 1),
                (self.point("v_user", 6, 3, "g__BRA__1__KET__", "6"), cover),
                (self.point("v_toggle", 1, 3, "q[1]", ""), 0)]

    def test_all_tests_together_reach_everything(self):
        self.data("1", *self.counts(1, 0, 2, 0))
        self.data("2", *self.counts(0, 1, 0, 1))
        self.assertEqual(self.run_script(), 0, self.said)
        self.assertEqual(self.sums("lines"), (4, 4))
        self.assertEqual(self.sums("branches"), (2, 2))
        self.assertEqual(self.sums("covers"), (2, 2))
        self.assertEqual(self.sums("toggles"), (0, 1))

    def test_a_line_that_is_missed_is_named(self):
        self.data("1", *self.counts(1, 0, 1, 1))
        self.assertEqual(self.run_script(), 1)
        self.assertIn("not hit: rtl/sync/m.sv:4\n", self.said)
        self.assertEqual(self.sums("lines"), (3, 4))
        self.assertEqual(self.run_script("--minimum", "75"), 0, self.said)

    def test_each_turn_of_a_loop_is_a_cover_point(self):
        self.data("1", *self.counts(1, 1, 1, 0))
        self.assertEqual(self.run_script("--minimum", "0"), 1)
        self.assertIn("m.sv:6: cover g[1]", self.said)
        self.assertEqual(self.sums("covers"), (1, 2))

    def test_a_waiver_takes_a_line_out(self):
        self.waive({"file": "sync/m.sv", "text": "default: f", "reason": "a cannot be 2"})
        self.data("1", *self.counts(1, 1, 0, 1))
        self.assertEqual(self.run_script(), 0, self.said)
        self.assertIn("a cannot be 2", self.said)
        self.assertEqual(self.sums("lines"), (3, 3))

    def test_a_waiver_that_is_not_true_fails(self):
        self.data("1", *self.counts(1, 1, 1, 1))
        for text, reason in (("default: f", "r"), ("nowhere", "r"), ("<=", "r")):
            self.waive({"file": "sync/m.sv", "text": text, "reason": reason})
            self.assertEqual(self.run_script(), 1, text)
        self.data("1", *self.counts(1, 1, 0, 1))
        self.waive({"file": "sync/m.sv", "text": "default: f", "reason": ""})
        self.assertEqual(self.run_script(), 1)

    def test_what_no_test_simulates_fails(self):
        self.data("1", *self.counts(1, 1, 1, 1))
        self.write("rtl/sync/other.sv", SOURCE)
        self.assertEqual(self.run_script(), 1)
        self.assertIn("rtl/sync/other.sv", self.said)

    def test_nothing_measured_is_an_error(self):
        self.assertEqual(self.run_script(), 2)
        self.data("1")
        self.assertEqual(self.run_script(), 2)


if __name__ == "__main__":
    unittest.main()
