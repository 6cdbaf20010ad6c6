//! What is on the disk after what.

use std::io::Write;

use super::*;

fn key() -> KeyRef {
    KeyRef { owner: Owner::anonymous(), program: ProgramId([1; 32]), key: KeyName([2; 16]) }
}

fn job() -> (JobRef, Job) {
    let id = JobId([3; 32]);
    (JobRef { owner: Owner::anonymous(), id }, Job::new(id, ProgramId([1; 32]), KeyName([2; 16])))
}

#[test]
fn keys_are_staged_then_whole() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    store.stage_keys(&key(), 0).unwrap().write_all(b"abc").unwrap();
    assert_eq!((store.staged_len(&key()), store.keys_len(&key())), (Some(3), None));
    drop(store);
    let store = Store::open(folder.path()).unwrap();
    store.stage_keys(&key(), 2).unwrap().write_all(b"xyz").unwrap();
    store.publish_keys(&key()).unwrap();
    assert_eq!((store.staged_len(&key()), store.keys_len(&key())), (None, Some(5)));
    assert_eq!(fs::read(store.keys_path(&key())).unwrap(), b"abxyz");
    assert_eq!(store.all_keys().unwrap(), (vec![(key(), 5)], vec![]));
    assert!(store.remove_keys(&key()).unwrap() && !store.remove_keys(&key()).unwrap());
}

#[test]
fn jobs_survive_and_unfinished_files_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let (at, job) = job();
    let (staged, mut file) = store.stage_input(&at.owner).unwrap();
    file.write_all(b"input").unwrap();
    store.add_job(&at, staged.path(), &job).unwrap();
    let left = folder.path().join("jobs/anonymous").join(format!("{}1-1", whole::UNFINISHED));
    fs::write(&left, b"half").unwrap();
    let (other, _file) = store.stage_input(&at.owner).unwrap();
    std::mem::forget((staged, other));
    drop(store);
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.job(&at).unwrap(), Some(job));
    assert_eq!(store.jobs(None).unwrap(), std::slice::from_ref(&at));
    assert!(!left.exists());
    assert_eq!(names(&folder.path().join("staging/anonymous")).unwrap(), Vec::<String>::new());
    assert!(store.remove_job(&at).unwrap());
    assert!(store.job(&at).unwrap().is_none() && !store.input_path(&at).exists());
}

#[test]
fn two_servers_do_not_share_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let _store = Store::open(folder.path()).unwrap();
    assert!(matches!(Store::open(folder.path()), Err(StoreError::InUse(_))));
}

#[test]
fn an_input_that_nobody_took_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let (staged, _file) = store.stage_input(&Owner::anonymous()).unwrap();
    let path = staged.path().to_path_buf();
    drop(staged);
    assert!(!path.exists());
}
