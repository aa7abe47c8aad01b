//! Who may read a store, and what readers leave as it was.

use super::*;

#[test]
fn many_read_a_closed_store_at_once_and_no_writer_comes_between() {
    let dir = dosmos_testseeds::scratch();
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    writer.commit(&commit(1, records(0..10))).unwrap();
    writer.close().unwrap();
    let readers = [(); 3].map(|()| StoreSource::open(dir.path()).unwrap());
    for reader in &readers {
        let found = block_on(reader.records(&Filter::default(), 0))
            .unwrap()
            .records;
        assert_eq!(found, records(0..10));
    }
    let error = StoreWriter::open(dir.path(), &identity()).unwrap_err();
    assert!(error.to_string().contains("another process"), "{error}");
    drop(readers);
    StoreWriter::open(dir.path(), &identity()).unwrap();
}

#[test]
fn a_store_in_use_names_who_answers() {
    let dir = dosmos_testseeds::scratch();
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    writer.answers_at("127.0.0.1:4711").unwrap();
    writer.commit(&commit(1, records(0..10))).unwrap();
    let error = StoreSource::open(dir.path()).unwrap_err();
    assert!(
        error.to_string().contains("--emp 127.0.0.1:4711"),
        "{error}"
    );
    writer.close().unwrap();
    let source = StoreSource::open(dir.path()).unwrap();
    assert_eq!(block_on(source.catalog()).unwrap().records, 10);
}

#[test]
fn wrong_directories_are_refused_by_name() {
    let dir = dosmos_testseeds::scratch();
    let error = StoreSource::open(dir.path()).unwrap_err();
    assert!(
        error.to_string().contains("is not a trace store"),
        "{error}"
    );
    drop(StoreWriter::open(dir.path(), &identity()).unwrap());
    let other = Identity {
        event_manager: "emp1".into(),
        ..identity()
    };
    let error = StoreWriter::open(dir.path(), &other).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("emp0 of test") && text.contains("emp1 of test"),
        "{text}"
    );
    let another_run = Identity {
        run: crate::run::RunId::from_bits(2),
        ..identity()
    };
    let error = StoreWriter::open(dir.path(), &another_run).unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
}

#[test]
fn a_directory_of_somebody_else_is_refused_and_left_as_it_is() {
    let dir = dosmos_testseeds::scratch();
    for name in [
        "terraform.tfstate",
        "mydb.backup/precious",
        "db.old/precious",
    ] {
        let home = tempfile::tempdir_in(dir.path()).unwrap();
        let file = home.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, b"mine").unwrap();
        let before = files(home.path());
        let error = StoreWriter::open(home.path(), &identity()).unwrap_err();
        assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
        assert!(files(home.path()) == before, "{name}");
    }
}

#[test]
fn files_that_are_not_of_the_store_are_never_removed() {
    let dir = dosmos_testseeds::scratch();
    drop(StoreWriter::open(dir.path(), &identity()).unwrap());
    let names = [
        "terraform.tfstate",
        "mydb.backup/x",
        "log.1",
        "log.0000",
        "log.000.bak",
        "g0.log.000",
        "g1.log.x",
        "xlog.001",
        "old.state",
        "gg1.state",
        "state.bak",
        "run.json",
        "log.777/x",
    ];
    for name in names {
        let file = dir.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, b"mine").unwrap();
    }
    // These are of generations that do not count.
    for name in ["g3.log.001", "g3.state"] {
        std::fs::write(dir.path().join(name), b"old").unwrap();
    }
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    writer.rotate_at(1);
    for i in 0..20 {
        writer.commit(&commit(i + 1, records(i..i + 1))).unwrap();
    }
    writer.retain(Retention {
        max_bytes: Some(1),
        max_age: None,
    });
    let fresh = || Snapshot {
        metas: MetaState::new(identity().topology, EmpId(0)),
        due: Vec::new(),
    };
    writer.maintain(Nanos(10_000_000_000), fresh).unwrap();
    writer.close().unwrap();
    for name in names {
        assert_eq!(
            std::fs::read(dir.path().join(name)).unwrap(),
            b"mine",
            "{name}"
        );
    }
    assert!(!dir.path().join("g3.log.001").exists() && !dir.path().join("g3.state").exists());
}

/// Asks a store everything, as several readers at once.
fn ask_everything(dir: &Path, expected: &[Record]) {
    let readers = [(); 3].map(|()| StoreSource::open(dir).unwrap());
    for source in readers {
        assert_eq!(all_of(&source), expected);
        let metas = block_on(source.meta_objects(&MetaQuery::default())).unwrap();
        assert!(!metas.primaries.is_empty());
        assert_eq!(source.verify().damaged, 0);
    }
}

#[test]
fn reading_changes_no_byte_of_a_store_closed_or_left_by_a_crash() {
    let dir = dosmos_testseeds::scratch();
    let (closed, crashed) = (dir.path().join("a"), dir.path().join("b"));
    let (mut writer, _) = StoreWriter::open(&closed, &identity()).unwrap();
    writer.commit(&commit(1, records(0..3_000))).unwrap();
    copy(&closed, &crashed);
    writer.close().unwrap();
    for store in [&closed, &crashed] {
        let before = files(store);
        ask_everything(store, &records(0..3_000));
        assert!(files(store) == before, "a reader changed it");
        let (mut again, _) = StoreWriter::open(store, &identity()).unwrap();
        again.commit(&commit(2, records(3_000..3_001))).unwrap();
    }
}

#[test]
fn a_store_on_a_medium_that_cannot_be_written_is_read() {
    use std::os::unix::fs::PermissionsExt;
    let dir = dosmos_testseeds::scratch();
    let store = dir.path().join("store");
    let (mut writer, _) = StoreWriter::open(&store, &identity()).unwrap();
    writer.commit(&commit(1, records(0..3_000))).unwrap();
    writer.close().unwrap();
    let everything: Vec<_> = files(&store).into_keys().chain([store.clone()]).collect();
    let allow = |mode| {
        for path in &everything {
            let mode = if path.is_dir() { mode | 0o111 } else { mode };
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        }
    };
    allow(0o444);
    ask_everything(&store, &records(0..3_000));
    allow(0o644);
}

#[test]
fn nobody_else_can_look_into_a_store() {
    use std::os::unix::fs::PermissionsExt;
    let dir = dosmos_testseeds::scratch();
    let store = dir.path().join("new/store");
    let (mut writer, _) = StoreWriter::open(&store, &identity()).unwrap();
    writer.commit(&commit(1, records(0..10))).unwrap();
    writer.close().unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o077;
    assert_eq!(mode(&store), 0);
    for name in ["manifest.json", "log.000", "ledger", "lock"] {
        assert_eq!(mode(&store.join(name)), 0, "{name}");
    }
}

#[test]
fn a_store_gives_the_metas_its_writer_had() {
    let dir = dosmos_testseeds::scratch();
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    let mut live = MetaState::new(identity().topology, EmpId(0));
    let received = Event::Received {
        from: EmpId(1),
        content: content(1),
    };
    writer
        .commit(&Commit {
            events: vec![(40, received)],
            ..commit(1, records(0..50))
        })
        .unwrap();
    records(0..50).iter().for_each(|r| live.apply(r));
    live.receive(EmpId(1), &content(1));
    writer.close().unwrap();
    let source = StoreSource::open(dir.path()).unwrap();
    let metas = block_on(source.meta_objects(&MetaQuery::default())).unwrap();
    let expected = live.query(&MetaQuery::default(), metas.completeness.clone());
    assert_eq!(metas, expected);
    assert!(metas.primaries.iter().any(|p| p.reads_on_copies == 3));
}
