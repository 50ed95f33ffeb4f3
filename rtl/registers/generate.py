#!/usr/bin/env python3
"""Makes the register map's package, C header and page out of penstock.rdl.

usage: generate.py --venv FOLDER [--check] [--root FOLDER]

systemrdl-compiler comes from the virtual environment FOLDER, which is made if it is not there, out
of requirements.txt. With --check nothing is written: ends with 1 if a file is not what would be
written, and with 77 (which ctest takes for "skipped") if the environment cannot be made.
"""

import argparse
import difflib
import os
import re
import subprocess
import sys
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77
FROM = "rtl/registers/penstock.rdl by generate.py"


def environment(folder):
    """The Python of the virtual environment, or None where it can't be made."""
    python = os.path.join(folder, "bin", "python")
    made = os.path.join(folder, "made-of.txt")
    requirements = os.path.join(HERE, "requirements.txt")
    with open(requirements, encoding="utf-8") as file:
        wanted = file.read()
    if os.path.exists(made):
        with open(made, encoding="utf-8") as file:
            if file.read() == wanted:
                return python
    # The interpreter of the system: another one may have no venv, and what it has is its own.
    base = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
    for command in ([base, "-m", "venv", "--clear", folder],
                    [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps",
                     "--retries", "1", "--timeout", "20", "-r", requirements]):
        try:
            result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
        except (OSError, subprocess.TimeoutExpired) as error:
            print(f"{' '.join(command)}: {error}")
            return None
        if result.returncode != 0:
            print(f"{' '.join(command)}:\n{result.stdout}{result.stderr}")
            return None
    with open(made, "w", encoding="utf-8") as file:
        file.write(wanted)
    return python


# ---- the map as plain records ---------------------------------------------------------------------


def words(text):
    return " ".join((text or "").split())


def field_record(field):
    access = {"r": "read", "rw": "read, write", "w": "write"}[field.get_property("sw").name]
    if field.get_property("onwrite") is not None:
        access = "read, 1 clears"
    encode = field.get_property("encode")
    return {"name": field.inst_name, "low": field.low, "width": field.width, "access": access,
            "desc": words(field.get_property("desc", default="")),
            "reset": field.get_property("reset") or 0,
            "encode": encode.type_name if encode is not None else None}


def register_record(node):
    fields = [field_record(field) for field in node.fields()]
    reset = sum(field["reset"] << field["low"] for field in fields)
    return {"name": node.inst_name, "offset": node.raw_address_offset, "fields": fields,
            "desc": words(node.get_property("desc", default="")), "reset": reset,
            "plain": len(fields) == 1 and fields[0]["width"] == 32,
            "count": node.array_dimensions[0] if node.is_array else 1}


def read_map(path):
    """Returns (registers, groups, enums)."""
    from systemrdl import RDLCompiler  # pylint: disable=import-outside-toplevel
    from systemrdl.node import RegNode  # pylint: disable=import-outside-toplevel

    compiler = RDLCompiler()
    compiler.compile_file(path)
    top = compiler.elaborate().top
    registers, groups, enums = [], [], {}
    for node in top.children(unroll=False):
        if isinstance(node, RegNode):
            registers.append(register_record(node))
        else:
            dimensions = node.array_dimensions
            strides = [node.array_stride]
            for size in reversed(dimensions[1:]):
                strides.insert(0, strides[0] * size)
            groups.append({"name": node.inst_name, "offset": node.raw_address_offset,
                           "counts": dimensions, "strides": strides,
                           "registers": [register_record(child)
                                         for child in node.children(unroll=False)]})
    for group in [top] + list(top.children(unroll=False)):
        registers_of = [group] if isinstance(group, RegNode) else group.registers(unroll=False)
        for node in registers_of:
            for field in node.fields():
                encode = field.get_property("encode")
                if encode is not None:
                    enums[encode.type_name] = [(entry.name, entry.value,
                                                words(entry.rdl_desc or "")) for entry in encode]
    return registers, groups, enums


def everything(registers, groups):
    """Yields (prefix, register) for each register, those of groups with the group's name."""
    for register in registers:
        yield "", register
    for group in groups:
        for register in group["registers"]:
            yield group["name"] + "_", register


