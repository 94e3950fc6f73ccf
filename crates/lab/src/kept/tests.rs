//! Guards against losing the data itself, its holes, or a report of damage.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;

use rumba_engine_api::engine::KEPT;
use rumba_engine_api::workload::State;

use super::*;
use crate::provision::tests::Host;
use crate::provision::{DataDir, Owner};

static GO: AtomicUsize = AtomicUsize::new(0);

impl Host {
    /// A data directory like an engine's: small and large files, holes, directories, modes.
    fn loaded(&self) -> DataDir {
        let owner = Owner::this_process("test", 1).unwrap();
        let dir = DataDir::create(&self.path("load"), &owner, &self.ledger).unwrap();
        let data = dir.engine_dir();
        fs::create_dir_all(data.join("a/b/empty")).unwrap();
        fs::create_dir(data.join(KEPT)).unwrap();
        fs::write(data.join(KEPT).join("error.log"), "ready").unwrap();
        fs::write(data.join("nothing"), "").unwrap();
        fs::write(data.join("a/b/small"), "row").unwrap();
        fs::set_permissions(data.join("a/b/small"), fs::Permissions::from_mode(0o640)).unwrap();
        let large: Vec<u8> = (0..3_000_001u32).flat_map(|number| number.to_le_bytes()).collect();
        fs::write(data.join("large"), large).unwrap();
        let sparse = fs::File::create(data.join("sparse")).unwrap();
        sparse.set_len(1 << 40).unwrap();
        sparse.write_all_at(&[7; 5000], 3 << 30).unwrap();
        sparse.write_all_at(b"end", (1 << 40) - 3).unwrap();
        dir
    }

    fn kept(&self) -> KeptData {
        KeptData::keep(self.loaded(), None, origin(), State::from([("rows".into(), 7)]), &GO).unwrap()
    }

    fn target(&self) -> PathBuf {
        let target = self.path("copy");
        fs::create_dir(&target).unwrap();
        target
    }
}

fn origin() -> Origin {
    Origin { results: "/results".into(), trial: "001-x-load".into(), started: "2020-01-01T00:00:00Z".into() }
}

/// The share of a file's pages that are in the page cache.
fn cached(path: &Path) -> f64 {
    let file = fs::File::open(path).unwrap();
    let bytes = file.metadata().unwrap().len() as usize;
    let mut pages = vec![0u8; bytes.div_ceil(4096)];
    // SAFETY: the mapping has the file's length and is only queried; `pages` has a byte for each page.
    unsafe {
        use std::os::fd::AsRawFd;
        let map = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(map, libc::MAP_FAILED);
        assert_eq!(libc::mincore(map, bytes, pages.as_mut_ptr()), 0);
        libc::munmap(map, bytes);
    }
    pages.iter().filter(|page| **page & 1 == 1).count() as f64 / pages.len() as f64
}

#[test]
fn a_copy_is_complete_with_its_holes_and_its_modes() {
    let host = Host::new();
    let (kept, target) = (host.kept(), host.target());
    kept.copy(&target, &GO).unwrap();
    let from = host.path("load/data");
    for file in ["nothing", "a/b/small", "large"] {
        assert!(fs::read(from.join(file)).unwrap() == fs::read(target.join(file)).unwrap(), "{file}");
    }
    assert!(target.join("a/b/empty").is_dir());
    assert_eq!(fs::metadata(target.join("a/b/small")).unwrap().mode() & 0o777, 0o640);
    assert!(!target.join(KEPT).exists(), "the log of another instance is not this one's");
    let sparse = fs::File::open(target.join("sparse")).unwrap();
    assert_eq!(sparse.metadata().unwrap().len(), 1 << 40);
    assert!(sparse.metadata().unwrap().blocks() < 256, "a terabyte of holes stays holes");
    let mut bytes = [0; 5001];
    sparse.read_exact_at(&mut bytes, 3 << 30).unwrap();
    assert_eq!((bytes[0], bytes[4999], bytes[5000]), (7, 7, 0));
    sparse.read_exact_at(&mut bytes[..3], (1 << 40) - 3).unwrap();
    assert_eq!(&bytes[..3], b"end");
}

#[test]
fn copy_has_separate_blocks_and_is_not_in_the_page_cache() {
    let host = Host::new();
    let (kept, target) = (host.kept(), host.target());
    kept.copy(&target, &GO).unwrap();
    let (from, to) = (host.path("load/data/large"), target.join("large"));
    assert!(!is_shared(&fs::File::open(&to).unwrap()).unwrap());
    if rustix::fs::statfs(&to).unwrap().f_type == 0x0102_1994 {
        return; // A tmpfs is the page cache.
    }
    for file in [from, to] {
        assert!(cached(&file) < 0.01, "{}: {} is cached", file.display(), cached(&file));
    }
}

