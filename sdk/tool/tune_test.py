#!/usr/bin/env python3
"""penstock tune.

usage: tune_test.py --tool FILE [unittest arguments]
"""

import json
import os

from tool_case import ToolTest, main, tool


class Tune(ToolTest):
    FIELDS = ["inline_bytes", "one_shot_bytes", "sharded_bytes", "chunk_bytes", "chunks",
              "push", "expose_bytes", "stream_bytes"]

    def test_what_was_measured_is_kept_and_in_force(self):
        table = self.path("tuning.json")
        out, err = tool("tune", "--ranks", "2", "--samples", "1", "--file", table, "--json")
        entry = json.loads(out)
        self.assertEqual(entry["ranks"], 2)
        self.assertEqual(entry["machine"]["cpus"], os.cpu_count())
        self.assertEqual([*entry["tuning"], *entry["local"]], self.FIELDS)
        for field in ("inline_bytes", "one_shot_bytes", "chunks", "expose_bytes", "stream_bytes"):
            self.assertIn(f"penstock: tune: {field} ", err)
        with open(table, encoding="utf-8") as file:
            kept = json.load(file)
        self.assertEqual(kept["entries"], [entry])
        # What the file says is what a comm gets.
        kept["entries"][0]["tuning"]["chunks"] = 3
        self.path("tuning.json", json.dumps(kept))
        shown = json.loads(tool("tune", "--show", "--file", table, "--json")[0])
        self.assertEqual(shown["in_force"]["tuning"]["chunks"], 3)
        self.assertEqual(shown["entries"], kept["entries"])
        out, _ = tool("tune", "--show", PENSTOCK_TUNING=table, PENSTOCK_TUNING_SET="chunks=5")
        self.assertRegex(out, r"chunks +5 ")
        self.assertIn("measured with 2 ranks; PENSTOCK_TUNING_SET chunks=5", out)

    def test_without_a_table_it_is_what_is_built_in(self):
        out, _ = tool("tune", "--show", XDG_CONFIG_HOME=self.folder)
        self.assertIn("2 ranks: built in\n", out)
        for field in self.FIELDS:
            self.assertIn(f"  {field} ", out)

    def test_a_bad_table_is_refused_with_its_field(self):
        table = self.path("bad.json", '{"format": "penstock-tuning", "version": 1, "entries": [{}]}')
        for arguments in (["tune", "--show", "--file", table], ["tune", "--file", table]):
            self.assert_one_line(arguments, table, "entries[0].machine: it is missing")
        _, err = tool("run", "-n", "2", "--", "penstock", "perf", "barrier", status=2,
                      PENSTOCK_TUNING=table)
        self.assertIn("entries[0].machine: it is missing", err)
        self.assert_one_line(["tune", "--ranks", "1"], "1 is out of range; use 2..64")


if __name__ == "__main__":
    main()
