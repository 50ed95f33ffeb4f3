#!/usr/bin/env python3
"""Holds the table of layers.txt against the includes of a source tree.

usage: layering.py --root FOLDER --table FILE

Prints "file:line: rule" for each include that the table does not allow, and ends with 1 if there is
one, or if there was nothing to check.
"""

import argparse
import os
import re
import sys

SUFFIXES = (".h", ".hpp", ".c", ".cc", ".cpp", ".cxx", ".inc", ".ipp", ".cl", ".clh", ".cu", ".cuh",
            ".sv", ".svh", ".v", ".vh")
INCLUDE = re.compile(r'^\s*(?:#|`)\s*include\s*([<"])([^>"]+)[>"]')
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
LAYER = re.compile(r"penstock_layer\(\s*(\w+)([^)]*)\)")
KEYWORDS = ("DEPENDS", "SOURCES", "PUBLIC_LIBRARIES", "LIBRARIES", "DEFINITIONS")


class Table:
    """The units, what each may use (closed over what those use), and the places of outside headers."""

    def __init__(self, path):
        self.prefix = {}   # folder -> include prefix
        self.direct = {}   # folder -> list of folders
        self.tests = {}    # folder -> units that its tests use besides
        self.only = []     # (include prefix, list of folders)
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                words = line.split("#")[0].replace(":", " : ").split()
                if not words:
                    continue
                if words[0] == "unit" and len(words) >= 4 and words[3] == ":":
                    self.prefix[words[1]] = words[2]
                    self.direct[words[1]] = words[4:]
                elif words[0] == "tests" and len(words) >= 4 and words[2] == ":":
                    self.tests[words[1]] = words[3:]
                elif words[0] == "only" and len(words) >= 4 and words[2] == ":":
                    self.only.append((words[1], words[3:]))
                else:
                    raise ValueError(f"{path}:{number}: not a rule: {line.strip()}")
        for unit, uses in [*self.direct.items(), *self.tests.items()]:
            for used in uses:
                if used not in self.direct:
                    raise ValueError(f"{path}: {unit} uses {used}, which is no unit")

    def allowed(self, unit, test=False):
        """All that a unit, or a test of it, may use, itself included."""
        seen, todo = set(), [unit] + (self.tests.get(unit, []) if test else [])
        while todo:
            at = todo.pop()
            if at not in seen:
                seen.add(at)
                todo += self.direct[at]
        return seen

    def unit_of_path(self, path):
        """The unit with the longest folder that holds the path, or None."""
        held = [unit for unit in self.prefix if path == unit or path.startswith(unit + "/")]
        return max(held, key=len, default=None)

    def unit_of_include(self, name):
        held = [unit for unit, prefix in self.prefix.items() if name.startswith(prefix)]
        return max(held, key=lambda unit: len(self.prefix[unit]), default=None)


def is_test(path):
    return re.search(r"_test(_\w+)?\.\w+$", path) is not None


def includes_of(text):
    """Yields (line number, quote, name); a comment's lines stay counted."""
    text = COMMENT.sub(lambda match: "\n" * match.group().count("\n"), text)
    for number, line in enumerate(text.split("\n"), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1), match.group(2)


def check_include(table, path, quote, name):
    """Returns the rule that the include breaks, or None."""
    unit = table.unit_of_path(path)
    used = table.unit_of_include(name)
    if used is None and quote == '"':
        # Not by its public name, so relative to the file.
        target = os.path.normpath(os.path.join(os.path.dirname(path), name))
        used = table.unit_of_path(target)
        if used is None and target.startswith(".."):
            return f'"{name}" leaves the source tree'
    allowed = table.allowed(unit, is_test(path))
    if used is not None and used not in allowed:
        uses = " ".join(sorted(allowed - {unit})) or "nothing"
        return f"{unit} may use {uses}, but includes {name} of {used}"
    if not is_test(path):
        for prefix, folders in table.only:
            inside = any(path.startswith(folder + "/") for folder in folders)
            if name.startswith(prefix) and not inside:
                return f"{name} may be included in {' '.join(folders)} only"
    return None


def check_depends(table, path, text):
    """Yields (line number, rule) for each penstock_layer() whose DEPENDS is not the table's."""
    for match in LAYER.finditer(re.sub(r"#[^\n]*", "", text)):
        words, depends, keyword = match.group(2).split(), [], None
        for word in words:
            if word in KEYWORDS:
                keyword = word
            elif keyword == "DEPENDS":
                depends.append("host/" + word)
        unit = "host/" + match.group(1)
        number = text.count("\n", 0, text.find("penstock_layer(" + match.group(1))) + 1
        if unit not in table.direct:
            yield number, f"{unit} is not in the table"
        elif sorted(depends) != sorted(table.direct[unit]):
            yield number, f"DEPENDS of {unit} is {depends}, in the table {table.direct[unit]}"


def check_tree(root, table):
    """Returns (findings, number of includes, number of layers)."""
    findings, includes, layers = [], 0, 0
    tops = sorted({unit.split("/")[0] for unit in table.prefix})
    for top in tops:
        for folder, folders, files in os.walk(os.path.join(root, top)):
            folders.sort()
            for file in sorted(files):
                path = os.path.relpath(os.path.join(folder, file), root)
                is_cmake = file == "CMakeLists.txt"
                if not is_cmake and not file.endswith(SUFFIXES):
                    continue
                with open(os.path.join(root, path), encoding="utf-8", errors="replace") as handle:
                    text = handle.read()
                if is_cmake:
                    layers += len(LAYER.findall(text))
                    for number, rule in check_depends(table, path, text):
                        findings.append(f"{path}:{number}: {rule}")
                    continue
                if table.unit_of_path(path) is None:
                    findings.append(f"{path}:1: belongs to no unit of the table")
                    continue
                for number, quote, name in includes_of(text):
                    includes += 1
                    rule = check_include(table, path, quote, name)
                    if rule:
                        findings.append(f"{path}:{number}: {rule}")
    return findings, includes, layers


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", required=True)
    parser.add_argument("--table", required=True)
    options = parser.parse_args()
    findings, includes, layers = check_tree(options.root, Table(options.table))
    for finding in findings:
        print(finding)
    print(f"{includes} includes and {layers} layers checked, {len(findings)} findings")
    if includes == 0:
        print("nothing was checked")
    return 1 if findings or includes == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
