#!/usr/bin/env python3
"""Writes a small xclbin for the stand-in of a device: what a linker for hardware would say about
kernels, without a bitstream.

    make_xclbin.py --kernel rtl/vitis/kernel.xml --link rtl/vitis/u55c.cfg --out card.xclbin

Kernels come from their descriptions (kernel.xml), or from the header that declares HLS kernels and
documents their registers (hls/penstock_hls.h); instances and connections from the configuration
that `v++ --link` would read. An argument that it does not connect is connected to the first bank of
the device's. The layout is that of XRT's xclbin.h; XRT 2.13 reads it.
"""
import argparse
import pathlib
import re
import struct
import sys
import uuid
import xml.etree.ElementTree as xml

PLATFORM = "penstock_standin_1"
# Section kinds, kinds of IP, and so on: of xclbin.h.
EMBEDDED_METADATA, MEM_TOPOLOGY, CONNECTIVITY, IP_LAYOUT, CLOCK_FREQ_TOPOLOGY = 2, 6, 7, 8, 11
IP_KERNEL, CLOCK_DATA, MEM_DRAM, MEM_HBM = 1, 1, 2, 7
CONTROL = {"ap_ctrl_hs": 0, "ap_ctrl_chain": 1, "user_managed": 2, "ap_ctrl_none": 2}
FIRST_CONTROL_ADDRESS = 0x800000
HOST_BASE, HOST_KIB = 0x2000000000, 16 << 20
DEVICE_KIB = 1 << 20  # of each bank
NAMESPACE = uuid.UUID("6d0c1f0e-0d5a-4f0e-9a35-8a1f7d1f7a11")


class Wrong(Exception):
    """What is wrong with the input, as a sentence."""


def read_kernel(path):
    try:
        root = xml.parse(path).getroot()
    except (OSError, xml.ParseError) as failure:
        raise Wrong(f"{path}: {failure}") from failure
    kernel = root.find("kernel")
    if kernel is None:
        raise Wrong(f"{path}: it describes no kernel")
    return kernel


# Of an argument of an HLS kernel, by its type: the width of its port, or of itself.
POINTERS = {"WordPort": 512, "CellPort": 64, "std::uint64_t*": 64, "std::uint8_t*": 8}
SCALARS = {"std::uint64_t": 8, "std::uint32_t": 4}


def read_hls(path):
    """[kernel] as kernel.xml would describe those that a header declares."""
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8")
    except OSError as failure:
        raise Wrong(f"{path}: {failure}") from failure
    kernels = []
    for comment, name, arguments in re.findall(r"((?://.*\n)+)void (\w+)\(([^)]*)\);", text):
        registers = {argument: (int(offset, 16), bundle) for argument, offset, bundle in re.findall(
            r"^//   (\w+) +(0x[0-9a-f]+)(?: +m_axi (\w+))?", comment, re.M)}
        kernel = xml.Element("kernel", name=name, language="ip_c", interrupt="true",
                             hwControlProtocol="ap_ctrl_chain")
        ports = {"s_axi_control": ("slave", "0x1000", 32)}
        for index, argument in enumerate(re.split(r",\s*", arguments)):
            kind, argument = re.fullmatch(r"(?:const )?(?:\w+::)?(\S+) (\w+)", argument).groups()
            kind = kind if kind in POINTERS or kind in SCALARS else f"std::{kind}"
            if argument not in registers:
                raise Wrong(f"{path}: {name} does not say where its argument {argument} stands")
            offset, bundle = registers[argument]
            if bool(bundle) != (kind in POINTERS):
                raise Wrong(f"{path}: argument {argument} of {name} is a {kind}, with the port "
                            f"{bundle or 'of registers'}")
            port = f"m_axi_{bundle}" if bundle else "s_axi_control"
            if bundle:
                ports[port] = ("master", "0xFFFFFFFFFFFFFFFF", POINTERS[kind])
            size = f"{8 if bundle else SCALARS[kind]:#x}"
            xml.SubElement(kernel, "arg", name=argument, id=str(index), port=port, size=size,
                           addressQualifier="1" if bundle else "0", offset=f"{offset:#x}",
                           type="void*" if bundle else "ulong" if size == "0x8" else "uint",
                           hostOffset="0x0", hostSize=size)
        for port, (mode, reach, width) in ports.items():
            xml.SubElement(kernel, "port", name=port, mode=mode, range=reach, dataWidth=str(width),
                           portType="addressable", base="0x0")
        kernels.append(kernel)
    if not kernels:
        raise Wrong(f"{path}: it declares no kernel")
    return kernels


