#!/usr/bin/env bash
# in_folder.sh TEST PIPELAG FOLDER: runs a test script with an empty folder as its working directory; $1 is pipelag.
set -eu
rm -rf "$3"
mkdir -p "$3"
cd "$3"
exec bash -euo pipefail "$1" "$2"
