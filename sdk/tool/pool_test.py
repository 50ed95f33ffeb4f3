#!/usr/bin/env python3
"""penstock pool: create, info, check, destroy, list.

usage: pool_test.py --tool FILE [unittest arguments]
"""

import json
import os
import random
import struct
import subprocess

from tool_case import CLEAN, TOOL, ToolTest, main, pools_of, tool, wait_until


class Pool(ToolTest):
    def test_life(self):
        spec = self.path("pool")
        made = json.loads(tool("pool", "create", spec, "--devices", "2", "--size", "4M",
                               "--mode", "640", "--json")[0])
        self.assertEqual([device["path"] for device in made["devices"]], [spec + ".0", spec + ".1"])
        self.assertEqual(os.path.getsize(spec + ".1"), 4 << 20)
        self.assertEqual(os.stat(spec + ".0").st_mode & 0o777, 0o640)
        self.assertIn("no regions", tool("pool", "info", spec)[0])
        self.assertIn("is sound", tool("pool", "check", spec, "--reclaim")[0])
        self.assert_one_line(["pool", "create", spec, "--devices", "2", "--size", "4M"], spec)
        tool("pool", "destroy", spec)
        self.assertEqual(os.listdir(self.folder), [])

    def test_what_is_no_pool(self):
        noise = random.Random(1).randbytes(4 << 20)
        sound = self.path("sound")
        tool("pool", "create", sound, "--size", "4M")
        with open(sound, "rb") as file:
            image = file.read()
        truncated = self.path("truncated", image[:1 << 20])
        other = self.path("other", image[:8] + struct.pack("<I", 77) + image[12:])
        flipped = self.path("flipped", image[:40] + b"\xff" + image[41:])
        for path, text in ((self.path("noise", noise), "is no pool"),
                           (self.path("empty", b""), "empty"),
                           (self.path("short", b"PENS"), "short"),
                           (truncated, "truncated"), (other, "77"), (flipped, "checksum")):
            for action in ("info", "check"):
                with self.subTest(path=path, action=action):
                    self.assert_one_line(["pool", action, path], text)
            with self.subTest(path=path, action="perf"):
                self.assertIn(text, tool("perf", "barrier", status=2, PENSTOCK_POOL=path)[1])

    def test_findings_give_status_1(self):
        spec = self.path("pool")
        tool("pool", "create", spec, "--size", "4M")
        with open(spec, "r+b") as file:
            file.seek(72)
            table, = struct.unpack("<Q", file.read(8))
            file.seek(table)
            file.write(b"\x55" * 128)
        out, _ = tool("pool", "check", spec, status=1)
        self.assertNotIn("is sound", out)
        self.assertTrue(json.loads(tool("pool", "check", spec, "--json", status=1)[0])["findings"])

    def test_list_and_busy(self):
        run = subprocess.Popen([TOOL, "run", "-n", "1", "--pool-size", "2M", "--", "sleep", "60"],
                               env=CLEAN)
        self.addCleanup(run.wait)
        self.addCleanup(run.terminate)
        wait_until(lambda: pools_of(run.pid), "the pool of the run")
        spec = pools_of(run.pid)[0]

        def listed():
            entries = json.loads(tool("pool", "list", "--json")[0])
            return [entry for entry in entries if entry["spec"] == spec and run.pid in entry["pids"]]
        wait_until(listed, "the pool in the list")
        self.assertEqual(listed()[0]["state"], "temporary, in use")
        self.assertEqual(listed()[0]["bytes"], 2 << 20)
        self.assert_one_line(["pool", "destroy", spec], str(run.pid))
        self.assertTrue(os.path.exists(spec))


if __name__ == "__main__":
    main()
