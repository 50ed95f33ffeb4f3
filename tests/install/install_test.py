#!/usr/bin/env python3
"""Installs a build, moves the installed tree, and uses it as somebody else's project would.

usage: install_test.py STEP --build FOLDER --work FOLDER --cc C --cxx C++

STEP is one of the functions of the table at the end; `prepare` comes before all the others.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys

CONSUMER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "consumer")


class Failed(Exception):
    pass


def call(command, env=None, expect_failure=False):
    """Runs the command and returns what it printed; what it printed is also the error's text."""
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env={**os.environ, **(env or {})}, check=False)
    if (result.returncode != 0) != expect_failure:
        raise Failed(f"{' '.join(command)}\nended with {result.returncode}:\n{result.stdout}")
    return result.stdout


def find(prefix, name):
    for folder, _, files in os.walk(prefix):
        if name in files:
            return os.path.join(folder, name)
    raise Failed(f"{name} was not installed")


def prepare(options):
    """Installs to one folder and moves the tree to another: nothing may depend on the first."""
    shutil.rmtree(options.work, ignore_errors=True)
    first = os.path.join(options.work, "first")
    call(["cmake", "--install", options.build, "--prefix", first])
    os.rename(first, options.prefix)
    for folder, _, files in os.walk(options.prefix):
        for name in files:
            if name.endswith((".cmake", ".pc", ".h", ".hpp")):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    if options.build in file.read():
                        raise Failed(f"{name} names the build folder")
            if "_test." in name or name == "CMakeLists.txt":
                raise Failed(f"{name} should not be installed")


def configure(options, source, name, *arguments, expect_failure=False):
    folder = os.path.join(options.work, name)
    output = call(["cmake", "-G", "Ninja", "-S", source, "-B", folder,
                   f"-DCMAKE_PREFIX_PATH={options.prefix}", f"-DCMAKE_C_COMPILER={options.cc}",
                   f"-DCMAKE_CXX_COMPILER={options.cxx}", *arguments],
                  expect_failure=expect_failure)
    return folder, output


def find_package(options):
    folder, _ = configure(options, CONSUMER, "find_package")
    call(["cmake", "--build", folder])
    for name in ("consumer_c", "consumer_cpp", "consumer_host"):
        print(call([os.path.join(folder, name)]), end="")


def unknown_component(options):
    source = os.path.join(options.work, "unknown_component_source")
    os.makedirs(source, exist_ok=True)
    for component, wanted in (("Turbine", "Penstock has no component Turbine"), ("", None)):
        with open(os.path.join(source, "CMakeLists.txt"), "w", encoding="utf-8") as file:
            file.write("cmake_minimum_required(VERSION 3.25)\nproject(Unknown LANGUAGES C CXX)\n"
                       f"find_package(Penstock REQUIRED COMPONENTS {component})\n"
                       "if(NOT TARGET Penstock::Sdk)\n  message(FATAL_ERROR \"no Sdk\")\nendif()\n")
        _, output = configure(options, source, "unknown_component",
                              expect_failure=wanted is not None)
        if wanted and wanted not in " ".join(output.split()):
            raise Failed(f"the error does not say '{wanted}':\n{output}")


def pkg_config(options):
    env = {"PKG_CONFIG_PATH": os.path.dirname(find(options.prefix, "penstock.pc"))}
    flags = shlex.split(call(["pkg-config", "--cflags", "--libs", "penstock"], env))
    library = {"LD_LIBRARY_PATH": os.path.dirname(find(options.prefix, "libpenstock.so"))}
    warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    for compiler, standard, source in ((options.cc, "c99", "main.c"), (options.cc, "c17", "main.c"),
                                       (options.cxx, "c++20", "main.cpp")):
        program = os.path.join(options.work, f"pkg_config_{standard}")
        call([compiler, f"-std={standard}", *warnings, os.path.join(CONSUMER, source), "-o", program,
              *flags])
        print(call([program], library), end="")


def exported_symbols(options):
    """The library exports what the C header declares, versioned, and nothing else."""
    listing = call(["nm", "-D", "--defined-only", find(options.prefix, "libpenstock.so")])
    exported = set()
    for line in listing.splitlines():
        kind, symbol = line.split()[-2:]
        name, _, version = symbol.partition("@@")
        if kind == "A":  # the name of a version itself
            continue
        if not name.startswith("penstock_") or not version.startswith("PENSTOCK_"):
            raise Failed(f"exported, but not penstock_* of a version PENSTOCK_*: {symbol}")
        exported.add(name)

    text = ""
    for header in ("penstock.h", "cluster.h", "fused.h", "types.h"):
        with open(find(options.prefix, header), encoding="utf-8") as file:
            text += re.sub(r"/\*.*?\*/|//[^\n]*|^\s*#[^\n]*(\\\n[^\n]*)*", " ", file.read(),
                           flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"static inline[^{]*\{.*?\n\}", " ", text, flags=re.DOTALL)
    declared = set(re.findall(r"\b(penstock_\w+)\s*\(", text))
    if not declared:
        raise Failed("found no declaration in the headers")
    for name in sorted(declared ^ exported):
        print(f"{name}: {'declared' if name in declared else 'exported'} only")
    if declared != exported:
        raise Failed("the library and its header differ")
    print(f"{len(exported)} symbols")


def tool(options):
    """The tool finds its library in the moved tree."""
    print(call([os.path.join(options.prefix, "bin", "penstock"), "--version"]), end="")


def main():
    steps = {step.__name__: step for step in
             (prepare, find_package, unknown_component, pkg_config, exported_symbols, tool)}
    parser = argparse.ArgumentParser()
    parser.add_argument("step", choices=steps)
    for name in ("build", "work", "cc", "cxx"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    options.prefix = os.path.join(options.work, "moved here")  # a blank must not matter
    try:
        steps[options.step](options)
    except Failed as failure:
        print(failure)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