# ---- SystemVerilog --------------------------------------------------------------------------------


def package_text(registers, groups, enums):
    lines = ["// The card's registers: byte offsets, fields, resets.", f"// Generated from {FROM}.",
             "`default_nettype none", "", "// No block needs them all.",
             "/* verilator lint_off UNUSEDPARAM */", "package penstock_registers_pkg;"]
    for name, entries in enums.items():
        lines += [f"  localparam [7:0] {name.upper()}_{entry} = 8'd{value};"
                  for entry, value, _ in entries] + [""]
    for group in groups:
        lines.append(f"  localparam [15:0] {group['name']} = 16'h{group['offset']:04x};")
        for level, (count, stride) in enumerate(zip(group["counts"], group["strides"])):
            suffix = "" if level == 0 else f"{level + 1}"
            lines.append(f"  localparam {group['name']}_COUNT{suffix} = {count};")
            lines.append(f"  localparam {group['name']}_STRIDE{suffix} = {stride};")
    lines.append("")
    for prefix, register in everything(registers, groups):
        name = prefix + register["name"]
        lines.append(f"  localparam [15:0] {name}_AT = 16'h{register['offset']:04x};")
        if register["count"] > 1:
            lines.append(f"  localparam {name}_COUNT = {register['count']};")
        if register["reset"]:
            lines.append(f"  localparam [31:0] {name}_RESET = 32'h{register['reset']:08x};")
        for field in [] if register["plain"] else register["fields"]:
            lines.append(f"  localparam {name}_{field['name'].upper()}_LSB = {field['low']};")
            lines.append(f"  localparam {name}_{field['name'].upper()}_WIDTH = {field['width']};")
    return "\n".join(lines + ["endpackage", "/* verilator lint_on UNUSEDPARAM */", "",
                              "`default_nettype wire", ""])


# ---- C --------------------------------------------------------------------------------------------


def comment(text, indent=""):
    wrapped = textwrap.wrap(text, 94 - len(indent))
    return [f"{indent}{'/*' if i == 0 else ' *'} {line}{' */' if i == len(wrapped) - 1 else ''}"
            for i, line in enumerate(wrapped)]


def header_text(registers, groups, enums):
    guard = "PENSTOCK_DESCRIPTOR_REGISTER_MAP_H_"
    lines = comment("The card's registers: byte offsets in its register space, fields, and the values "
                    "that they have after reset. All are 32 bits wide; what is 64 bits wide has a LO "
                    f"and a HI. C99. Generated from {FROM}; rtl/registers/registers.md is the same as "
                    "a page.")
    lines += [f"#ifndef {guard}", f"#define {guard}", ""]
    for name, entries in enums.items():
        lines += [f"enum penstock_{name} {{"]
        for index, (entry, value, desc) in enumerate(entries):
            comma = "," if index + 1 < len(entries) else ""
            lines += comment(desc, "  ") + [f"  PENSTOCK_{name.upper()}_{entry} = {value}{comma}"]
        lines += ["};", ""]
    for group in groups:
        name = "PENSTOCK_REGISTER_" + group["name"]
        what = "".join(f"[{count}]" for count in group["counts"])
        lines += comment(f"{group['name']}{what}: the offsets of its registers below are from the "
                         "start of one.")
        lines.append(f"#define {name} 0x{group['offset']:04x}u")
        for level, (count, stride) in enumerate(zip(group["counts"], group["strides"])):
            suffix = "" if level == 0 else f"{level + 1}"
            lines.append(f"#define {name}_COUNT{suffix} {count}u")
            lines.append(f"#define {name}_STRIDE{suffix} 0x{stride:x}u")
        lines.append("")
    for prefix, register in everything(registers, groups):
        name = f"PENSTOCK_REGISTER_{prefix}{register['name']}"
        lines += comment(register["desc"]) if register["desc"] else []
        lines.append(f"#define {name} 0x{register['offset']:03x}u")
        if register["count"] > 1:
            lines.append(f"#define {name}_COUNT {register['count']}u")
        if register["reset"]:
            lines.append(f"#define {name}_RESET 0x{register['reset']:08x}u")
        for field in [] if register["plain"] else register["fields"]:
            mask = ((1 << field["width"]) - 1) << field["low"]
            lines.append(f"#define {name}_{field['name'].upper()}_SHIFT {field['low']}u")
            lines.append(f"#define {name}_{field['name'].upper()}_MASK 0x{mask:08x}u")
    return "\n".join(lines + ["", "#endif", ""])


