# Shared by demo.sh and test.sh: packages and builds. Sourced from the repository's root.

build_packages=(gcc libc6-dev cmake ninja-build pkg-config git libjansson-dev libxxhash-dev libhdf5-dev libopenblas-serial-dev
  librandom123-dev libcmocka-dev libopenmpi-dev)
test_packages=(g++ procps iproute2 munge slurm-wlm gnuplot-nox hdf5-tools python3-h5py python3-pandas clang-format-14 openmpi-bin
  chromium chromium-driver)

# missing_packages NAME...: those that are not installed, one per line.
missing_packages() {
  local name
  for name in "$@"; do
    dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null | grep -qx installed || echo "$name"
  done
}

# as_root COMMAND...: directly as root, else through sudo when that asks no password.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

can_be_root() {
  [ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }
}

# install_packages NAME...: installs what is missing, or lists it and fails.
install_packages() {
  command -v apt-get >/dev/null || { echo "note: no apt here; taking for granted that this is installed: $*"; return 0; }
  local missing
  mapfile -t missing < <(missing_packages "$@")
  [ "${#missing[@]}" -gt 0 ] || return 0
  if ! can_be_root; then
    echo "Missing Debian packages: ${missing[*]}" >&2
    echo "Install them as root: apt-get install ${missing[*]}" >&2
    return 2
  fi
  echo "== installing ${missing[*]}"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# build PRESET: configures and builds; quiet unless it fails.
build() {
  local log="build/$1.log"
  mkdir -p build
  echo "== building ($1)"
  if ! { cmake --preset "$1" && cmake --build --preset "$1"; } >"$log" 2>&1; then
    tail -n 60 "$log" >&2
    echo "The build failed; the whole log is $log" >&2
    return 1
  fi
}
