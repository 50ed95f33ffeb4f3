#!/usr/bin/env python3
"""Feeds summary.py reports of ctest, and looks at what it counts."""

import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "summary.py")

PASSED = '<testcase name="a" status="run"/>'
FAILED = '<testcase name="b" status="fail"><failure message=""/></testcase>'
SKIPPED = ('<testcase name="c" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>'
           "</testcase>")
MISSING = ('<testcase name="d" status="notrun"><skipped message="Unable to find executable"/>'
           "</testcase>")
DISABLED = '<testcase name="e" status="disabled"/>'


def summary(cases, ctest_status=0, left=""):
    """Returns (exit status, last line) for a report of these cases; None is a missing report."""
    with tempfile.TemporaryDirectory() as folder:
        junit, behind = os.path.join(folder, "junit.xml"), os.path.join(folder, "left")
        if cases is not None:
            with open(junit, "w", encoding="utf-8") as file:
                file.write(f"<testsuite>{cases}</testsuite>")
        with open(behind, "w", encoding="utf-8") as file:
            file.write(left)
        result = subprocess.run(
            [sys.executable, SCRIPT, "--ctest-status", str(ctest_status), "--left-behind", behind,
             junit], capture_output=True, text=True, check=False)
        return result.returncode, result.stdout.strip().split("\n")[-1]


class Summary(unittest.TestCase):
    def test_counts(self):
        self.assertEqual(summary(PASSED), (0, "2 passed, 0 failed"))
        self.assertEqual(summary(PASSED + FAILED, 8), (1, "2 passed, 1 failed"))
        self.assertEqual(summary(PASSED + SKIPPED + DISABLED), (0, "2 passed, 0 failed"))

    def test_no_tests_is_a_failure(self):
        self.assertEqual(summary(""), (1, "1 passed, 1 failed"))
        self.assertEqual(summary(SKIPPED), (1, "1 passed, 1 failed"))

    def test_no_report_is_a_failure(self):
        self.assertEqual(summary(None), (1, "1 passed, 1 failed"))

    def test_missing_executable_is_a_failure(self):
        self.assertEqual(summary(PASSED + MISSING), (1, "2 passed, 1 failed"))

    def test_ctest_has_the_last_word(self):
        self.assertEqual(summary(PASSED, 8), (1, "2 passed, 1 failed"))

    def test_what_is_left_behind_is_a_failure(self):
        self.assertEqual(summary(PASSED, 0, "/dev/shm/penstock-1\n"), (1, "1 passed, 1 failed"))


if __name__ == "__main__":
    unittest.main()
