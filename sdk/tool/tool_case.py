"""Runs the tool as a person would: what the tests of its subcommands share.

usage: <name>_test.py --tool FILE [unittest arguments: a class name, -v, ...]
"""

import glob
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest


def taken_option(name):
    """The value of an option that is not for unittest, taken from the command line."""
    if name not in sys.argv:
        sys.exit(f"usage: {sys.argv[0]} {name} VALUE [unittest arguments]")
    at = sys.argv.index(name)
    value = sys.argv[at + 1]
    del sys.argv[at:at + 2]
    return value


TOOL = os.path.abspath(taken_option("--tool"))
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}


def tool(*arguments, status=0, timeout=100, **environment):
    """Runs the tool; returns (stdout, stderr). Fails unless it ends with the status."""
    result = subprocess.run([TOOL, *arguments], capture_output=True, text=True, timeout=timeout,
                            env={**CLEAN, **environment}, check=False, stdin=subprocess.DEVNULL)
    if result.returncode != status:
        raise AssertionError(f"{' '.join(arguments)}: exit status {result.returncode}, not {status}"
                             f"\n{result.stdout[-2000:]}\n{result.stderr[-2000:]}")
    return result.stdout, result.stderr


def wait_until(condition, what, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.02)


def pools_of(pid):
    return glob.glob(f"/dev/shm/penstock-{os.getuid()}-{pid}-*")


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def hung(_signal, _frame):
    raise TimeoutError("the test hangs")


class ToolTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir="/dev/shm", prefix="tool-test-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        # A test that hangs fails by itself, with a traceback, and cleans up.
        signal.signal(signal.SIGALRM, hung)
        signal.alarm(120)
        self.addCleanup(signal.alarm, 0)

    def path(self, name, content=None):
        path = os.path.join(self.folder, name)
        if content is not None:
            with open(path, "wb") as file:
                file.write(content if isinstance(content, bytes) else content.encode())
        return path

    def assert_one_line(self, arguments, *expected, status=2):
        """The tool refuses: one line on stderr, nothing on stdout."""
        out, err = tool(*arguments, status=status)
        self.assertEqual(out, "", arguments)
        self.assertEqual(err.count("\n"), 1, err)
        self.assertRegex(err, r"^penstock: ")
        for text in expected:
            self.assertIn(text, err)


def main():
    unittest.main(module="__main__", verbosity=2)
