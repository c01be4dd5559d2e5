//! How options combine, and that invalid combinations are refused before anything starts.

use std::fs;

use clap::Parser as _;
use engine::SeedLimit;
use transfer::{ConnectionPlan, RequestBody, RetryPolicy, SafeUrl};

use super::*;

#[derive(Debug, clap::Parser)]
struct Line {
    #[command(flatten)]
    get: GetArgs,
}

fn plan(arguments: &[&str]) -> Result<Plan, UsageError> {
    let line = Line::try_parse_from(std::iter::once(&"get").chain(arguments)).expect("the arguments are well-formed");
    Plan::new(line.get, &["http", "https"])
}

fn only_task(arguments: &[&str]) -> TaskSpec {
    let tasks: Vec<_> = plan(arguments).unwrap().wanted.tasks().collect();
    assert_eq!(tasks.len(), 1);
    tasks.into_iter().next().unwrap()
}

/// A plan for an input file with this text.
fn plan_of_list(text: &str, arguments: &[&str]) -> Result<Plan, UsageError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("list.txt");
    fs::write(&path, text).unwrap();
    let list = ["-i", path.to_str().unwrap()];
    plan(&[&list, arguments].concat())
}

#[test]
fn one_url_with_everything() {
    let task = only_task(&[
        "https://a.test/x",
        "--mirror=http://b.test/x",
        "--mirror=http://c.test/x",
        "-d/data",
        "-osub/name.bin",
        "--checksum=crc32=352441c2",
        "--conflict=overwrite",
        "--server-time",
        "-s4",
        "-x2",
        "-k2.5M",
        "--header=A: 1",
        "--header=B: 2",
        "--user-agent=me",
        "--referer=http://r.test/",
        "--cookie=c=1",
        "--http-user=u",
        "--http-password=p",
        "--proxy=socks5://localhost:1",
        "--insecure",
        "--form=k=v",
    ]);
    let urls: Vec<_> = task.urls.iter().map(SafeUrl::expose).collect();
    assert_eq!(urls, ["https://a.test/x", "http://b.test/x", "http://c.test/x"]);
    assert_eq!(task.save_dir.as_deref(), Some(Path::new("/data/sub")));
    assert_eq!(task.file_name.unwrap().as_str(), "name.bin");
    assert_eq!(task.on_conflict, Some(OnConflict::Overwrite));
    assert!(task.adopt && task.use_server_time == Some(true) && task.ignore_tls_errors);
    assert_eq!(task.checksum.unwrap().to_string(), "crc32=352441c2");
    assert_eq!(
        (task.segments, task.max_connections, task.min_split_bytes),
        (4, Some(2), Some(5 << 19))
    );
    assert_eq!(
        task.proxy,
        ProxyChoice::Through(SafeUrl::parse("socks5://localhost:1").unwrap())
    );
    let request = task.request;
    assert_eq!(request.method.as_deref(), Some("POST"));
    assert_eq!(
        request.body,
        Some(RequestBody::FormData(vec![("k".to_owned(), vec!["v".to_owned()])]))
    );
    assert_eq!(request.headers.len(), 2);
    assert_eq!(
        (request.user_agent.as_str(), request.referrer.as_str()),
        ("me", "http://r.test/")
    );
    assert_eq!(request.cookies.expose(), "c=1");
    assert_eq!(request.credentials.unwrap().password.expose(), "p");
}

#[test]
fn the_defaults_are_the_transports() {
    let plan = plan(&["http://a.test/"]).unwrap();
    assert_eq!((plan.jobs, plan.limit_bytes_per_second, plan.wanted.count), (5, 0, 1));
    let connections = ConnectionPlan::default();
    let expected = TaskSpec {
        save_dir: Some(std::env::current_dir().unwrap()),
        segments: connections.segments,
        max_connections: Some(connections.per_host),
        min_split_bytes: Some(connections.min_split_bytes),
        proxy: ProxyChoice::Direct,
        on_conflict: Some(OnConflict::Rename),
        retry: Some(RetryPolicy::default()),
        adopt: true,
        use_server_time: Some(false),
        is_not_seeded: true,
        follow_torrent: Some(true),
        ..TaskSpec::parse("http://a.test/").unwrap()
    };
    assert_eq!(plan.wanted.tasks().next(), Some(expected));
}

#[test]
fn a_torrent_is_seeded_only_with_a_limit_and_files_are_counted_from_1() {
    let task = only_task(&[
        "http://a.test/x.torrent",
        "--select-file=5,1,3-4,4",
        "--seed-ratio=1.5",
        "--seed-time=0.5",
        "--no-follow-torrent",
    ]);
    assert_eq!(task.torrent.unwrap().files[..], [0, 2, 3, 4]);
    assert!(!task.is_not_seeded);
    let limits = task.seed_limits;
    assert_eq!(
        (limits.ratio_milli, limits.time_secs),
        (SeedLimit::Own(1500), SeedLimit::Own(30))
    );
    assert_eq!(task.follow_torrent, Some(false));
    for wrong in [
        "--select-file=",
        "--select-file=0",
        "--select-file=3-1",
        "--select-file=200001",
        "--seed-ratio=0",
        "--seed-ratio=NaN",
        "--seed-time=0",
    ] {
        assert!(
            Line::try_parse_from(["get", "http://a.test/", wrong]).is_err(),
            "{wrong}"
        );
    }
}

