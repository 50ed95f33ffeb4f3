#!/usr/bin/env python3
"""Holds the files for synthesis against the kernels: tops, sources, parts, and the ports that the
links name.

usage: check_config_test.py
"""

import os
import re
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
HLS = os.path.dirname(HERE)
sys.path.insert(0, HLS)
import check  # noqa: E402

CARDS = {"u55c": "xcu55c-fsvh2892-2L-e", "u280": "xcu280-fsvh2892-2L-e"}
KERNELS = ("reduce", "select")


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def settings(text):
    """key -> list of values, comments left out."""
    values = {}
    for line in text.split("\n"):
        if "=" in line and not line.startswith("#"):
            key, value = line.split("=", 1)
            values.setdefault(key.strip(), []).append(value.strip())
    return values


def memory_arguments(kernel):
    source = check.Source(HLS, f"{kernel}.cpp")
    _, arguments, _, _ = source.functions[f"penstock_hls_{kernel}"]
    return {name for name, _, memory, _ in check.registers_of(arguments) if memory}


class ConfigTest(unittest.TestCase):
    def test_configurations_name_the_kernels(self):
        for kernel in KERNELS:
            for card, part in CARDS.items():
                with self.subTest(kernel=kernel, card=card):
                    found = settings(read(HERE, f"{kernel}.{card}.cfg"))
                    self.assertEqual(found["part"], [part])
                    self.assertEqual(found["clock"], ["300MHz"])
                    self.assertEqual(found["syn.top"], [f"penstock_hls_{kernel}"])
                    self.assertIn(f"void penstock_hls_{kernel}(",
                                  read(HERE, found["syn.file"][0]))
                    self.assertIn("-std=c++14", found["syn.cflags"][0])

    def test_links_name_every_port_once(self):
        for card in CARDS:
            found = settings(read(HERE, f"link.{card}.cfg"))
            self.assertEqual(sorted(found["nk"]),
                             [f"penstock_hls_{kernel}:1:{kernel}" for kernel in KERNELS])
            ports = [value.split(":")[0] for value in found["sp"]]
            expected = [f"{kernel}.{name}" for kernel in KERNELS
                        for name in memory_arguments(kernel)]
            self.assertEqual(len(expected), 8)
            self.assertEqual(sorted(ports), sorted(expected))

    def test_the_script_makes_the_same(self):
        script = read(HERE, "synthesise.tcl")
        self.assertIn("set_top penstock_hls_$kernel", script)
        self.assertTrue(re.search(r"\{\$kernel ni \{reduce select\}\}", script))
        for part in CARDS.values():
            self.assertIn(part, script)

    def test_the_descriptor_is_plain_c(self):
        # What the kernels include of it includes nothing that synthesis does not have.
        folder = os.path.join(HLS, "..", "host", "descriptor")
        for name in ("types.h", "address.h", "node_table.h", "descriptor.h"):
            for included in re.findall(r'#include [<"]([^>"]+)', read(folder, name)):
                self.assertTrue(included == "stdint.h" or
                                included.startswith("penstock/descriptor/"), f"{name}: {included}")


if __name__ == "__main__":
    unittest.main()
