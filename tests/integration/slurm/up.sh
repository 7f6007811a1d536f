#!/usr/bin/env bash
# up.sh FOLDER: starts a private, real Slurm (munged, slurmctld, several slurmd) as root, without systemd and without cgroups, and writes FOLDER/env.sh for its
# clients. FOLDER is new or empty; its path is short (a socket lies in it) and open to others (munged refuses a private one). Exit 2: this machine can't.
#   CLUSTER_NODES        nodes n1..                                                                       (default 4)
#   CLUSTER_CPUS         CPUs that each node claims, may exceed the host's                                (default 4)
#   CLUSTER_MEM          RealMemory of a node in MiB                                                      (default 4000)
#   CLUSTER_GPUS         pretended GPUs of a node                                                         (default 0)
#   CLUSTER_MAX_ARRAY    MaxArraySize: the highest index is one less                                      (default 1001)
#   CLUSTER_MIN_JOB_AGE  seconds for which slurmctld remembers a finished job                             (default 600)
#   CLUSTER_NET          1: each node in its own network, mount and UTS namespace; 0: all on loopback     (default: 1 where possible)
#   CLUSTER_DBD          1: also a private mariadbd and slurmdbd, so that sacct and sacctmgr work         (default 0)
#   CLUSTER_CGROUP       1: memory limits by cgroups v1, so that a job can end as OUT_OF_MEMORY; one such cluster at a time  (default 0)
#   CLUSTER_CONF         lines for slurm.conf; a key that is there already is replaced
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/conf.sh"
D=$1 N=${CLUSTER_NODES:-4} CPUS=${CLUSTER_CPUS:-4} MEM=${CLUSTER_MEM:-4000} GPUS=${CLUSTER_GPUS:-0} DBD=${CLUSTER_DBD:-0} CGROUP=${CLUSTER_CGROUP:-0}
HOST=$(hostname -s) NET='' BRIDGE=''
PATH=$PATH:/usr/sbin:/sbin