# ---- the page -------------------------------------------------------------------------------------


def register_rows(register, group=None):
    offset = f"{'+' if group else ''}0x{register['offset']:0{2 if group else 3}x}"
    if register["count"] > 1:
        offset += f" + 4 i, i < {register['count']}"
    first = register["fields"][0]
    if register["plain"]:
        desc = register["desc"] or f"The upper half of {register['name'][:-3]}_LO."
        if first["desc"]:
            desc += f" {first['desc'].capitalize()}."
        return [f"| {offset} | `{register['name']}` | | {first['access']} | "
                f"0x{register['reset']:x} | {desc} |"]
    rows = [f"| {offset} | `{register['name']}` | | | 0x{register['reset']:x} | "
            f"{register['desc'] or 'The upper half of ' + register['name'][:-3] + '_LO.'} |"]
    for field in register["fields"]:
        bits = f"{field['low'] + field['width'] - 1}:{field['low']}"
        if field["width"] == 1:
            bits = str(field["low"])
        desc = field["desc"]
        if field["encode"]:
            desc += f" (`{field['encode']}`)"
        rows.append(f"| | `{field['name']}` | {bits} | {field['access']} | 0x{field['reset']:x} | "
                    f"{desc} |")
    return rows


def page_text(registers, groups, enums):
    head = ["| offset | register, field | bits | access | reset | what |", "|---|---|---|---|---|---|"]
    lines = ["# The card's registers", "", f"Generated from {FROM}.", "",
             "All registers are 32 bits wide and are read and written whole. A write to a part of one, to",
             "what is read only, or to an offset that is not here is answered SLVERR and changes nothing;",
             "a read of an offset that is not here gives 0 with SLVERR.", ""] + head
    for register in registers:
        lines += register_rows(register)
    for group in groups:
        index = ["queue", "window"]
        at = " + ".join(f"0x{stride:x} {index[level]}" for level, stride in enumerate(group["strides"]))
        what = "".join(f"[{index[level]} < {count}]" for level, count in enumerate(group["counts"]))
        lines += ["", f"## {group['name']}{what}", "", f"At 0x{group['offset']:04x} + {at}:", ""] + head
        for register in group["registers"]:
            lines += register_rows(register, group)
    for name, entries in enums.items():
        lines += ["", f"## `{name}`", "", "| value | name | what |", "|---|---|---|"]
        lines += [f"| {value} | {entry} | {desc} |" for entry, value, desc in entries]
    return "\n".join(lines + [""])


def run(root, check):
    read = read_map(os.path.join(HERE, "penstock.rdl"))
    files = {os.path.join(HERE, "penstock_registers_pkg.sv"): package_text(*read),
             os.path.join(root, "host", "descriptor", "register_map.h"): header_text(*read),
             os.path.join(HERE, "registers.md"): page_text(*read)}
    stale = 0
    for path, text in files.items():
        found = ""
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                found = file.read()
        if not check:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        elif found != text:
            stale += 1
            sys.stdout.writelines(difflib.unified_diff(found.splitlines(True), text.splitlines(True),
                                                       path, "what generate.py gives"))
            print(f"{path} is not current: run rtl/registers/generate.py")
    count = sum(1 for _ in everything(*read[:2]))
    print(f"{len(files)} files of {count} registers, {stale} not current")
    return 1 if stale or count == 0 else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--venv", required=True)
    parser.add_argument("--root", default=os.path.join(HERE, "..", ".."))
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    python = environment(os.path.abspath(options.venv))
    if python is None:
        print("skipped: systemrdl-compiler cannot be installed here")
        return SKIPPED
    if re.sub(r"/+$", "", os.path.realpath(sys.prefix)) != os.path.realpath(options.venv):
        return subprocess.run([python, os.path.abspath(__file__)] + sys.argv[1:], check=False).returncode
    return run(options.root, options.check)


if __name__ == "__main__":
    sys.exit(main())
