#!/usr/bin/env python3
"""Shows that an upward include does not compile.

usage: compile_test.py --compiler CXX --table layers.txt LAYER=FOLDER;FOLDER...

Each LAYER comes with the include folders that its target hands to whoever links it. With those, the
compiler has to find every layer that the table allows, and no other. Every layer's folder holds a
CMakeLists.txt, so that is the file that is looked for.
"""

import argparse
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import layering  # noqa: E402


def compiles(compiler, folders, source):
    """True if the source passes the preprocessor with these include folders."""
    command = [compiler, "-std=c++20", "-x", "c++", "-E", "-o", os.devnull, "-"]
    command += [f"-I{folder}" for folder in folders]
    return subprocess.run(command, input=source.encode(), stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--table", required=True)
    parser.add_argument("layers", nargs="+")
    options = parser.parse_args()

    table = layering.Table(options.table)
    roots = dict(layer.split("=", 1) for layer in options.layers)
    checked, wrong = 0, 0
    for layer, folders in roots.items():
        allowed = table.allowed("host/" + layer)
        for other in roots:
            source = f'#if !__has_include("penstock/{other}/CMakeLists.txt")\n#error\n#endif\n'
            found = compiles(options.compiler, folders.split(";"), source)
            checked += 1
            if found != ("host/" + other in allowed):
                wrong += 1
                print(f"an include of {other} from {layer} {'compiles' if found else 'fails'}")
    print(f"{checked} pairs checked, {wrong} wrong")
    return 1 if wrong or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