refuse() {
  echo "up.sh: $*" >&2
  exit 2
}
die() {
  echo "up.sh: $*" >&2
  tail -n 15 "$D"/log/*.log >&2 || true
  "$here/down.sh" "$D" || true
  exit 1
}
[ "$(id -u)" = 0 ] || refuse "a private Slurm needs root"
for b in munged mungekey munge slurmctld slurmd sinfo scontrol; do
  command -v "$b" >/dev/null || refuse "$b is missing: install slurm-wlm and munge"
done
[ "$CGROUP" = 0 ] || { [ -e /sys/fs/cgroup/memory/release_agent ] && [ ! -e /sys/fs/cgroup/memory/slurm_n1 ]; } ||
  refuse "no memory controller of cgroups v1, or another Slurm uses it"
[ ${#D} -le 80 ] || refuse "$D is too long for a socket"
[ -z "$(ls -A "$D" 2>/dev/null)" ] || refuse "$D is not empty"

umask 022
mkdir -p "$D"/{munge,log,spool,state,tmp}
chmod 0755 "$D"
chmod 0700 "$D/state"
: >"$D/pids"

# can_net: everything that a node in namespaces needs, tried in a throwaway namespace.
can_net() {
  command -v ip >/dev/null && unshare --net --mount --uts -- sh -c 'ip link add br0 type bridge && ip link add v0 type veth peer name v1 &&
    hostname n1 && mount -t tmpfs shm /dev/shm && mount --bind /etc/hosts /etc/hosts' 2>/dev/null
}
busy() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
ports_free() {
  local p
  for ((p = PORT; p <= PORT + N + 2 * DBD; p++)); do ! busy $p || return 1; done
}

# Each cluster has a slot: 40 ports below the ephemeral ones, and a subnet. Making the bridge reserves it; without one, slots differ by process id.
net=${CLUSTER_NET:-$(can_net && echo 1 || echo 0)}
for ((try = 0; ; try++)); do
  [ $try -lt 200 ] || die "no free slot"
  slot=$((($$ + try) % 200)) PORT=$((20000 + 40 * (($$ + try) % 200)))
  ports_free || continue
  [ "$net" = 1 ] || break
  if ip link add "plag$slot" type bridge 2>"$D/log/net.log"; then
    BRIDGE=plag$slot NET=10.77.$slot
    break
  fi
  grep -q 'File exists' "$D/log/net.log" || die "$(cat "$D/log/net.log")"
done

make_net() {
  local i
  echo "$BRIDGE" >"$D/bridge"
  ip addr add "$NET.254/24" dev "$BRIDGE"
  ip link set "$BRIDGE" up
  printf '127.0.0.1 localhost\n%s\n' "$NET.254 $HOST" >"$D/hosts"
  for ((i = 1; i <= N; i++)); do
    echo "$NET.$i n$i" >>"$D/hosts"
    ip netns add "$BRIDGE-n$i"
    ip link add "$BRIDGE.$i" type veth peer name eth0 netns "$BRIDGE-n$i"
    ip link set "$BRIDGE.$i" master "$BRIDGE" up
    ip -n "$BRIDGE-n$i" addr add "$NET.$i/24" dev eth0
    ip -n "$BRIDGE-n$i" link set eth0 up
    ip -n "$BRIDGE-n$i" link set lo up
  done
}

# start NAME COMMAND...: a daemon in a session of its own, holding none of our files; its id and start time go to the file pids.
start() {
  local name=$1
  shift
  setsid -- "$@" </dev/null >>"$D/log/$name.out.log" 2>&1 &
  echo "$name $! $(awk '{ sub(/.*\) /, ""); print $20 }' "/proc/$!/stat")" >>"$D/pids"
}
# wait_for SECONDS COMMAND...; timeout, because a client with a wrong socket hangs.
wait_for() {
  local end=$((SECONDS + $1))
  shift
  until timeout 5 "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || die "no answer: $*"
    sleep 0.05
  done
}

start_accounting() {
  local sql=(mariadb --no-defaults -u root -S "$D/db.sock")
  command -v mariadbd slurmdbd >/dev/null || die "slurmdbd or mariadb-server is missing"
  mkdir -m 0700 "$D/db"
  mariadb-install-db --no-defaults --user=root --datadir="$D/db" --skip-test-db --auth-root-authentication-method=normal >"$D/log/db.log" 2>&1 || die "mariadb-install-db"
  start mariadbd mariadbd --no-defaults --user=root --datadir="$D/db" --socket="$D/db.sock" --pid-file="$D/mariadbd.pid" --bind-address=127.0.0.1 \
    --port=$((PORT + N + 2)) --innodb-buffer-pool-size=64M --innodb-log-file-size=32M --innodb-flush-log-at-trx-commit=0 --innodb-lock-wait-timeout=900
  wait_for 20 "${sql[@]}" -e 'select 1'
  "${sql[@]}" -e "create database slurm_acct_db; create user slurm@'127.0.0.1' identified by 'private'; create user slurm@localhost identified by 'private';
    grant all on slurm_acct_db.* to slurm@'127.0.0.1', slurm@localhost"
  (umask 077 && slurmdbd_conf >"$D/slurmdbd.conf")
  start slurmdbd slurmdbd -D
  wait_for 30 sacctmgr -n -i list cluster
  sacctmgr -Q -i add cluster private >>"$D/log/db.log" 2>&1
}

start_node() { # N; each exec keeps the process id
  mkdir -p "$D/spool/n$1" "$D/tmp/n$1"
  if [ -n "$NET" ]; then
    start "slurmd-n$1" nsenter --net="/run/netns/$BRIDGE-n$1" unshare --mount --uts -- bash -c 'set -e
      hostname "$1"; mount --make-rprivate /; mount -t tmpfs -o mode=1777 shm /dev/shm; mount --bind "$2/hosts" /etc/hosts
      exec slurmd -D -N "$1" -f "$2/slurm.conf"' start "n$1" "$D"
  else
    start "slurmd-n$1" slurmd -D -N "n$1" -f "$D/slurm.conf"
  fi
}
nodes_idle() { [ "$(sinfo -h -N -p debug -o %T | grep -cx idle)" = "$N" ]; }

trap 'die "line $LINENO failed"' ERR
[ -z "$NET" ] || make_net
slurm_conf >"$D/slurm.conf"
cgroup_conf >"$D/cgroup.conf"
[ "$GPUS" = 0 ] || gres_conf >"$D/gres.conf"
env_sh >"$D/env.sh"
. "$D/env.sh"

mungekey --create --keyfile="$D/munge/munge.key"
start munged munged --foreground --key-file="$D/munge/munge.key" --socket="$D/munge/munge.sock" --pid-file="$D/munge/munged.pid" \
  --seed-file="$D/munge/munged.seed" --log-file="$D/log/munged.log" --num-threads=2
wait_for 10 munge -S "$D/munge/munge.sock" -n
[ "$DBD" = 0 ] || start_accounting
start slurmctld slurmctld -D -i -f "$D/slurm.conf"
for ((i = 1; i <= N; i++)); do start_node $i; done
export -f nodes_idle
export N
wait_for 20 bash -c nodes_idle
