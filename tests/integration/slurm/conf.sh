# shellcheck shell=bash
# Functions of up.sh that print the configuration of the private cluster. They read its variables D, N, CPUS, MEM, GPUS, PORT, NET, DBD,
# CGROUP, HOST.

# slurm_conf: the file slurm.conf; a line of $CLUSTER_CONF replaces the line of the same key.
slurm_conf() {
  local own
  own=$(sed -nE 's/^([A-Za-z]+)=.*/\1/p' <<<"${CLUSTER_CONF:-}" | { grep -vE '^(Node|Partition)Name$' || true; } | paste -sd'|')
  { controller_conf && scheduling_conf && accounting_conf; } | grep -viE "^(${own:-none})="
  nodes_conf
  printf '%s\n' "${CLUSTER_CONF:-}"
}

controller_conf() {
  cat <<CONF
ClusterName=private
SlurmctldHost=$HOST($([ -n "$NET" ] && echo "$NET.254" || echo 127.0.0.1))
SlurmctldPort=$PORT
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
# A requeued job waits for cred_expire before it starts again: 120 s unless told, 5 is the least.
AuthInfo=socket=$D/munge/munge.sock,cred_expire=5
StateSaveLocation=$D/state
SlurmdSpoolDir=$D/spool/%n
# mpi/pmix makes \$TmpFS/spmix_appdir_UID_JOB.STEP on each node: one folder for all nodes would collide.
TmpFS=$D/tmp/%n
SlurmctldPidFile=$D/slurmctld.pid
SlurmdPidFile=$D/slurmd-%n.pid
SlurmctldLogFile=$D/log/slurmctld.log
SlurmdLogFile=$D/log/slurmd-%n.log
SlurmctldDebug=info
SlurmdDebug=info
SlurmctldTimeout=30
SlurmdTimeout=60
MessageTimeout=10
TCPTimeout=5
ProctrackType=proctrack/linuxproc
JobAcctGatherFrequency=task=1
$(memory_conf)
SwitchType=switch/none
MpiDefault=none
# A node may claim more CPUs than the host has.
SlurmdParameters=config_overrides
CONF
}

# memory_conf: cgroups need rights and mounts that a machine may lack, so memory is watched by polling unless asked: such a job ends as FAILED by signal 9, with
# "exceeded memory limit" in its output.
memory_conf() {
  if [ "$CGROUP" = 1 ]; then
    printf '%s\n' TaskPlugin=task/cgroup JobAcctGatherType=jobacct_gather/none
  else
    printf '%s\n' TaskPlugin=task/none JobAcctGatherType=jobacct_gather/linux JobAcctGatherParams=OverMemoryKill
  fi
}

# cgroup_conf: slurmd reads it in any case; the first lines keep it away from systemd.
cgroup_conf() {
  printf '%s\n' CgroupPlugin=cgroup/v1 CgroupAutomount=no ConstrainCores=no ConstrainDevices=no \
    "ConstrainRAMSpace=$([ "$CGROUP" = 1 ] && echo yes || echo no)"
}

scheduling_conf() {
  cat <<CONF
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,sched_min_interval=0,batch_sched_delay=0,bf_interval=1,default_queue_depth=10000,bf_max_job_test=10000,bf_window=1440,bf_resolution=60
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=$((MEM / CPUS))
PriorityType=priority/basic
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
MaxArraySize=${CLUSTER_MAX_ARRAY:-1001}
MaxJobCount=10000
MinJobAge=${CLUSTER_MIN_JOB_AGE:-600}
KillWait=3
# A rank that dies takes its step down; otherwise srun waits for the others for ever.
KillOnBadExit=1
InactiveLimit=0
# A node that an administrator set down stays down.
ReturnToService=1
CONF
}

accounting_conf() {
  if [ "$DBD" = 1 ]; then
    # Without AccountingStoragePass the clients go to the packaged munge socket and hang.
    cat <<CONF
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$((PORT + N + 1))
AccountingStoragePass=$D/munge/munge.sock
CONF
  else
    printf '%s\n' AccountingStorageType=accounting_storage/none
  fi
}

nodes_conf() {
  local i gres=''
  if [ "$GPUS" -gt 0 ]; then
    echo GresTypes=gpu
    gres=" Gres=gpu:$GPUS"
  fi
  for ((i = 1; i <= N; i++)); do
    echo "NodeName=n$i NodeHostname=$([ -n "$NET" ] && echo "n$i" || echo "$HOST") NodeAddr=$([ -n "$NET" ] && echo "$NET.$i" || echo 127.0.0.1)" \
      "Port=$((PORT + i)) CPUs=$CPUS RealMemory=$MEM$gres State=UNKNOWN"
  done
  # low and scrap give way to debug: low is requeued, scrap is cancelled.
  cat <<CONF
PartitionName=DEFAULT Nodes=ALL State=UP MaxTime=UNLIMITED DefaultTime=10
PartitionName=debug Default=YES PriorityTier=10 PreemptMode=OFF
PartitionName=low PriorityTier=1 PreemptMode=REQUEUE GraceTime=0
PartitionName=scrap PriorityTier=1 PreemptMode=CANCEL GraceTime=0
CONF
}

# gres_conf: pretended GPUs; Slurm wants character devices, and then sets CUDA_VISIBLE_DEVICES.
gres_conf() {
  local g
  mkdir -p "$D/dev"
  for ((g = 0; g < GPUS; g++)); do
    mknod "$D/dev/gpu$g" c 1 3
    echo "Name=gpu File=$D/dev/gpu$g"
  done
}

slurmdbd_conf() {
  cat <<CONF
AuthType=auth/munge
AuthInfo=socket=$D/munge/munge.sock
DbdHost=$HOST
DbdAddr=127.0.0.1
DbdPort=$((PORT + N + 1))
SlurmUser=root
LogFile=$D/log/slurmdbd.log
PidFile=$D/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$((PORT + N + 2))
StorageUser=slurm
StoragePass=private
StorageLoc=slurm_acct_db
CONF
}

# env_sh: what a client needs, without anything of a job that this shell may itself run in.
env_sh() {
  cat <<ENV
unset \${!SLURM@} \${!SBATCH_@} \${!SQUEUE_@} \${!SACCT_@} \${!SINFO_@} \${!SALLOC_@} \${!SRUN_@} \${!PMI@}
export SLURM_CONF='$D/slurm.conf' MUNGE_SOCKET='$D/munge/munge.sock'
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
ENV
  # Several slurmd of one host name share /dev/shm, where Open MPI's segment names would collide.
  [ -n "$NET" ] || echo "export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo"
}
