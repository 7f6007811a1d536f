# A floor includes only lower floors, and outside libraries have one door each.
root=$(dirname "$TESTS_SOURCE")
cd "$root"
failed=0

# check FOLDER ALLOWED...: project includes below FOLDER name FOLDER itself or ALLOWED only.
check() {
  local folder=$1 bad
  shift
  bad=$(grep -rnE --include='*.[ch]' --include='*.cu' --include='*.def' '^ *# *include "' "$folder" |
    grep -vE "include \"($(IFS='|'; echo "$folder|$*"))/" | grep -v 'include "pl_version.h"' || true)
  [ -z "$bad" ] || { echo "$folder may include $folder $* only:"; echo "$bad"; failed=1; }
}
check core
check optim core
check models core
check sweeps core
check results core
check analysis core sweeps results
check runners core optim models sweeps results analysis

# door HEADER FILE: HEADER is included by FILE alone.
door() {
  local seen
  seen=$(grep -rlE --include='*.[ch]' "# *include <$1>" core optim models sweeps results analysis runners | sort | tr '\n' ' ')
  [ "$seen" = "$2 " ] || { echo "<$1> is included by: $seen; allowed: $2"; failed=1; }
}
door jansson.h core/base/json.c
door hdf5.h results/h5_file.c
door cblas.h core/device/cpu/gemm.c
door mpi.h core/pipeline/mpi/shared.h

# The check itself can fail.
planted=$(mktemp -d)
mkdir -p "$planted/core" && echo "#include \"optim/optim.h\"" >"$planted/core/x.c"
(cd "$planted" && grep -rnE '^ *# *include "' core | grep -qvE 'include "(core)/') || { echo "the check sees nothing"; failed=1; }
rm -r "$planted"
exit $failed
