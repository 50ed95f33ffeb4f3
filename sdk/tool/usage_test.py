#!/usr/bin/env python3
"""Help, manual pages, and what is said about bad usage.

usage: usage_test.py --tool FILE [unittest arguments]
"""

import os
import re

from tool_case import ToolTest, main, tool


class Usage(ToolTest):
    COMMANDS = ["version", "info", "pool", "pool create", "pool info", "pool check", "pool destroy",
                "pool list", "run", "trace", "trace merge", "perf", "tune", "plan", "replay", "explain",
                "conformance", "vectors"]

    def test_every_help_has_an_example(self):
        for command in self.COMMANDS:
            out, _ = tool(*command.split(), "--help")
            self.assertIn("Example: ", out, command)
            self.assertIn("--help", out, command)

    def test_manual_pages_name_every_option(self):
        man = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "man")
        for command in self.COMMANDS[1:]:
            page = os.path.join(man, f"penstock-{command.split()[0]}.1")
            with open(page, encoding="utf-8") as file:
                text = file.read().replace("\\-", "-")
            for option in set(re.findall(r"--[a-z][a-z_-]+", tool(*command.split(), "--help")[0])):
                if option != "--help":
                    self.assertIn(option, text, page)

    def test_version(self):
        out, _ = tool("version")
        self.assertRegex(out, r"^penstock \d+\.\d+\.\d+\n$")
        self.assertEqual(tool("--version")[0], out)

    def test_bad_usage_is_one_line(self):
        for arguments, text in [
                ([], "subcommand"),
                (["frobnicate"], "there is no subcommand 'frobnicate'"),
                (["pool", "frobnicate"], "there is no subcommand 'frobnicate'"),
                (["plan", "all_reduce", "--frobnicate"], "--frobnicate"),
                (["plan", "all_reduce", "--ranks", "-1"], "'-1' is not a whole number; use 1..64"),
                (["plan", "all_reduce", "--ranks", "0"], "0 is out of range; use 1..64"),
                (["plan", "all_reduce", "--ranks", "65"], "65 is out of range; use 1..64"),
                (["plan", "all_reduce", "--ranks", "99999999999999999999"], "out of range"),
                (["plan", "all_reduce", "--ranks", "3.5"], "'3.5' is not a whole number"),
                (["plan", "all_reduce", "--ranks", ""], "''"),
                (["plan", "all_reduce", "--size", "-5"], "-5"),
                (["plan", "all_reduce", "--size", "1X"], "1X"),
                (["plan", "all_reduce", "--size", "99999999999G"], "99999999999G"),
                (["plan", "all_reduce", "--type", "f99"], "there is no type 'f99'"),
                (["plan", "all_reduce", "--format", "xml"], "text, json or chrome"),
                (["plan", "all_reduce", "--algorithm", "magic"], "magic"),
                (["plan", "frobnicate"], "all_reduce"),
                (["plan", "broadcast", "--ranks", "2", "--root", "2"], "root"),
                (["plan"], "no COLLECTIVE given"),
                (["perf"], "COLLECTIVE is required"),
                (["perf", "frobnicate"], "all_reduce"),
                (["perf", "all_reduce", "-b", "4K", "-e", "1K"], "smaller than -b"),
                (["perf", "all_reduce", "-f", "1"], "'1' is not a number in 1.001"),
                (["perf", "all_reduce", "-f", "nan"], "'nan'"),
                (["perf", "all_reduce", "-n", "-3"], "'-3' is not a whole number"),
                (["perf", "all_reduce", "-d", "f99"], "there is no type 'f99'"),
                (["perf", "all_reduce", "-o", "xor"], "there is no operation 'xor'"),
                (["perf", "broadcast", "-r", "1"], "the ranks are 0..0"),
                (["perf", "send_recv"], "two ranks"),
                (["run", "-n", "4"], "no command given"),
                (["run", "-n", "65", "--", "true"], "65 is out of range"),
                (["run", "-n", "2", "--", "/no/such/program"], "cannot run '/no/such/program'"),
                (["run", "--pool", "/no/such/pool", "--", "true"], "/no/such/pool"),
                (["run", "--pool-size", "1K", "--", "true"], "1K is out of range"),
                (["pool"], "subcommand"),
                (["pool", "create"], "SPEC is required"),
                (["pool", "create", "/no/such/folder/pool"], "/no/such/folder/pool"),
                (["pool", "create", self.path("p"), "--mode", "999"], "'999' is not a mode"),
                (["pool", "create", self.path("p"), "--devices", "17"], "17 is out of range"),
                (["pool", "info", self.path("none")], "none"),
                (["pool", "destroy", self.path("none")], "none"),
                (["replay"], "no trace given"),
                (["replay", "--synthetic", "--policy", "frobnicate"], "best-fit"),
                (["replay", "--synthetic", "--engine", "frobnicate"], "frobnicate"),
                (["replay", "--synthetic", "--inflate", "-1"], "'-1'"),
                (["replay", "--synthetic", "--nodes", "x"], "leave out --nodes"),
                (["explain", "--cluster", self.path("none"), "--all-pending"], "none"),
                (["explain", "--cluster", "x"], "--pod or --all-pending"),
                (["conformance", "--engine", "frobnicate"], "scalar"),
                (["conformance", "--engine", "simd", "--bus", "verilator"], "engine card"),
        ]:
            with self.subTest(arguments=arguments):
                self.assert_one_line(arguments, text)

    def test_wrong_variables_are_named(self):
        out, _ = tool("info", status=1, PENSTOCK_WAIT="maybe", PENSTOCK_TIMEOUT_MS="-1",
                      PENSTOCK_RANK="3", PENSTOCK_SIZE="2", PENSTOCK_ENGINE="frobnicate",
                      PENSTOCK_BLOCK_BYTES="lots", PENSTOCK_COHERENCE="maybe")
        for text in ("PENSTOCK_WAIT=maybe", "PENSTOCK_TIMEOUT_MS=-1", "PENSTOCK_RANK", "frobnicate",
                     "lots", "PENSTOCK_COHERENCE"):
            self.assertRegex(out, rf"wrong: .*{text}")
        for name, value in (("PENSTOCK_WAIT", "maybe"), ("PENSTOCK_TIMEOUT_MS", "0"),
                            ("PENSTOCK_ENGINE", "frobnicate"), ("PENSTOCK_BLOCK_BYTES", "1"),
                            ("PENSTOCK_POOL", "/no/such/pool"), ("PENSTOCK_POOL_BYTES", "3"),
                            ("PENSTOCK_COHERENCE", "maybe"), ("PENSTOCK_RANK", "7")):
            _, err = tool("perf", "barrier", status=2, **{name: value})
            self.assertEqual(err.count("\n"), 1, err)
            self.assertIn(value, err)


if __name__ == "__main__":
    main()