/// A filesystem that deduplicates: every file but the first shares blocks with others.
#[test]
fn copy_with_shared_blocks_is_refused_without_another_load() {
    let host = Host::new();
    let (_kept, target) = (host.kept(), host.target());
    let data = host.path("load/data");
    let contents = copy::Contents::of(&data, &GO).unwrap();
    let large = |file: &fs::File| Ok(file.metadata()?.len() > 1 << 20);
    let refused = contents.copy_unless(large, &data, &target, &GO).unwrap_err();
    assert!(matches!(&refused, CopyError::Shared { path } if path.starts_with(&target)), "{refused}");
    let reported = refused.to_string();
    assert!(reported.contains("shares blocks of") && reported.contains("set run.data_dir"), "{reported}");
    assert!(!refused.requests_for_another_load());
}

#[test]
fn altered_kept_data_is_not_started_from() {
    type Harm = fn(&Path);
    let harms: [Harm; 4] = [
        |data| {
            fs::OpenOptions::new().write(true).open(data.join("large")).unwrap().write_all_at(b"x", 9_000_000).unwrap()
        },
        |data| fs::remove_file(data.join("a/b/small")).unwrap(),
        |data| fs::write(data.join("a/b/small"), "rows").unwrap(),
        |data| {
            fs::OpenOptions::new().write(true).open(data.join("sparse")).unwrap().write_all_at(b"x", 1 << 35).unwrap()
        },
    ];
    for (number, harm) in harms.iter().enumerate() {
        let host = Host::new();
        let (kept, target) = (host.kept(), host.target());
        harm(&host.path("load/data"));
        let error = kept.copy(&target, &GO).unwrap_err();
        assert!(error.requests_for_another_load(), "harm {number}: {error}");
    }
}

#[test]
fn a_copy_that_cannot_be_written_is_no_reason_to_load_again() {
    let host = Host::new();
    let (kept, target) = (host.kept(), host.target());
    fs::write(target.join("large"), "foreign").unwrap();
    let error = kept.copy(&target, &GO).unwrap_err();
    assert!(!error.requests_for_another_load() && error.to_string().contains("large"), "{error}");
}

#[test]
fn stop_request_ends_a_copy() {
    let host = Host::new();
    let (kept, target) = (host.kept(), host.target());
    assert!(matches!(kept.copy(&target, &AtomicUsize::new(1)), Err(CopyError::Interrupted)));
}

/// A server that root runs as another user may have left processes of that user.
#[test]
fn copy_neither_follows_nor_waits_for_a_replaced_file() {
    let host = Host::new();
    let (kept, from) = (host.kept(), host.path("load/data"));
    fs::write(host.path("elsewhere"), "row").unwrap();
    let plant: [&dyn Fn(); 3] = [
        &|| symlink(host.path("elsewhere"), from.join("a/b/small")).unwrap(),
        &|| {
            rustix::fs::mknodat(
                rustix::fs::CWD,
                from.join("a/b/small"),
                rustix::fs::FileType::Fifo,
                rustix::fs::Mode::from_raw_mode(0o600),
                0,
            )
            .unwrap()
        },
        &|| {
            fs::rename(from.join("a"), host.path("moved")).unwrap();
            fs::write(host.path("moved/b/small"), "row").unwrap();
            symlink(host.path("moved"), from.join("a")).unwrap();
        },
    ];
    for (number, put) in plant.iter().enumerate() {
        let _ = fs::remove_file(from.join("a/b/small"));
        put();
        let target = host.path(&format!("copy-{number}"));
        fs::create_dir(&target).unwrap();
        let refused = kept.copy(&target, &GO).unwrap_err();
        assert!(matches!(refused, CopyError::Damaged { .. }), "{refused}");
    }
}

#[test]
fn data_with_a_symlink_is_not_kept() {
    let host = Host::new();
    let dir = host.loaded();
    symlink("/etc", dir.engine_dir().join("a/link")).unwrap();
    let error = KeptData::keep(dir, None, origin(), State::new(), &GO).unwrap_err();
    assert!(error.to_string().contains("is a link"), "{error}");
    assert!(!host.path("load").exists(), "what cannot be kept is removed");
}

#[test]
fn kept_data_is_removed_on_drop_and_adopted_by_own_results_only() {
    let host = Host::new();
    drop(host.kept());
    assert!(!host.path("load").exists());
    let owner = Owner::this_process("test", 1).unwrap();
    for (is_own, origin_of_later) in [(true, origin()), (false, Origin { results: "/others".into(), ..origin() })] {
        // Left by a process that has ended: of an earlier boot.
        let mut dead = Owner::this_process("test", 1).unwrap();
        dead.process.boot_id = "an earlier one".to_owned();
        let dir = DataDir::create(&host.path("load"), &dead, &host.ledger).unwrap();
        fs::write(dir.engine_dir().join("table"), "rows").unwrap();
        std::mem::forget(KeptData::keep(dir, None, origin(), State::from([("rows".into(), 7)]), &GO).unwrap());
        let adopted = KeptData::adopt(&host.path("load"), &origin_of_later, &owner, &host.ledger).unwrap();
        assert_eq!(adopted.is_some(), is_own);
        if let Some(kept) = adopted {
            assert_eq!(kept.state().get("rows"), Some(&7));
            kept.remove().unwrap();
        }
        assert!(!host.path("load").exists(), "of others' data nothing stays");
    }
    assert!(KeptData::adopt(&host.path("load"), &origin(), &owner, &host.ledger).unwrap().is_none());
}
