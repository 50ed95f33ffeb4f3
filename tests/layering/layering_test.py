#!/usr/bin/env python3
"""Feeds layering.py what it has to refuse and what it has to accept."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import layering  # noqa: E402

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "layers.txt")


def check(files):
    """Returns the findings in a tree of these files (path -> text), and the number of includes."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        findings, includes, _ = layering.check_tree(root, layering.Table(TABLE))
        return findings, includes


class Layering(unittest.TestCase):
    def refused(self, path, text, line=1):
        findings, _ = check({path: text})
        self.assertEqual(len(findings), 1, findings)
        self.assertTrue(findings[0].startswith(f"{path}:{line}: "), findings)

    def accepted(self, path, text):
        findings, includes = check({path: text})
        self.assertEqual(findings, [])
        self.assertGreater(includes, 0)

    def test_upward_include(self):
        self.refused("host/base/a.h", '#pragma once\n#include "penstock/comm/comm.h"\n', line=2)
        self.refused("host/engine/a.cpp", '#include "penstock/sched/scheduler.h"\n')

    def test_sideways_include(self):
        self.refused("host/comm/a.cpp", '#include "penstock/sched/scheduler.h"\n')
        self.refused("host/descriptor/a.h", '#include "penstock/base/status.h"\n')

    def test_angle_brackets_are_no_way_around(self):
        self.refused("host/base/a.cpp", "#  include <penstock/comm/comm.h>\n")

    def test_relative_path_is_no_way_around(self):
        self.refused("host/base/a.cpp", '#include "../comm/comm.h"\n')

    def test_public_header_belongs_to_the_sdk(self):
        self.refused("host/comm/a.cpp", '#include "penstock/penstock.h"\n')
        self.refused("drivers/xrt/a.cpp", '#include "penstock/penstock.hpp"\n')

    def test_drivers_never_see_comm_or_sched(self):
        self.refused("drivers/card/a.cpp", '#include "penstock/comm/comm.h"\n')
        self.accepted("drivers/card/a.cpp", '#include "penstock/engine/engine.h"\n')

    def test_sdk_does_not_see_drivers(self):
        self.refused("sdk/src/a.cpp", '#include "penstock/drivers/card/card.h"\n')
        self.refused("sdk/tool/a.cpp", '#include "penstock/sim/world.h"\n')

    def test_hardware_sees_the_descriptor_only(self):
        self.refused("hls/a.cpp", '#include "penstock/base/status.h"\n')
        self.accepted("hls/a.cpp", '#include "penstock/descriptor/descriptor.h"\n')

    def test_tests_of_hardware_see_simulated_memory_and_engines(self):
        for text in ('#include "penstock/sim/verilated/axi_memory.h"\n',
                     '#include "penstock/engine/engine.h"\n'):
            self.accepted("rtl/fold/fold_test.cpp", text)
            self.refused("rtl/fold/fold.h", text)

    def test_outside_headers_have_their_place(self):
        self.refused("host/comm/a.cpp", "#include <sys/mman.h>\n")
        self.refused("host/sched/a.cpp", "#include <hwy/highway.h>\n")
        self.accepted("host/base/a.cpp", "#include <sys/mman.h>\n")
        self.accepted("host/comm/a_test.cpp", "#include <sys/mman.h>\n")

    def test_what_is_allowed(self):
        self.accepted("host/comm/a.cpp", '#include "penstock/base/status.h"\n#include <vector>\n')
        self.accepted("sdk/src/a.cpp", '#include "penstock/penstock.h"\n')
        self.accepted("host/base/a.cpp", '/* #include "penstock/comm/comm.h" */\n#include <cmath>\n')

    def test_file_outside_of_every_unit(self):
        self.refused("host/new/a.h", "#include <vector>\n")

    def test_depends_is_the_tables(self):
        self.refused("host/queue/CMakeLists.txt",
                     "penstock_layer(queue\n  DEPENDS memory descriptor comm\n  SOURCES a.cpp)\n")
        findings, _ = check({"host/queue/CMakeLists.txt":
                             "penstock_layer(queue\n  DEPENDS descriptor memory\n  SOURCES a.cpp)\n"})
        self.assertEqual(findings, [])

    def test_empty_tree_checks_nothing(self):
        self.assertEqual(check({}), ([], 0))


if __name__ == "__main__":
    unittest.main()
