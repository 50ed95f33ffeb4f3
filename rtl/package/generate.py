#!/usr/bin/env python3
"""Writes penstock_pkg.sv from the headers of host/descriptor, or says whether it is current.

usage: generate.py --headers FOLDER --package FILE [--cc COMPILER] [--check]

The names come from the headers' text: enum constants, object-like macros that are whole numbers,
structs with their members. The values come from the C compiler: a program that includes the headers
prints them. Names lose the prefix PENSTOCK_ (penstock_). A struct's member gives AT_<STRUCT>_<MEMBER>
in bytes, the struct SIZE_<STRUCT>, an array member COUNT_<STRUCT>_<MEMBER> besides.

With --check nothing is written; ends with 1 if the file is not what would be written.
"""

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile

HEADERS = ("address.h", "types.h", "descriptor.h", "node_table.h")

FUNCTIONS = """\
  // Bytes of one element; 0 for a value that is no type.
  function automatic logic [3:0] type_size(input logic [7:0] kind);
    case (kind)
{sizes}
      default: type_size = 4'd0;
    endcase
  endfunction
"""


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def enums_of(text):
    """Yields (enum's name, [constant])."""
    for name, body in re.findall(r"\benum\s+(\w+)\s*\{(.*?)\}\s*;", text, flags=re.S):
        yield name, re.findall(r"\b(PENSTOCK_\w+)\s*(?==|,|$)", re.sub(r"=[^,]*", "=", body))


def macros_of(text):
    """Object-like macros with a value, in order."""
    joined = text.replace("\\\n", " ")
    return [name for name, value in re.findall(r"^#define\s+(PENSTOCK_\w+)[ \t]+(.+)$", joined,
                                               flags=re.M)
            if not name.endswith("_H_") and "__attribute__" not in value]


def structs_of(text):
    """Yields (struct's name, [(member, is an array)])."""
    for name, body in re.findall(r"\bstruct\s+(\w+)\s*\{(.*?)\}\s*;", text, flags=re.S):
        members = []
        for declaration in body.split(";"):
            match = re.search(r"(\w+)\s*(\[[^\]]*\])?\s*$", declaration)
            if declaration.strip():
                members.append((match.group(1), match.group(2) is not None))
        yield name, members


def program_of(sections):
    """The C program that prints "kind name value" for every name."""
    lines = ["#include <stddef.h>", "#include <stdio.h>"]
    lines += [f'#include "penstock/descriptor/{header}"' for header in HEADERS]
    lines += ["#define NUMBER(name) _Generic((name), float: 0, double: 0, default: \\",
              '  printf("number %s %llu\\n", #name, (unsigned long long)(name)))',
              "int main(void) {"]
    for _, names, structs in sections:
        lines += [f"  NUMBER({name});" for name in names]
        for struct, members in structs:
            lines.append(f'  printf("size {struct} %zu\\n", sizeof(struct {struct}));')
            for member, array in members:
                lines.append(f'  printf("at {struct}.{member} %zu\\n", '
                             f"offsetof(struct {struct}, {member}));")
                if array:
                    lines.append(f'  printf("count {struct}.{member} %zu\\n", '
                                 f"sizeof(((struct {struct}*)0)->{member}) / "
                                 f"sizeof(((struct {struct}*)0)->{member}[0]));")
    for type_name in [name for _, names, _ in sections for name in names if is_type(name, sections)]:
        lines.append(f'  printf("bytes {type_name} %u\\n", penstock_type_size({type_name}));')
    return "\n".join(lines + ["  return 0;", "}", ""])


def is_type(name, sections):
    return any(title == "types.h: enum penstock_type" and name in names and
               not name.endswith("_COUNT") for title, names, _ in sections)


def read_sections(folder):
    sections = []
    for header in HEADERS:
        with open(os.path.join(folder, header), encoding="utf-8") as file:
            text = without_comments(file.read())
        macros = macros_of(text)
        if macros:
            sections.append((f"{header}: numbers", macros, []))
        sections += [(f"{header}: enum {name}", names, []) for name, names in enums_of(text)]
        sections += [(f"{header}: struct {name}", [], [(name, members)])
                     for name, members in structs_of(text)]
    return sections


def evaluate(sections, folder, compiler):
    """Returns {(kind, name): value} as the compiler has it."""
    with tempfile.TemporaryDirectory() as work:
        os.mkdir(os.path.join(work, "penstock"))
        os.symlink(os.path.abspath(folder), os.path.join(work, "penstock", "descriptor"))
        source, binary = os.path.join(work, "values.c"), os.path.join(work, "values")
        with open(source, "w", encoding="utf-8") as file:
            file.write(program_of(sections))
        # descriptor.c has the sizes of the types.
        subprocess.run([compiler, "-std=gnu11", "-w", "-I", work, source,
                        os.path.join(folder, "descriptor.c"), "-o", binary], check=True)
        output = subprocess.run([binary], check=True, capture_output=True, text=True).stdout
    values = {}
    for line in output.splitlines():
        kind, name, value = line.split()
        values[kind, name] = int(value)
    return values


def constant(name, value):
    """Small numbers have no width of their own, so that they take that of their neighbour."""
    if value < 1 << 31:
        return f"  localparam {name} = {value};"
    return f"  localparam [63:0] {name} = 64'h{value:016x};"


def short(name):
    return re.sub("^penstock_", "", name, flags=re.I).upper()


def section_lines(names, structs, values):
    lines = [constant(short(name), values["number", name])
             for name in names if ("number", name) in values]
    for struct, members in structs:
        lines.append(constant(f"SIZE_{short(struct)}", values["size", struct]))
        for member, array in members:
            key = f"{struct}.{member}"
            label = f"{short(struct)}_{member.upper()}"
            lines.append(constant(f"AT_{label}", values["at", key]))
            if array:
                lines.append(constant(f"COUNT_{label}", values["count", key]))
    return lines


def package_text(sections, values):
    lines = ["// The numbers of host/descriptor: opcodes, fields, types, limits, layouts.",
             "// Generated from its headers by generate.py; change those, and run it again.",
             "`default_nettype none", "",
             "// No block needs them all.",
             "/* verilator lint_off UNUSEDPARAM */", "package penstock_pkg;"]
    for title, names, structs in sections:
        body = section_lines(names, structs, values)
        if body:
            lines += [f"  // {title}"] + body + [""]
    sizes = "\n".join(f"      penstock_pkg::{short(name)}: type_size = 4'd{value};"
                      for (kind, name), value in values.items() if kind == "bytes")
    lines += FUNCTIONS.format(sizes=sizes).splitlines()
    return "\n".join(lines + ["endpackage", "/* verilator lint_on UNUSEDPARAM */", "",
                               "`default_nettype wire", ""])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--headers", required=True)
    parser.add_argument("--package", required=True)
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    sections = read_sections(options.headers)
    text = package_text(sections, evaluate(sections, options.headers, options.cc))
    if not options.check:
        with open(options.package, "w", encoding="utf-8") as file:
            file.write(text)
        return 0
    with open(options.package, encoding="utf-8") as file:
        found = file.read()
    sys.stdout.writelines(difflib.unified_diff(found.splitlines(True), text.splitlines(True),
                                               options.package, "what generate.py gives"))
    if found != text:
        print(f"{options.package} is not current: run rtl/package/generate.py")
        return 1
    print(f"{options.package} is current: {text.count('localparam')} numbers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
