"""check.py finds what it is there for: each case puts one thing wrong into a copy."""
import argparse
import pathlib
import shutil
import sys
import tempfile
import unittest

ROOT = MANIFEST = None
FILES = ["rtl/card/penstock_card.sv", "rtl/registers/penstock.rdl",
         "host/descriptor/register_map.h", "drivers/xrt/xrt_bus.cpp"]

# (file, text, what is there instead, a part of what has to be said)
FAULTS = [
    ("rtl/vitis/kernel.xml", 'dataWidth="512"', 'dataWidth="256"', "is 512 bits wide, not 256"),
    ("rtl/vitis/kernel.xml", 'range="0x10000"', 'range="0x1000"', "the range of s_axi_control"),
    ("rtl/vitis/kernel.xml", 'name="m_axi_data"', 'name="m00_axi"', "its ports are"),
    ("rtl/vitis/kernel.xml", 'mode="slave"', 'mode="master"', "s_axi_control is no master"),
    ("rtl/vitis/kernel.xml", 'offset="0x8010"', 'offset="0x8018"', "argument memory is at 0x8018"),
    ("rtl/vitis/kernel.xml", 'id="3"', 'id="4"', "not numbered from 0"),
    ("rtl/vitis/kernel.xml", 'size="0x8"', 'size="0x4"', "argument rings is no address"),
    ("rtl/vitis/kernel.xml", '"lists" addressQualifier="1" id="1" port="m_axi_ctl"',
     '"lists" addressQualifier="1" id="1" port="m_axi_data"', "argument lists is of m_axi_data"),
    ("rtl/vitis/kernel.xml", "user_managed", "ap_ctrl_hs", "the kernel is not user_managed"),
    ("rtl/vitis/kernel.xml", 'interrupt="true"', 'interrupt="false"', "interrupt is false"),
    ("rtl/vitis/kernel.xml", "</kernel>", "", "mismatched tag"),
    ("rtl/vitis/penstock_card_vitis.sv", "[511:0]  m_axi_ctl_rdata", "[255:0]  m_axi_ctl_rdata",
     "m_axi_ctl_rdata is ('input', 256)"),
    ("rtl/vitis/penstock_card_vitis.sv", "(m_axi_data_bid)", "(m_axi_ctl_bid)",
     "m_axi_data_bid is connected to m_axi_ctl_bid"),
    ("rtl/vitis/penstock_card_vitis.sv", "output      logic          interrupt,\n", "",
     "interrupt is None"),
    ("rtl/vitis/penstock_card_vitis.sv", "32'd250000", "32'd300000", "freqHz is"),
    ("rtl/card/penstock_card.sv", "[63:0]   m_axi_data_araddr", "[47:0]   m_axi_data_araddr",
     "the card's m_axi_data_araddr"),
    ("rtl/card/penstock_card.sv", "output      logic          irq_o,",
     "output      logic          irq_o,\n    output      logic          more_o,",
     "the card's more_o is ('output', 1)"),
    ("rtl/registers/penstock.rdl", "word_rw RING_LO @0x00;", "word_rw RING_LO @0x30;",
     "QUEUE_RING_LO is not 0x30"),
    ("rtl/registers/penstock.rdl", "WINDOW[64][16] @0x8000", "WINDOW[64][16] @0xc000",
     "WINDOW is not where"),
    ("host/descriptor/register_map.h", "PENSTOCK_REGISTER_WINDOW_BUS_LO 0x010u",
     "PENSTOCK_REGISTER_WINDOW_BUS_LO 0x014u", "WINDOW_BUS_LO is not 0x10"),
    ("rtl/vitis/u55c.cfg", "xilinx_u55c_", "xilinx_u250_", "its platform is not of a u55c"),
    ("rtl/vitis/u280.cfg", "sp=card.rings:HOST[0]", "sp=card.rings:HBM[0]",
     "rings is connected to HBM[0]"),
    ("rtl/vitis/u280.cfg", "sp=card.lists:HBM[0:31]\n", "", "lists is connected to nothing"),
    ("rtl/vitis/u280.cfg", "sp=card.memory", "sp=card.memories", "connects nothing"),
    ("rtl/vitis/u55c.cfg", "sp=card.memory:HBM[0:31]", "sp=card.memory:HBM[0:15]",
     "connected to different banks"),
    ("rtl/vitis/u55c.cfg", "nk=penstock_card:1", "nk=penstock_card:2", "nk is not one"),
    ("rtl/vitis/u55c.cfg", "freqHz=250000000", "freqHz=300000000", "freqHz is"),
    ("rtl/vitis/package_kernel.tcl", "set top penstock_card_vitis", "set top penstock_card",
     "it does not package"),
    ("rtl/vitis/sources.f", "card/penstock_card.sv\n", "", "missing ['card/penstock_card.sv']"),
    ("rtl/vitis/sources.f", "card/penstock_card.sv\n", "card/no.sv\n",
     "there is no rtl/card/no.sv"),
    ("drivers/xrt/xrt_bus.cpp", "kRings = 0", "kRings = 1", "kRings is 1; argument rings is 0"),
    ("drivers/xrt/xrt_bus.cpp", '"penstock_card"', '"penstock"', "looks for another kernel"),
]


class Check(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        shutil.copytree(ROOT / "rtl", self.root / "rtl", ignore=shutil.ignore_patterns("*.cpp"))
        for name in FILES:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)

    def tearDown(self):
        self.folder.cleanup()

    def test_it_agrees(self):
        self.assertEqual(check.run(self.root, MANIFEST), [])

    def test_faults(self):
        for name, text, instead, said in FAULTS:
            with self.subTest(file=name, text=text, instead=instead):
                path = self.root / name
                before = path.read_text(encoding="utf-8")
                self.assertIn(text, before)
                path.write_text(before.replace(text, instead, 1), encoding="utf-8")
                findings = check.run(self.root, MANIFEST)
                path.write_text(before, encoding="utf-8")
                self.assertTrue(any(said in f for f in findings), findings)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--manifest", required=True)
    options, rest = parser.parse_known_args()
    ROOT, MANIFEST = options.root, options.manifest
    sys.path.insert(0, str(ROOT / "rtl/vitis"))
    import check

    unittest.main(argv=[sys.argv[0], *rest])
