#!/usr/bin/env python3
"""Holds what rtl/vitis says of the card against the card: ports and widths, addresses and
registers, the linker's connections, the list of sources, and the numbers that the driver uses.

    check.py --root . [--manifest build/rtl/blocks.json]

Prints a sentence for each disagreement; exit status 1 if there is one. With a manifest, which a
build writes, the list of sources is held against that of the block `vitis`.
"""
import argparse
import json
import pathlib
import re
import sys
import xml.etree.ElementTree as xml

KERNEL = "penstock_card"
TOP = "penstock_card_vitis"
# An argument stands at a register that carries such an address: (table, register, which of them).
REGISTERS = {
    "rings": ("QUEUE", "RING_LO", 0),
    "lists": ("QUEUE", "COMPLETIONS_LO", 0),
    "memory": ("WINDOW", "BUS_LO", 0),
    "host_memory": ("WINDOW", "BUS_LO", 1),
}
IN_HOST = {"rings", "host_memory"}  # what is connected to the host's memory
BOARDS = ("u55c", "u280")
# Enumerators of the driver, by the argument that they number.
DRIVER = {"kRings": "rings", "kHostMemory": "host_memory", "kMemory": "memory", "kLists": "lists"}


class Findings(list):
    def check(self, holds, sentence):
        if not holds:
            self.append(sentence)


def ports_of(path, module, findings):
    """{name: (direction, width)} of a module with one port on each line."""
    text = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
    match = re.search(r"\bmodule\s+" + module + r"\b.*?\)\s*\((.*?)\n\s*\);", text, re.S)
    if not match:
        findings.append(f"{path}: there is no module {module}")
        return {}
    ports = {}
    for line in match.group(1).splitlines():
        found = re.fullmatch(
            r"\s*(input|output)\s+(?:wire\s+)?logic\s+(?:\[(\d+):0\]\s+)?(\w+),?\s*", line)
        if found:
            ports[found.group(3)] = (found.group(1), int(found.group(2) or 0) + 1)
        else:
            findings.check(not line.strip(),
                           f"{path}: '{line.strip()}' is no port that can be read")
    return ports


def vitis_name(port):
    fixed = {"clk_i": "ap_clk", "rst_ni": "ap_rst_n", "irq_o": "interrupt"}
    return fixed.get(port, port.replace("s_axil_", "s_axi_control_"))


def check_wrapper(rtl, findings):
    card = ports_of(rtl / "card" / "penstock_card.sv", KERNEL, findings)
    path = rtl / "vitis" / f"{TOP}.sv"
    wrapper = ports_of(path, TOP, findings)
    connections = dict(re.findall(r"\.(\w+)\s*\((\w+)\)", path.read_text(encoding="utf-8")))
    for name, shape in card.items():
        outer = vitis_name(name)
        findings.check(wrapper.get(outer) == shape,
                       f"{path}: {outer} is {wrapper.get(outer)}; the card's {name} is {shape}")
        findings.check(connections.get(name) == outer,
                       f"{path}: the card's {name} is connected to {connections.get(name)}, "
                       f"not to {outer}")
    for name in sorted(set(wrapper) - {vitis_name(n) for n in card}):
        findings.append(f"{path}: the card has no port for {name}")
    return wrapper


def register_offsets(root, findings):
    """{(table, register): offset} and the end of the map, as the header and the description say."""
    header_path = root / "host/descriptor/register_map.h"
    header = {name: int(value, 0) for name, value in re.findall(
        r"#define PENSTOCK_REGISTER_(\w+) (0x[0-9a-f]+|\d+)u",
        header_path.read_text(encoding="utf-8"))}
    rdl_path = root / "rtl/registers/penstock.rdl"
    rdl = rdl_path.read_text(encoding="utf-8")
    offsets, end = {}, 0
    for table in ("QUEUE", "WINDOW"):
        place = re.search(table.lower() + r"_registers " + table +
                          r"((?:\[\d+\])+) @(0x[0-9a-f]+) \+= (0x[0-9a-f]+)", rdl)
        inner = re.search(r"regfile " + table.lower() + r"_registers \{(.*?)\n\};", rdl, re.S)
        if not place or not inner:
            findings.append(f"{rdl_path}: there is no {table}")
            continue
        counts = [int(n) for n in re.findall(r"\d+", place.group(1))]
        base, stride = int(place.group(2), 0), int(place.group(3), 0)
        total = 1
        for count in counts:
            total *= count
        end = max(end, base + total * stride)
        last = "STRIDE2" if len(counts) == 2 else "STRIDE"
        findings.check(header.get(table) == base and header.get(f"{table}_{last}") == stride,
                       f"{header_path}: {table} is not where {rdl_path} has it")
        for name, offset in re.findall(r"(\w+) @(0x[0-9a-f]+);", inner.group(1)):
            offset = int(offset, 0)
            findings.check(header.get(f"{table}_{name}") == offset,
                           f"{header_path}: {table}_{name} is not {offset:#x}, as in {rdl_path}")
            offsets[(table, name)] = (base + offset, stride)
    return offsets, end


