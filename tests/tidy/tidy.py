#!/usr/bin/env python3
"""Holds every tracked file against the rules of form that no compiler checks.

usage: tidy.py --root FOLDER

  code        at most 600 lines a file and 100 columns a line, no tabs
  text        no trailing blanks, a newline at the end, no conflict markers, UTF-8
  words       nothing unfinished or local: see FORBIDDEN
  scripts     a shell script that starts with #! is executable

Prints "file:line: rule" for each finding, and ends with 1 if there is one, or if no file was read.
"""

import argparse
import os
import re
import subprocess
import sys

MAX_LINES = 600
MAX_COLUMNS = 100

CODE = (".h", ".hpp", ".c", ".cc", ".cpp", ".cu", ".cl", ".sv", ".svh", ".v")
# Everything else that a person writes; data (vectors, corpora, traces) is left alone.
TEXT = CODE + (".py", ".sh", ".cmake", ".txt", ".json", ".in", ".map", ".yml", ".yaml", ".pml", ".1",
               ".3", ".7", ".tcl", ".ys", ".md")
NAMES = ("run", ".clang-format", ".clang-tidy", ".gitignore")

# Written so that this file does not contain what it forbids.
FORBIDDEN = [
    (re.compile(r"\b(FIXM[E]|XX[X]|HAC[K])\b"), "unfinished: finish it, or say what holds today"),
    (re.compile(r"\bTOD[O]\b"), "unfinished: finish it, or say what holds today"),
    (re.compile(r"(?<![\w.$])/(wor[k]|hom[e]|roo[t])/"), "a path of one machine"),
    (re.compile(r"(pyp[i]\.org|pythonhoste[d]\.org|debia[n]\.org|ubunt[u]\.com)|--(extra-)?index-ur[l]"),
     "the host of a package registry"),
    (re.compile(r"(?i)\b(issu[e]|ticke[t]|pull reques[t]|PR)\s+#?\d+"), "a reference to a tracker"),
    (re.compile(r"(?i)\b(this|my|the) (AI|chat|agen[t]) sessio[n]\b"), "not about the product"),
]


def tracked_files(root):
    """What git tracks, or, outside of a checkout, all that is not in build."""
    result = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, check=False)
    if result.returncode == 0 and result.stdout:
        return sorted(result.stdout.decode().rstrip("\0").split("\0"))
    paths = []
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in ("build", ".git", "__pycache__")]
        paths += [os.path.relpath(os.path.join(folder, file), root) for file in files]
    return sorted(paths)


def check_text(path, text):
    """Yields (line number, rule)."""
    code = path.endswith(CODE)
    lines = text.split("\n")
    if text and lines[-1] != "":
        yield len(lines), "no newline at the end"
    if code and len(lines) - 1 > MAX_LINES:
        yield len(lines) - 1, f"{len(lines) - 1} lines; at most {MAX_LINES}: split it"
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            yield number, "trailing blanks"
        if code and "\t" in line:
            yield number, "a tab"
        if code and len(line) > MAX_COLUMNS:
            yield number, f"{len(line)} columns; at most {MAX_COLUMNS}"
        if re.match(r"(<<<<<<<|>>>>>>>) ", line):
            yield number, "a conflict marker"
        for pattern, rule in FORBIDDEN:
            match = pattern.search(line)
            if match:
                yield number, f"'{match.group().strip()}': {rule}"


def check_tree(root):
    """Returns (findings, number of files read)."""
    findings, read = [], 0
    for path in tracked_files(root):
        full = os.path.join(root, path)
        if not (path.endswith(TEXT) or os.path.basename(path) in NAMES):
            continue
        if "/corpus/" in path or "/vectors/" in path or not os.path.isfile(full):
            continue
        with open(full, "rb") as file:
            data = file.read()
        read += 1
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            findings.append(f"{path}:1: not UTF-8")
            continue
        findings += [f"{path}:{number}: {rule}" for number, rule in check_text(path, text)]
        if text.startswith("#!") and path.endswith((".sh", "run")) and not os.access(full, os.X_OK):
            findings.append(f"{path}:1: starts with #! but is not executable")
    return findings, read


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", required=True)
    options = parser.parse_args()
    findings, read = check_tree(options.root)
    for finding in findings:
        print(finding)
    print(f"{read} files read, {len(findings)} findings")
    if read == 0:
        print("nothing was checked")
    return 1 if findings or read == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
