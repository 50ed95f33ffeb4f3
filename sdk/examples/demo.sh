#!/usr/bin/env bash
# What `./run demo` shows; penstock is on PATH.
set -euo pipefail

penstock info