def read_link(path):
    """[(kernel, instance)] and {(instance, argument): [tag, ...]}."""
    instances, connections = [], {}
    section = ""
    try:
        lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as failure:
        raise Wrong(f"{path}: {failure}") from failure
    for number, line in enumerate(lines, 1):
        line = line.split("#")[0].strip()
        if match := re.fullmatch(r"\[(\w+)\]", line):
            section = match.group(1)
        if section != "connectivity" or "=" not in line:
            continue
        key, value = line.split("=", 1)
        if key == "nk":
            match = re.fullmatch(r"(\w+):(\d+)(?::([\w.]+))?", value)
            if not match:
                raise Wrong(f"{path}:{number}: nk={value} is no KERNEL:COUNT[:NAMES]")
            kernel, count, names = match.groups()
            names = names.split(".") if names else [f"{kernel}_{i + 1}" for i in range(int(count))]
            if len(names) != int(count):
                raise Wrong(f"{path}:{number}: nk={value} names {len(names)} instances")
            instances += [(kernel, name) for name in names]
        elif key == "sp":
            match = re.fullmatch(r"(\w+)\.(\w+):(\w+(?:\[[\d:]+\])?)", value)
            if not match:
                raise Wrong(f"{path}:{number}: sp={value} is no INSTANCE.ARGUMENT:BANK")
            connections.setdefault((match.group(1), match.group(2)), []).append(match.group(3))
    return instances, connections


def fixed(text, size):
    data = text.encode()
    if len(data) >= size:
        raise Wrong(f"{text}: it is longer than {size - 1} bytes")
    return data.ljust(size, b"\0")


def memory_section(tags):
    data = struct.pack("<i4x", len(tags))
    base = 0
    for tag in tags:
        if tag.startswith("HOST["):
            data += struct.pack("<BB6xQQ16s", MEM_DRAM, 1, HOST_KIB, HOST_BASE, fixed(tag, 16))
        else:
            kind = MEM_HBM if tag.startswith("HBM") else MEM_DRAM
            data += struct.pack("<BB6xQQ16s", kind, 1, DEVICE_KIB, base, fixed(tag, 16))
            base += DEVICE_KIB << 10
    return data


def metadata(kernels, places, clock_mhz):
    """The XML that XRT reads arguments from."""
    project = xml.Element("project", name="penstock")
    platform = xml.SubElement(project, "platform", vendor="penstock", boardid="standin",
                              name="standin")
    device = xml.SubElement(platform, "device", name="fpga0", fpgaDevice="standin")
    core = xml.SubElement(device, "core", name="OCL_REGION_0", target="hw_em", type="clc_region")
    xml.SubElement(core, "kernelClocks").append(
        xml.Element("clock", port="DATA_CLK", frequency=f"{clock_mhz}MHz"))
    for name, kernel in kernels.items():
        element = xml.SubElement(core, "kernel", name=name, language="ip", type="pl",
                                 hwControlProtocol=kernel.get("hwControlProtocol", "ap_ctrl_hs"))
        for port in kernel.iter("port"):
            xml.SubElement(element, "port", port.attrib)
        for argument in kernel.iter("arg"):
            xml.SubElement(element, "arg", argument.attrib)
        slave = next((p.get("name") for p in kernel.iter("port") if p.get("mode") == "slave"), None)
        if slave is None:
            raise Wrong(f"kernel {name}: it has no port with registers")
        for (kernel_name, instance), base in places.items():
            if kernel_name == name:
                xml.SubElement(xml.SubElement(element, "instance", name=instance), "addrRemap",
                               base=f"{base:#x}", port=slave)
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + xml.tostring(project)