#[test]
fn files_of_a_list_follow_those_of_the_command_and_have_their_own_options() {
    let list = "http://l.test/1\thttp://m.test/1\n out=one\n dir=/else\n header=B: 2\n split=3\n max-download-limit=1M\n \
                check-certificate=false\n http-passwd=p\n http-user=u\nhttp://l.test/2\n";
    let plan = plan_of_list(list, &["http://c.test/0", "-d/data", "--header=A: 1"]).unwrap();
    let tasks: Vec<_> = plan.wanted.tasks().collect();
    assert_eq!(plan.wanted.count, 3);
    let hosts: Vec<_> = tasks
        .iter()
        .map(|task| task.urls[0].as_url().host_str().unwrap().to_owned())
        .collect();
    assert_eq!(hosts, ["c.test", "l.test", "l.test"]);
    let one = &tasks[1];
    assert_eq!((one.urls.len(), one.request.headers.len()), (2, 2));
    assert_eq!((one.save_dir.as_deref(), one.segments), (Some(Path::new("/else")), 3));
    assert_eq!((one.speed_limit_bytes, one.ignore_tls_errors), (1 << 20, true));
    assert_eq!(one.request.credentials.as_ref().unwrap().user, "u");
    let two = &tasks[2];
    assert_eq!(
        (two.save_dir.as_deref(), two.file_name.as_ref()),
        (Some(Path::new("/data")), None)
    );
    assert_eq!((two.request.headers.len(), two.segments), (1, 0));
    assert_eq!(two.request.credentials, None);
}

#[test]
fn what_cannot_be_is_refused_and_the_field_named() {
    for (arguments, field, problem) in [
        (&["host/file"][..], "URL 1", "https://host/file"),
        (&["http://a.test/", "ftp://a.test/"], "URL 2", "http, https"),
        (&["http://a.test/", "http://b.test/", "-ox"], "--out", "exactly one URL"),
        (
            &["http://a.test/", "http://b.test/", "--checksum=md5=x"],
            "--checksum",
            "exactly one URL",
        ),
        (&["http://a.test/", "--mirror=b.test"], "--mirror", "write it whole"),
        (&["http://a.test/", "--checksum=md5=00"], "--checksum", "32 hexadecimal"),
        (&["http://a.test/", "-osub/"], "--out", "name of a file"),
        (&["http://a.test/", "-o.."], "--out", "name of a file"),
        (&["http://a.test/", "--header=A: b\r\nC: d"], "--header A", "line break"),
        (&["http://a.test/", "--cookie=a\n"], "--cookie", "line break"),
        (&["http://a.test/", "--user-agent=a\n"], "--user-agent", "line break"),
        (
            &["http://a.test/", "--proxy=localhost:1"],
            "--proxy",
            "socks5://host:port",
        ),
        (
            &["http://a.test/", "--method=HEAD"],
            "--method",
            "does not bring a file",
        ),
        (&["http://a.test/", "--form=x"], "--form", "name=value"),
        (
            &["http://a.test/", "--data-file=/nonexistent"],
            "--data-file",
            "cannot read /nonexistent",
        ),
        (
            &["http://a.test/", "--load-cookies=/nonexistent"],
            "--load-cookies",
            "cannot read",
        ),
        (
            &["http://a.test/", "--http-password-file=/nonexistent"],
            "--http-password-file",
            "--http-user",
        ),
        (&["-i/nonexistent"], "--input-file", "cannot read"),
    ] {
        let refusal = plan(arguments).unwrap_err();
        assert_eq!(refusal.field, field, "{refusal}");
        assert!(refusal.problem.contains(problem), "{refusal}");
    }
    for (list, field, problem) in [
        ("# nothing\n", "--input-file", "no URL"),
        ("http://a.test/\nb.test\n", "--input-file, line 2", "write it whole"),
        (
            "http://a.test/\n split=99\n",
            "--input-file, line 2, split",
            "from 0 to 64",
        ),
        (
            "http://a.test/\n remote-time=1\n",
            "--input-file, line 2, remote-time",
            "true or false",
        ),
        (
            "http://a.test/\n header=x\n",
            "--input-file, line 2, header",
            "Name: value",
        ),
        ("http://a.test/\n gid=x\n", "--input-file, line 2", "unknown option"),
    ] {
        let refusal = plan_of_list(list, &[]).unwrap_err();
        assert_eq!(refusal.field, field, "{refusal}");
        assert!(refusal.problem.contains(problem), "{refusal}");
    }
}

#[test]
fn cookies_and_passwords_are_read_from_files_and_sent_where_they_belong() {
    let directory = tempfile::tempdir().unwrap();
    let cookies = directory.path().join("cookies.txt");
    fs::write(&cookies, "a.test\tFALSE\t/\tFALSE\t0\tn\tv\n").unwrap();
    let password = directory.path().join("password");
    fs::write(&password, "secret\nmore\n").unwrap();
    let plan = plan(&[
        "http://a.test/",
        "http://b.test/",
        "--cookie=x=1",
        &format!("--load-cookies={}", cookies.display()),
        "--http-user=u",
        &format!("--http-password-file={}", password.display()),
    ])
    .unwrap();
    let requests: Vec<_> = plan.wanted.tasks().map(|task| task.request).collect();
    assert_eq!(requests[0].cookies.expose(), "x=1; n=v");
    assert_eq!(requests[1].cookies.expose(), "x=1");
    assert_eq!(requests[0].credentials.as_ref().unwrap().password.expose(), "secret");
}
