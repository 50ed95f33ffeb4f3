#!/usr/bin/env python3
"""Holds the HLS kernels against what Vitis HLS synthesises, and against their own declarations.

usage: check.py --folder hls

  includes    fixed-width integers, the vendor's three headers, host/descriptor, and one another
  words       no heap, exceptions, virtual functions, run-time types, floating point, and nothing of
              the standard library but its integers
  functions   none calls itself, by whatever way
  loops       `for` with a condition and braces, and LOOP_TRIPCOUNT with min and max at its beginning;
              no other kind
  pragmas     known ones; a pipeline has II 1; variables are named that the function has; a distance
              between iterations is one that a constant k...Distance of the function says
  interfaces  every argument of a kernel has its port, in the registers that penstock_hls.h documents;
              pointers have an m_axi bundle of their own
  dataflow    nothing but streams and stages; each stream has a depth, one writer and one reader

Prints "file:line: rule" for each finding, and ends with 1 if there is one, or if the folder holds
less than two kernels.
"""

import argparse
import os
import re
import sys

SYSTEM_INCLUDES = {"cstdint", "cstddef", "ap_int.h", "hls_burst_maxi.h", "hls_stream.h"}
STANDARD = {"uint8_t", "uint16_t", "uint32_t", "uint64_t", "int8_t", "int16_t", "int32_t", "int64_t",
            "size_t"}
FORBIDDEN = re.compile(
    r"\b(new|delete|malloc|calloc|realloc|alloca|throw|try|catch|virtual|dynamic_cast|typeid|"
    r"float|double|goto|asm|mutable|union|thread_local|volatile)\b|\bfree\s*\(|\[\s*[&=]?\s*\]\s*[({]")
PRAGMAS = {"INLINE", "PIPELINE", "UNROLL", "LOOP_TRIPCOUNT", "DATAFLOW", "INTERFACE", "DEPENDENCE",
           "ARRAY_PARTITION", "ARRAY_RESHAPE", "BIND_STORAGE", "BIND_OP", "DISAGGREGATE"}
FUNCTION = re.compile(r"^(?!using|namespace|struct|enum|static_assert|return|extern)"
                      r"(?:inline |static |constexpr )*[A-Za-z_][\w:]*(?:<[\w:, ]*>)?[&*]?\s+"
                      r"(\w+)\(", re.MULTILINE)
HEADER = "penstock_hls.h"


