//! What belongs to the machine as a whole, whatever the network namespace.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Known;

/// The machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// `uname -r`: `6.18.44-generic`.
    pub kernel_release: Known<String>,
    /// Bytes in a page, in which `tcp_mem` counts.
    pub page_size_bytes: Known<u64>,
    /// `MemTotal` of /proc/meminfo, in bytes.
    pub memory_bytes: Known<u64>,
    /// Whether a hypervisor runs this machine (the `hypervisor` flag of /proc/cpuinfo), and its
    /// name where it is known (`amazon`, `kvm`); `None` within: bare metal.
    pub hypervisor: Known<Option<String>>,
    /// What the firmware calls this kind of machine (DMI's product name); on Amazon's newer
    /// hypervisor the instance type: `t3.micro`.
    pub product: Known<String>,
    /// Files that set kernel parameters at the start (/etc/sysctl.conf, /etc/sysctl.d, /run and
    /// /usr/lib), in the order in which they apply: a later one wins.
    pub sysctl_files: Known<Vec<SysctlFile>>,
    /// Limits on open files of programs that listen, one entry a process.
    pub process_limits: Known<Vec<ProcessLimit>>,
    /// Lines of the kernel's log that speak of the network (`/dev/kmsg`), oldest first.
    pub kernel_log: Known<Vec<LogLine>>,
    /// Oldest first.
    pub samples: Vec<HostSample>,
}

/// A file of kernel parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SysctlFile {
    /// Where.
    pub path: String,
    /// Its text, whole.
    pub text: String,
}

/// The limit on open files of one process that listens.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessLimit {
    /// Its name (`comm`).
    pub program: String,
    /// Its number, as seen from the program's own PID namespace.
    pub pid: u32,
    /// The soft limit on open files.
    pub open_files_max: u64,
    /// How many are open.
    pub open_files: Known<u64>,
}

/// A line of the kernel's log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogLine {
    /// Milliseconds since the machine started.
    pub at_ms: u64,
    /// Its text, without time and level.
    pub text: String,
}

/// The machine at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostSample {
    /// Milliseconds since the machine started (`CLOCK_BOOTTIME`): also the uptime.
    pub at_ms: u64,
    /// /proc/stat, the line `cpu`: all processors together.
    pub cpu: Known<Cpu>,
    /// /proc/stat, a line per online processor.
    pub cpus: Known<Vec<Cpu>>,
    /// `/proc/net/softnet_stat`, a row per online processor. Visible in the first network namespace
    /// only.
    pub softnet: Known<Vec<Softnet>>,
    /// /proc/interrupts, the lines of network queues.
    pub interrupts: Known<Vec<NetworkInterrupt>>,
    /// cgroups that have a quota of CPU time, or have been throttled.
    pub cgroups: Known<Vec<Cgroup>>,
    /// /proc/meminfo.
    pub memory: Known<SystemMemory>,
    /// Entries of neighbour tables and their limits are of the whole machine.
    pub neighbours: Known<Vec<super::Neighbours>>,
}

/// CPU time by use, in ticks of `USER_HZ` (1/100 s), since the start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of proc_stat(5)")]
pub struct Cpu {
    /// Number of the processor; meaningless for the total.
    pub id: u32,
    pub user: u64,
    pub nice: u64,
    pub system: u64,
    pub idle: u64,
    pub iowait: u64,
    pub irq: u64,
    pub softirq: u64,
    pub steal: u64,
}

impl Cpu {
    /// All of it; guest time is part of `user` and `nice`.
    pub fn total(&self) -> u64 {
        crate::words::sum([
            self.user,
            self.nice,
            self.system,
            self.idle,
            self.iowait,
            self.irq,
            self.softirq,
            self.steal,
        ])
    }
}

/// A row of `softnet_stat`: packets since the start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Softnet {
    /// The processor (column 13; before Linux 5.10 the row's place among online processors).
    pub cpu: u32,
    /// Packets processed.
    pub processed: u64,
    /// Packets dropped because the backlog queue was full.
    pub dropped: u64,
    /// Times the work was broken off with packets left.
    pub time_squeeze: u64,
    /// Times this processor was woken by another to process packets (RPS).
    pub received_rps: u64,
    /// Packets dropped by the flow limit.
    pub flow_limit: u64,
    /// Packets waiting now.
    pub backlog: Known<u64>,
}

/// An interrupt of a network queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkInterrupt {
    /// Its number or name, as in the first column.
    pub irq: String,
    /// The device and queue, as in the last column: `ens5-Tx-Rx-0`.
    pub name: String,
    /// Per online processor, since the start: (processor, count).
    pub per_cpu: Vec<(u32, u64)>,
}

/// Version of the cgroup interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CgroupVersion {
    /// `cpu.cfs_quota_us`, `throttled_time` in nanoseconds (given here in microseconds).
    #[serde(rename = "v1")]
    V1,
    /// `cpu.max`, `throttled_usec`.
    #[default]
    #[serde(rename = "v2")]
    V2,
}

/// A cgroup and how it was throttled, since it was made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cgroup {
    /// Below the cgroup file system: `/system.slice/nginx.service`.
    pub path: String,
    /// Of which interface.
    pub version: CgroupVersion,
    /// CPU time it may use in a period, in microseconds; `None` within: no quota.
    pub quota_us: Known<Option<u64>>,
    /// The period, in microseconds.
    pub period_us: Known<u64>,
    /// Periods in which it was runnable.
    pub periods: Known<u64>,
    /// Of these, those in which it was stopped for the rest.
    pub throttled_periods: Known<u64>,
    /// Time its threads stood still so, in microseconds, added up over threads.
    pub throttled_us: Known<u64>,
    /// Programs in it, by name, a few.
    pub programs: Vec<String>,
    /// Whether the program that looks is in it, or below it.
    pub is_own: bool,
}

/// What of the machine's memory is used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SystemMemory {
    /// `MemAvailable`, in bytes.
    pub available_bytes: u64,
    /// Further lines of /proc/meminfo by name, in bytes, where a rule needs them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub more_bytes: BTreeMap<String, u64>,
}