def check_kernel(root, wrapper, findings):
    path = root / "rtl/vitis/kernel.xml"
    try:
        kernel = xml.parse(path).getroot().find("kernel")
    except xml.ParseError as failure:
        findings.append(f"{path}: {failure}")
        return {}
    findings.check(kernel.get("name") == KERNEL, f"{path}: the kernel is not {KERNEL}")
    findings.check(kernel.get("hwControlProtocol") == "user_managed",
                   f"{path}: the kernel is not user_managed")
    findings.check((kernel.get("interrupt") == "true") == ("interrupt" in wrapper),
                   f"{path}: interrupt is {kernel.get('interrupt')}, which {TOP} contradicts")
    for name in ("ap_clk", "ap_rst_n"):
        findings.check(wrapper.get(name) == ("input", 1), f"{TOP} has no input {name}")
    offsets, end = register_offsets(root, findings)
    ports = {p.get("name"): p for p in kernel.iter("port")}
    buses = {m.group(1) for n in wrapper if (m := re.fullmatch(r"(\w+)_arvalid", n))}
    findings.check(set(ports) == buses,
                   f"{path}: its ports are {sorted(ports)}; {TOP} has {sorted(buses)}")
    for name in sorted(set(ports) & buses):
        port = ports[name]
        master = wrapper[f"{name}_arvalid"][0] == "output"
        width = wrapper[f"{name}_rdata"][1]
        address = wrapper[f"{name}_araddr"][1]
        reach = 2**address - (1 if master else 0)
        findings.check(port.get("mode") == ("master" if master else "slave"),
                       f"{path}: {name} is no {port.get('mode')}")
        findings.check(int(port.get("dataWidth"), 0) == width,
                       f"{path}: {name} is {width} bits wide, not {port.get('dataWidth')}")
        findings.check(int(port.get("range"), 0) == reach,
                       f"{path}: the range of {name} is {port.get('range')}; its addresses of "
                       f"{address} bits make it {reach:#x}")
        if not master:
            findings.check(end <= int(port.get("range"), 0),
                           f"{path}: registers up to {end:#x} are outside of {name}")
    arguments = {a.get("name"): a for a in kernel.iter("arg")}
    findings.check(set(arguments) == set(REGISTERS),
                   f"{path}: its arguments are {sorted(arguments)}, not {sorted(REGISTERS)}")
    ids = [a.get("id") for a in kernel.iter("arg")]
    findings.check(ids == [str(i) for i in range(len(ids))],
                   f"{path}: its arguments are not numbered from 0: {ids}")
    for name in sorted(set(arguments) & set(REGISTERS)):
        argument = arguments[name]
        table, register, index = REGISTERS[name]
        port = "m_axi_ctl" if table == "QUEUE" else "m_axi_data"
        findings.check(argument.get("port") == port,
                       f"{path}: argument {name} is of {argument.get('port')}, not of {port}")
        findings.check(argument.get("size") == "0x8" and argument.get("addressQualifier") == "1",
                       f"{path}: argument {name} is no address of 8 bytes")
        if (table, register) not in offsets:
            findings.append(f"registers: there is no {table}.{register}, where argument {name} is")
            continue
        base, stride = offsets[(table, register)]
        expected = base + index * stride
        findings.check(int(argument.get("offset"), 0) == expected,
                       f"{path}: argument {name} is at {argument.get('offset')}; {register} of "
                       f"{table} {index} is at {expected:#x}")
    return {name: int(a.get("id")) for name, a in arguments.items()}