def blanked(text):
    """The text with comments and strings as blanks, and lines that a backslash joins as one; every
    character keeps its line."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())
    text = re.sub(r"//[^\n]*|/\*.*?\*/", blank, text, flags=re.DOTALL)
    text = re.sub(r'(?<!include )"(?:[^"\\\n]|\\.)*"', lambda m: '"' + " " * (len(m.group()) - 2) + '"',
                  text)
    return re.sub(r"\\\n", "  ", text)


def closing(text, start):
    """Where what opens at `start` closes."""
    pairs = {"(": ")", "{": "}"}
    depth = 0
    for at in range(start, len(text)):
        if text[at] == text[start]:
            depth += 1
        elif text[at] == pairs[text[start]]:
            depth -= 1
            if depth == 0:
                return at
    return len(text)


class Source:
    """One file: its text without comments, and its functions."""

    def __init__(self, folder, name):
        self.name = name
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            self.raw = file.read()
        self.text = blanked(self.raw)
        # Joined lines moved what follows them: numbers come from the text as it is.
        self.starts = [match.start() for match in re.finditer(r"^", self.raw, re.MULTILINE)]
        self.functions = {}
        for match in FUNCTION.finditer(self.text):
            end = closing(self.text, match.end() - 1)
            rest = re.match(r"\s*(?:const\s*)?\{", self.text[end + 1:])
            if rest:
                begin = end + rest.end()
                arguments = self.text[match.end():end]
                self.functions[match.group(1)] = (
                    match.start(), arguments, begin, closing(self.text, begin))

    def line(self, at):
        return sum(1 for start in self.starts if start <= at)

    def finding(self, at, rule):
        return f"{self.name}:{self.line(at)}: {rule}"


def check_words(source):
    for match in re.finditer(r'^#\s*include\s*([<"])([^>"]+)[>"]', source.text, re.MULTILINE):
        quote, name = match.groups()
        own = quote == '"' and (name.startswith("penstock/descriptor/") or
                                re.fullmatch(r"[a-z0-9_]+\.h", name) or
                                (name.startswith("plain/") and source.name == "platform.h"))
        if not own and not (quote == "<" and name in SYSTEM_INCLUDES):
            yield source.finding(match.start(), f"includes {name}")
    for match in FORBIDDEN.finditer(source.text):
        if source.name == "platform.h" and match.group().startswith("["):
            continue  # the macro of a stage, for plain C++
        yield source.finding(match.start(), f"'{match.group().strip()}' is not synthesised")
    for match in re.finditer(r"\bstd::(\w+)", source.text):
        if match.group(1) not in STANDARD:
            yield source.finding(match.start(), f"std::{match.group(1)} is not synthesised")


def check_loops(source):
    for match in re.finditer(r"\b(for|while|do)\b", source.text):
        if match.group(1) != "for":
            yield source.finding(match.start(), f"a loop with {match.group(1)}")
            continue
        opening = source.text.index("(", match.end())
        end = closing(source.text, opening)
        parts = source.text[opening + 1:end].split(";")
        if len(parts) != 3 or not parts[1].strip():
            yield source.finding(match.start(), "a loop without an end")
            continue
        body = re.match(r"\s*\{((?:\s*#pragma[^\n]*\n)*)", source.text[end + 1:])
        pragmas = body.group(1) if body else ""
        if not re.search(r"LOOP_TRIPCOUNT\s+min\s*=\s*\d+\s+max\s*=\s*\d+", pragmas):
            yield source.finding(match.start(), "a loop without LOOP_TRIPCOUNT min and max")


def check_pragmas(source, all_text):
    for match in re.finditer(r"^\s*#pragma\s+HLS\s+(\w+)([^\n]*)", source.text, re.MULTILINE):
        name, rest = match.groups()
        at = match.start(1)
        if name not in PRAGMAS:
            yield source.finding(at, f"a pragma that is not known here: {name}")
        if name == "PIPELINE" and not re.search(r"II\s*=\s*1\s*$", rest.strip()):
            yield source.finding(at, "a pipeline that does not say II = 1")
        holder = [(begin, body, end, arguments)
                  for begin, arguments, body, end in source.functions.values() if body < at < end]
        if not holder:
            yield source.finding(at, "a pragma outside of a function")
            continue
        _, body, end, arguments = holder[0]
        variable = re.search(r"variable\s*=\s*(\w+)", rest)
        if variable:
            outside = re.sub(r"#pragma[^\n]*", "", source.text[body:end]) + arguments
            if not re.search(rf"\b{variable.group(1)}\b", outside):
                yield source.finding(at, f"no variable {variable.group(1)}")
        # What is promised to the tool about a loop has to be what the loop does.
        distance = re.search(r"distance\s*=\s*(\d+)", rest)
        if distance:
            named = re.findall(r"\bk\w+Distance\b", source.text[body:end])
            values = [constant for name in named for constant in
                      re.findall(rf"constexpr u32 {name} = (\d+);", all_text)]
            if distance.group(1) not in values:
                yield source.finding(at, f"distance {distance.group(1)}, but constants say {values}")


def check_recursion(sources):
    calls = {}
    place = {}
    for source in sources:
        for name, (begin, _, body, end) in source.functions.items():
            calls[name] = set(re.findall(r"\b(\w+)\s*\(", source.text[body:end]))
            place[name] = source.finding(begin, f"{name} calls itself")
    for name in calls:
        reached, front = set(), calls[name] & calls.keys()
        while front:
            reached |= front
            front = set().union(*(calls[called] & calls.keys() for called in front)) - reached
        if name in reached:
            yield place[name]


def registers_of(arguments):
    """Name and offset of each argument: 64 bits take three words, 32 bits two."""
    offset = 0x10
    for argument in arguments.split(","):
        words = argument.split()
        wide = "*" in argument or "Port" in argument or "uint64_t" in argument
        yield words[-1].lstrip("*&"), wide, "*" in argument or "Port" in argument, offset
        offset += 12 if wide else 8


def check_interfaces(sources):
    header = next((source for source in sources if source.name == HEADER), None)
    kernels = re.findall(r"^void (penstock_hls_\w+)\(", header.text, re.MULTILINE) if header else []
    found = 0
    for source in sources:
        for name, (begin, arguments, body, end) in source.functions.items():
            if name not in kernels:
                continue
            found += 1
            text = source.text[body:end]
            pragmas = re.findall(r"#pragma HLS INTERFACE([^\n]*)", text)
            ports = {}
            for pragma in pragmas:
                fields = dict(re.findall(r"(\w+)\s*=\s*(\w+)", pragma))
                ports.setdefault(fields.get("port"), []).append(fields)
            documented = header.raw[:header.raw.index(f"void {name}(")]
            documented = documented[documented.rindex("argument "):]
            bundles = []
            for argument, _, memory, offset in registers_of(arguments):
                modes = {fields.get("mode"): fields for fields in ports.pop(argument, [])}
                if "s_axilite" not in modes:
                    yield source.finding(begin, f"{name}: {argument} has no s_axilite")
                if memory:
                    fields = modes.get("m_axi", {})
                    if fields.get("offset") != "slave" or "bundle" not in fields:
                        yield source.finding(begin, f"{name}: {argument} has no m_axi bundle at slave")
                    bundles.append(fields.get("bundle"))
                elif "m_axi" in modes:
                    yield source.finding(begin, f"{name}: {argument} is no memory")
                if not re.search(rf"^//   {argument}\s+{offset:#05x}\b", documented, re.MULTILINE):
                    yield header.finding(0, f"{name}: {argument} is at {offset:#05x}")
            if len(set(bundles)) != len(bundles):
                yield source.finding(begin, f"{name}: two arguments share a bundle")
            control = {fields.get("mode") for fields in ports.pop("return", [])}
            if control != {"s_axilite", "ap_ctrl_chain"}:
                yield source.finding(begin, f"{name}: control is not s_axilite and ap_ctrl_chain")
            for port in ports:
                yield source.finding(begin, f"{name}: has no argument {port}")
    if found < 2 or found != len(kernels):
        yield f"{HEADER}:1: {found} of {len(kernels)} kernels were found"


def check_dataflow(sources):
    depths = {}
    for source in sources:
        for alias, depth in re.findall(r"using (\w+)\s*=\s*hls::stream<[^;]*,\s*(\w+)>;", source.text):
            depths[alias] = depth
        for match in re.finditer(r"hls::stream<([^;>]*)>", source.text):
            if "," not in match.group(1):
                yield source.finding(match.start(), "a stream without a depth")
    regions = 0
    for source in sources:
        for name, (begin, arguments, body, end) in source.functions.items():
            text = source.text[body:end]
            if "#pragma HLS DATAFLOW" not in text:
                continue
            regions += 1
            streams = dict((variable, 0) for alias, variable in
                           re.findall(r"^\s*(\w+) (\w+)\(\"", text, re.MULTILINE) if alias in depths)
            stages = re.findall(r"PENSTOCK_HLS_STAGE\(\s*region,\s*(\w+)\(([^;]*)\)\);", text)
            for stage, passed in stages:
                for variable in streams:
                    streams[variable] += len(re.findall(rf"\b{variable}\b", passed))
            for variable, uses in streams.items():
                if uses != 2:
                    yield source.finding(begin, f"{name}: stream {variable} is at {uses} stages, not 2")
            left = re.sub(r"#pragma[^\n]*|^\s*\w+ \w+\(\"[^;]*;|PENSTOCK_HLS_\w+\([^;]*;", "", text,
                          flags=re.MULTILINE).strip(" {}\n")
            if left:
                yield source.finding(begin, f"{name}: more than streams and stages: {left[:40]}")
            if len(stages) < 2 or not streams:
                yield source.finding(begin, f"{name}: no region")
    if regions == 0:
        yield f"{HEADER}:1: no region of dataflow"


def check_folder(folder):
    names = sorted(name for name in os.listdir(folder)
                   if name.endswith((".h", ".cpp")) and not re.search(r"_test\.\w+$", name))
    sources = [Source(folder, name) for name in names]
    all_text = "".join(source.text for source in sources)
    findings = []
    for source in sources:
        findings += check_words(source)
        findings += check_loops(source)
        findings += check_pragmas(source, all_text)
    for check in (check_recursion, check_interfaces, check_dataflow):
        findings += check(sources)
    loops = sum(len(re.findall(r"\bfor\b", source.text)) for source in sources)
    return findings, len(sources), loops


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", required=True)
    options = parser.parse_args()
    findings, files, loops = check_folder(options.folder)
    for finding in findings:
        print(finding)
    print(f"{files} files and {loops} loops checked, {len(findings)} findings")
    return 1 if findings or loops == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
