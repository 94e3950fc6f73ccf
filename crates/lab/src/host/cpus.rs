//! The CPUs that this process may use.

use std::io;

use rumba_engine_api::cpus::CpuSet;

/// The CPUs on which the calling thread may run: those of its affinity that its control group allows.
pub fn allowed_cpus() -> io::Result<CpuSet> {
    let mask = rustix::thread::sched_getaffinity(None)?;
    let cpus =
        (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| mask.is_set(*cpu)).filter_map(|cpu| cpu.try_into().ok());
    CpuSet::of(cpus).ok_or_else(|| io::Error::other("the kernel reports no CPU for this process"))
}
