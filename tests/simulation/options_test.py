#!/usr/bin/env python3
"""penstock-sim's options, and that what it says of a failure brings it back.

usage: options_test.py PROGRAM
"""

import json
import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop(1)


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False,
                          timeout=60)


class Options(unittest.TestCase):
    def test_help_and_list(self):
        self.assertIn("--scenario", run("--help").stdout)
        names = [line.split()[0] for line in run("--list").stdout.splitlines()]
        self.assertGreaterEqual(len(names), 20)
        self.assertIn("all_reduce", names)
        self.assertEqual(len(names), len(set(names)))

    def test_nonsense_is_refused(self):
        for arguments in (["--scenario", "nothing"], ["--seed", "x"], ["--seeds", "0"],
                          ["--ranks", "17"], ["--ranks"], ["--whatever"], ["--drop", "fence"]):
            result = run(*arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertTrue(result.stderr.startswith("penstock-sim: "), result.stderr)

    def test_a_trace_goes_to_standard_error(self):
        result = run("--scenario", "fence", "--seed", "3", "--trace")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("write_back", result.stderr)
        self.assertGreater(len(result.stderr.splitlines()), 500)

    def test_a_failure_is_replayed_by_its_line(self):
        # Without any fence there are failures, whatever else is right.
        report = json.loads(run("--scenario", "fence", "--seeds", "5", "--sites", "--json").stdout)
        addresses = {site["callers"][0] for site in report["sites"]
                     if site["primitive"] == "write_back"}
        self.assertGreater(len(addresses), 0)
        drops = ",".join(f"any@{address}" for address in addresses)
        failed = run("--scenario", "fence", "--seeds", "100", "--json", "--drop", drops)
        self.assertEqual(failed.returncode, 1)
        result = json.loads(failed.stdout)["results"][0]
        self.assertGreater(result["failed"], 0)
        replay = result["failures"][0]["replay"].split()
        self.assertEqual(replay[0], "--scenario")
        again = run(*replay, "--drop", drops)
        self.assertEqual(again.returncode, 1)
        self.assertIn("FAILED penstock-sim " + " ".join(replay), again.stdout)
        self.assertIn(result["failures"][0]["failure"], again.stdout)
        self.assertEqual(run(*replay).returncode, 0)


if __name__ == "__main__":
    unittest.main()
