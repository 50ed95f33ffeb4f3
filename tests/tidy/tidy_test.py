#!/usr/bin/env python3
"""Feeds tidy.py what it has to refuse and what it has to accept."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tidy  # noqa: E402


def rules(path, text):
    return [rule for _, rule in tidy.check_text(path, text)]


class Tidy(unittest.TestCase):
    def test_clean(self):
        self.assertEqual(rules("a.cpp", "int a;\n" * tidy.MAX_LINES), [])
        self.assertEqual(rules("a.cpp", "/" * tidy.MAX_COLUMNS + "\n"), [])
        self.assertEqual(rules("README.md", "x" * 300 + "\n"), [])

    def test_bounds(self):
        self.assertEqual(len(rules("a.cpp", "int a;\n" * (tidy.MAX_LINES + 1))), 1)
        self.assertEqual(len(rules("a.h", "/" * (tidy.MAX_COLUMNS + 1) + "\n")), 1)
        # Columns are characters, not bytes.
        self.assertEqual(rules("a.h", "\u00e4" * tidy.MAX_COLUMNS + "\n"), [])

    def test_blanks(self):
        self.assertEqual(rules("a.cpp", "\tint a;\n"), ["a tab"])
        self.assertEqual(rules("a.py", "a = 1 \n"), ["trailing blanks"])
        self.assertEqual(rules("a.py", "a = 1"), ["no newline at the end"])

    def test_words(self):
        for text in ("// TO" + "DO: later", "// FIX" + "ME", "see /wo" + "rk/main", "see /ho" + "me/me",
                     "https://py" + "pi.org/simple", "fixes iss" + "ue #12", "see P" + "R 7"):
            self.assertEqual(len(rules("a.cpp", text + "\n")), 1, text)
        for text in ("a/work/b", "build/work/", "https://kubernetes.io", "issue the doorbell"):
            self.assertEqual(rules("a.cpp", text + "\n"), [], text)

    def test_tree(self):
        with tempfile.TemporaryDirectory() as root:
            self.assertEqual(tidy.check_tree(root), ([], 0))
            with open(os.path.join(root, "a.cpp"), "wb") as file:
                file.write(b"\xff\n")
            findings, read = tidy.check_tree(root)
            self.assertEqual((len(findings), read), (1, 1))


if __name__ == "__main__":
    unittest.main()
