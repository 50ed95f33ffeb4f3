#!/usr/bin/env python3
"""What check.py has to refuse."""

import os
import subprocess
import sys
import tempfile
import unittest

CHECK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "check.py")

GOOD = r"""/* Counts to two.
 * Twins that must fail: BROKEN_LIMIT.
 */
byte count;
active proctype counter() {
  do
  :: count < 2 -> atomic { count++; printf("0 step\n") }
#ifdef BROKEN_LIMIT
  :: count == 2 -> atomic { count++; printf("0 slip\n") }
#endif
  :: count >= 2 -> break
  od;
  assert(count == 2)
}
"""


class Check(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def check(self, text, *options):
        model = os.path.join(self.folder.name, "small.pml")
        with open(model, "w", encoding="utf-8") as file:
            file.write(text)
        result = subprocess.run([sys.executable, CHECK, model, "--build",
                                 os.path.join(self.folder.name, "build"), *options],
                                capture_output=True, text=True, check=False)
        return result.returncode, result.stdout

    def test_a_model_that_holds_with_a_twin_that_fails(self):
        code, output = self.check(GOOD, "--update")
        self.assertEqual(code, 0, output)
        self.assertIn("small BROKEN_LIMIT: fails after 3 steps", output)
        with open(os.path.join(self.folder.name, "trails", "small.limit.txt"),
                  encoding="utf-8") as file:
            self.assertEqual(file.read(), "0 step\n0 step\n0 slip\n")
        self.assertEqual(self.check(GOOD)[0], 0)

    def test_a_trail_that_is_missing_or_another(self):
        code, output = self.check(GOOD)
        self.assertEqual(code, 1)
        self.assertIn("is missing", output)
        trails = os.path.join(self.folder.name, "trails")
        os.mkdir(trails)
        with open(os.path.join(trails, "small.limit.txt"), "w", encoding="utf-8") as file:
            file.write("0 step\n")
        code, output = self.check(GOOD)
        self.assertEqual(code, 1)
        self.assertIn("its trail is not the one", output)

    def test_a_model_that_fails(self):
        code, output = self.check(GOOD.replace("assert(count == 2)", "assert(count == 1)"),
                                  "--update")
        self.assertEqual(code, 1)
        self.assertIn("small as it stands: FAILED: it must hold", output)

    def test_a_model_that_blocks(self):
        code, output = self.check(GOOD.replace(":: count >= 2 -> break", ":: false -> break"),
                                  "--update")
        self.assertEqual(code, 1)
        self.assertIn("invalid end state", output)

    def test_a_twin_that_holds(self):
        code, output = self.check(GOOD.replace(":: count == 2 ->", ":: count == 7 ->"), "--update")
        self.assertEqual(code, 1)
        self.assertIn("BROKEN_LIMIT: FAILED: it must fail, but no assertion does", output)

    def test_what_is_never_reached(self):
        more = ":: count >= 2 -> break\n  :: count > 5 -> count = 0"
        code, output = self.check(GOOD.replace(":: count >= 2 -> break", more), "--update")
        self.assertEqual(code, 1)
        self.assertIn("never reached", output)

    def test_a_model_that_explores_nothing(self):
        code, output = self.check(GOOD[:GOOD.index("active")] + "#ifdef BROKEN_LIMIT\n#endif\n",
                                  "--update")
        self.assertEqual(code, 1)
        self.assertIn("FAILED", output)

    def test_forms(self):
        self.assertIn("no broken twin", self.check(GOOD.replace("BROKEN_", "OTHER_"))[1])
        unnamed = GOOD.replace("fail: BROKEN_LIMIT", "fail: ")
        self.assertIn("head comment names", self.check(unnamed)[1])
        self.assertIn("at most 150", self.check(GOOD + "\n" * 140)[1])


if __name__ == "__main__":
    unittest.main()