def sections(kernels, instances, connections, clock_mhz):
    tags = []
    for name, kernel in instances:
        if name not in kernels:
            raise Wrong(f"instance {kernel}: there is no description of a kernel {name}")
    named = {instance: kernels[name] for name, instance in instances}
    for (instance, argument), banks in connections.items():
        if instance not in named:
            raise Wrong(f"sp={instance}.{argument}: there is no such instance")
        if argument not in [a.get("name") for a in named[instance].iter("arg")]:
            raise Wrong(f"sp={instance}.{argument}: its kernel has no such argument")
        tags += [bank for bank in banks if bank not in tags]
    tags.sort(key=lambda tag: tag.startswith("HOST["))  # the device's banks come first
    if not tags or tags[0].startswith("HOST["):
        tags.insert(0, "HBM[0]")
    places, layout, lines = {}, b"", b""
    base, lines_count = FIRST_CONTROL_ADDRESS, 0
    for index, (name, instance) in enumerate(instances):
        kernel = kernels[name]
        protocol = kernel.get("hwControlProtocol", "ap_ctrl_hs")
        if protocol not in CONTROL:
            raise Wrong(f"kernel {name}: hwControlProtocol {protocol} is not known")
        interrupt = kernel.get("interrupt", "false") == "true"
        properties = (1 if interrupt else 0) | index << 1 | CONTROL[protocol] << 8
        layout += struct.pack("<IIQ64s", IP_KERNEL, properties, base,
                              fixed(f"{name}:{instance}", 64))
        places[(name, instance)] = base
        base += 0x10000
        for argument in kernel.iter("arg"):
            if argument.get("addressQualifier") != "1":
                continue
            for tag in connections.get((instance, argument.get("name")), [tags[0]]):
                lines += struct.pack("<iii", int(argument.get("id")), index, tags.index(tag))
                lines_count += 1
    clock = struct.pack("<hHB5x128s", 1, clock_mhz, CLOCK_DATA, fixed("DATA_CLK", 128))
    return [(MEM_TOPOLOGY, "mem", memory_section(tags)),
            (CONNECTIVITY, "connectivity", struct.pack("<i", lines_count) + lines),
            (IP_LAYOUT, "ip", struct.pack("<i4x", len(instances)) + layout),
            (CLOCK_FREQ_TOPOLOGY, "clocks", clock),
            (EMBEDDED_METADATA, "xml", metadata(kernels, places, clock_mhz))]


def assemble(parts, platform):
    start = 496 - 40 + 40 * len(parts)
    headers, body = b"", b""
    for kind, name, data in parts:
        body += b"\0" * (-(start + len(body)) % 8)
        headers += struct.pack("<I16s4xQQ", kind, name.encode(), start + len(body), len(data))
        body += data
    # What identifies the file depends on what is in it, and on nothing else.
    identity = uuid.uuid5(NAMESPACE, platform + body.hex())
    rom = uuid.uuid5(NAMESPACE, platform)
    header = struct.pack("<QQQHBBHH16s64s16s16sI4x", start + len(body), 0, 0, 0, 2, 13, 4, 0,
                         rom.bytes, fixed(platform, 64), identity.bytes, b"", len(parts))
    data = b"xclbin2\0" + struct.pack("<i", -1) + b"\xff" * 28 + b"\0" * 256
    data += struct.pack("<Q", identity.int & (2**64 - 1)) + header
    return data + headers + body


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", action="append", default=[], metavar="kernel.xml")
    parser.add_argument("--hls", action="append", default=[], metavar="HEADER")
    parser.add_argument("--link", required=True, metavar="link.cfg")
    parser.add_argument("--out", required=True, metavar="FILE")
    parser.add_argument("--platform", default=PLATFORM, help="name of the platform it is made for")
    # A simulated card takes a microsecond and more for a cycle.
    parser.add_argument("--clock-mhz", type=int, default=1, choices=range(1, 1001), metavar="MHZ")
    options = parser.parse_args(arguments)
    try:
        kernels = {}
        described = [read_kernel(path) for path in options.kernel]
        described += [kernel for path in options.hls for kernel in read_hls(path)]
        for kernel in described:
            kernels[kernel.get("name")] = kernel
        instances, connections = read_link(options.link)
        if not instances:
            raise Wrong(f"{options.link}: it has no instance (nk=KERNEL:COUNT)")
        data = assemble(sections(kernels, instances, connections, options.clock_mhz),
                        options.platform)
        with open(options.out, "wb") as file:
            file.write(data)
    except (Wrong, OSError) as failure:
        print(f"make_xclbin: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
