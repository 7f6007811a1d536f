#!/usr/bin/env bash
# Installs what is missing, builds, and runs the whole test suite but the tests labelled slow. The sanitizer suite runs first.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

install_packages "${build_packages[@]}" "${test_packages[@]}"
build asan
echo "== unit, conformance, bad-input tests and CUDA kernels on the host under AddressSanitizer and UndefinedBehaviorSanitizer"
ctest --test-dir build/asan -L 'unit|conform|cases|cuda' -LE 'slow|mpi' -j "$(nproc)" --output-on-failure
build ci
echo "== all tests"
ctest --test-dir build/release -LE slow -j "$(nproc)" --output-on-failure
