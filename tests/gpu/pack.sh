#!/usr/bin/env bash
# pack.sh [--host] [BUILD [OUT]]: what run.sh needs on a machine that has a driver and the CUDA Toolkit and nothing else: the programs of the build folder (build/release) and the
# libraries that they load, but for glibc, the compiler's own, the driver and the toolkit's, in OUT/pack.tar.gz (build/gpu), at most 60 MiB. With --host the programs that have the
# device's double in them, under the same names, in OUT/host.tar.gz.
set -euo pipefail
host=false name=pack
if [ "${1:-}" = --host ]; then
  host=true name=host
  shift
fi
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$root/build/release} out=${2:-$root/build/gpu} most=$((60 << 20))
die() {
  echo "pack.sh: $*" >&2
  exit 1
}
set_up=$(mktemp -d)
trap 'rm -rf "$set_up"' EXIT
mkdir -p "$out" "$set_up/bin" "$set_up/lib"

# Of every machine that has the toolkit and its compiler.
there='^(ld-linux.*|linux-vdso|lib(c|m|dl|rt|pthread|resolv|util|stdc\+\+|gcc_s|cuda|cudart|cublas|cublasLt|nccl|nvrtc|nvJitLink|nvidia.*))\.so'

add_libraries() { # FILE: what it loads and a bare machine lacks; lines of ldd are "NAME => PATH (ADDRESS)"
  local soname arrow path rest loads
  loads=$(ldd "$1")
  while read -r soname arrow path rest; do
    if [ "$arrow" != "=>" ] || [[ $soname =~ $there ]] || [ -e "$set_up/lib/$soname" ]; then continue; fi
    [ "$path" != not ] || die "$1 needs $soname, which is $path $rest"
    cp -L "$path" "$set_up/lib/$soname"
  done <<<"$loads"
}
add() { # FILE NAME: a program or module, without what only a debugger reads
  [ -e "$1" ] || die "$1 is not there; allowed: a build folder that has it (with CUDA, or with --host a C++ compiler)"
  strip --strip-debug -o "$set_up/bin/$2" "$1"
  add_libraries "$1"
}

if $host; then
  add "$build/tests/pipelag_host_cuda" pipelag
  for program in ops bench peers; do add "$build/tests/gpu_${program}_host" "gpu_$program"; done
else
  add "$build/pipelag" pipelag
  add "$build/pipelag-cuda.so" pipelag-cuda.so
  for program in ops bench peers attention; do add "$build/tests/gpu_$program" "gpu_$program"; done
fi

# mpirun, and of Open MPI's modules those that one machine needs.
add_mpi() {
  local modules file
  modules=$(ompi_info --parsable --path pkglibdir | sed -n 's/^path:pkglibdir://p')
  mkdir -p "$set_up/mpi/bin" "$set_up/mpi/modules" "$set_up/mpi/share"
  cp -L "$(command -v mpirun)" "$set_up/mpi/bin/mpirun"
  add_libraries "$set_up/mpi/bin/mpirun"
  for file in "$modules"/mca_*.so; do
    [[ ! $file =~ ucx|ofi|psm|openib|usnic|spml|scoll|sshmem|memheap|atomic|monitoring|flux|gridengine|slurm|vprotocol|romio ]] || continue
    cp -L "$file" "$set_up/mpi/modules/"
    add_libraries "$file"
  done
  cp -L "$(ompi_info --parsable --path pkgdatadir | sed -n 's/^path:pkgdatadir://p')"/*.txt "$set_up/mpi/share/"
}
if compgen -G "$set_up/lib/libmpi.so*" >/dev/null && command -v mpirun ompi_info >/dev/null; then
  add_mpi
else
  echo "pack.sh: without mpirun: the step \"ranks\" will not be available"
fi

tar -C "$set_up" --sort=name --owner=0 --group=0 --mtime=@0 -cf - . | gzip -n >"$out/$name.tar.gz"
bytes=$(stat -c %s "$out/$name.tar.gz")
[ "$bytes" -le "$most" ] || die "$out/$name.tar.gz has $bytes bytes; allowed: $most"
echo "$out/$name.tar.gz: $((bytes >> 10)) KiB, $(find "$set_up/lib" -type f | wc -l) libraries"