def check_links(root, arguments, findings):
    wrapper = (root / f"rtl/vitis/{TOP}.sv").read_text(encoding="utf-8")
    clock = re.search(r"CLOCK_KHZ = 32'd(\d+)", wrapper)
    for board in BOARDS:
        path = root / f"rtl/vitis/{board}.cfg"
        if not path.exists():
            findings.append(f"{path}: it is missing")
            continue
        lines = [l.split("#")[0].strip() for l in path.read_text(encoding="utf-8").splitlines()]
        values = [tuple(l.split("=", 1)) for l in lines if "=" in l]
        get = lambda key: [v for k, v in values if k == key]
        findings.check(len(get("platform")) == 1 and f"_{board}_" in get("platform")[0],
                       f"{path}: its platform is not of a {board}: {get('platform')}")
        match = re.fullmatch(KERNEL + r":1:(\w+)", (get("nk") + [""])[0])
        findings.check(len(get("nk")) == 1 and match,
                       f"{path}: nk is not one {KERNEL}: {get('nk')}")
        name = match.group(1) if match else "?"
        places = {}
        for value in get("sp"):
            found = re.fullmatch(r"(\w+)\.(\w+):(.+)", value)
            known = found and found.group(1) == name and found.group(2) in arguments
            findings.check(known, f"{path}: sp={value} connects nothing that there is")
            if known:
                places[found.group(2)] = found.group(3)
        for argument in arguments:
            bank = places.get(argument, "nothing")
            wanted = r"HOST\[0\]" if argument in IN_HOST else r"HBM\[\d+:\d+\]"
            findings.check(re.fullmatch(wanted, bank),
                           f"{path}: {argument} is connected to {bank}")
        # Rings are coherent only by the bridge, and a list is where the operands are.
        findings.check(places.get("lists") == places.get("memory"),
                       f"{path}: lists and memory are connected to different banks")
        wanted = f"{int(clock.group(1)) * 1000}:{name}.ap_clk" if clock else "?"
        findings.check(get("freqHz") == [wanted],
                       f"{path}: freqHz is {get('freqHz')}; CLOCK_KHZ of {TOP} makes it {wanted}")


def check_script(root, findings):
    path = root / "rtl/vitis/package_kernel.tcl"
    text = path.read_text(encoding="utf-8")
    findings.check(f"set kernel {KERNEL}\n" in text and f"set top {TOP}\n" in text,
                   f"{path}: it does not package {TOP} as {KERNEL}")
    for line in ("sources.f", "kernel.xml", "user_managed"):
        findings.check(line in text, f"{path}: it does not use {line}")


def check_sources(root, manifest, findings):
    path = root / "rtl/vitis/sources.f"
    listed = [l for l in path.read_text(encoding="utf-8").splitlines() if l and l[0] != "#"]
    for source in listed:
        findings.check((root / "rtl" / source).exists(), f"{path}: there is no rtl/{source}")
    if manifest is None:
        return
    blocks = json.loads(pathlib.Path(manifest).read_text(encoding="utf-8"))
    built = []
    for source in blocks.get("vitis", {}).get("sources", []):
        parts = pathlib.Path(source).parts
        built.append("/".join(parts[len(parts) - 1 - parts[::-1].index("rtl") + 1:]))
    findings.check(listed == built,
                   f"{path}: it is not what the block vitis is built of: missing "
                   f"{sorted(set(built) - set(listed))}, too much "
                   f"{sorted(set(listed) - set(built))}, "
                   "or in another order")


def check_driver(root, arguments, findings):
    path = root / "drivers/xrt/xrt_bus.cpp"
    text = path.read_text(encoding="utf-8")
    named = re.search(r'kKernel\[\] = "(\w+)"', text)
    findings.check(named and named.group(1) == KERNEL, f"{path}: it looks for another kernel")
    found = re.search(r"enum Argument[^{]*\{(.*?)\}", text, re.S)
    numbers = dict(re.findall(r"(k\w+) = (\d+)", found.group(1))) if found else {}
    findings.check(bool(numbers), f"{path}: it numbers no arguments")
    for enumerator, number in numbers.items():
        argument = DRIVER.get(enumerator, "?")
        findings.check(arguments.get(argument) == int(number),
                       f"{path}: {enumerator} is {number}; argument {argument} is "
                       f"{arguments.get(argument)}")


def run(root, manifest=None):
    findings = Findings()
    wrapper = check_wrapper(root / "rtl", findings)
    arguments = check_kernel(root, wrapper, findings)
    check_links(root, arguments, findings)
    check_script(root, findings)
    check_sources(root, manifest, findings)
    check_driver(root, arguments, findings)
    return findings


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--manifest")
    options = parser.parse_args()
    findings = run(options.root, options.manifest)
    for sentence in findings:
        print(sentence)
    if not findings:
        print("the kernel's packaging agrees with the card")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
