//! `yt-dlp`: what it is given, what it reaches, and what is read from it.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    task::JoinSet,
    time::timeout,
};
use tools::{Extraction, Media, Tool, ToolError};
use transfer::{GivenBy, SafeUrl};

use super::rig::{PATIENCE, Rig};

/// Requests a page through the proxy of the environment, as the real one does, and prints a file with that as its title.
const FETCH: &str = r"
import urllib.request
def fetch(url):
    return urllib.request.urlopen(url, timeout=10).read().decode()
url = open(sys.argv[sys.argv.index('--batch-file') + 1]).read().strip()
def answer(**fields):
    print(json.dumps(dict(id='x', url=url, **fields)))
";

/// A web server with one page, which is its own port.
async fn origin() -> (u16, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _head = stream.read(&mut [0; 4096]).await;
            let page = format!("port {port}");
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{page}", page.len());
            let _closed = stream.write_all(answer.as_bytes()).await;
        }
    });
    (port, serving)
}

async fn extract(rig: &Rig, url: &str) -> Result<Media, ToolError> {
    let job = Extraction {
        url: SafeUrl::parse(url).unwrap(),
        given_by: GivenBy::User,
        proxy: None,
    };
    timeout(PATIENCE, rig.tools.extract(job)).await.expect("it ends")
}

async fn run(script: &str, url: &str) -> Result<Media, ToolError> {
    let rig = Rig::new(&[("yt-dlp", &format!("{FETCH}{script}"))]);
    let outcome = extract(&rig, url).await;
    assert!(rig.is_clean());
    outcome
}

#[tokio::test]
async fn pages_of_the_host_that_the_user_named_are_read_through_the_proxy() {
    let (port, _origin) = origin().await;
    let media = run(
        "answer(title=fetch(url))",
        &format!("http://127.0.0.1:{port}/page?key=secret"),
    )
    .await;
    let media = media.unwrap();
    assert_eq!(media.title, format!("port {port}"));
    assert_eq!(
        media.formats[0].url.expose(),
        format!("http://127.0.0.1:{port}/page?key=secret")
    );
}

#[tokio::test]
async fn other_hosts_of_this_machine_are_refused_by_name() {
    let (port, _origin) = origin().await;
    // A public name that cannot be looked up; the page of it would lead here.
    let refused = run(
        &format!("fetch('http://127.0.0.1:{port}/')"),
        "https://video.invalid/watch",
    )
    .await;
    let Err(ToolError::Forbidden(forbidden)) = &refused else {
        panic!("{refused:?}")
    };
    assert_eq!(forbidden.host, "127.0.0.1");
}

#[tokio::test]
async fn beside_the_proxy_there_is_no_network() {
    let (port, _origin) = origin().await;
    let script = format!(
        "try: socket.create_connection(('127.0.0.1', {port}), 2); found = 'connected'\n\
         except OSError as error: found = 'refused'\n\
         answer(title=found)"
    );
    let rig = Rig::new(&[
        ("yt-dlp", &format!("{FETCH}{script}")),
        ("ffmpeg", "print('ffmpeg version 1')"),
    ]);
    let media = extract(&rig, &format!("http://127.0.0.1:{port}/")).await.unwrap();
    let isolation = rig.tools.find(Tool::Ffmpeg).await.isolation.unwrap();
    let expected = match isolation {
        tools::Isolation::Namespaces => "refused",
        tools::Isolation::LimitsOnly { .. } => "connected",
    };
    assert_eq!(media.title, expected);
}

#[tokio::test]
async fn no_process_has_a_secret_in_its_arguments() {
    let script = r"
texts = []
for number in os.listdir('/proc'):
    try: texts.append(open('/proc/%s/cmdline' % number, errors='replace').read())
    except OSError: pass
password = os.environ['http_proxy'].split(':')[2].split('@')[0]
mine = [text for text in texts if 'yt-dlp' in text]
found = [text for text in texts if password in text or 'canary-4711' in text]
answer(title='%d %d %d' % (len(password) > 20, len(mine) > 1, len(found)))
";
    let media = run(script, "https://video.invalid/watch?token=canary-4711")
        .await
        .unwrap();
    assert_eq!(media.title, "1 1 0");
}

#[tokio::test]
async fn it_gets_an_environment_of_its_own() {
    let script = r"
answer(title=' '.join(sorted(set(os.environ) - {'LC_CTYPE'})) + ' ' + ' '.join(os.listdir(os.environ['HOME']))
    + ' %o' % (os.stat(os.environ['HOME']).st_mode & 0o777) + ' ' + os.environ['LANG'])
";
    let media = run(script, "https://video.invalid/watch").await.unwrap();
    assert_eq!(
        media.title,
        "HOME LANG PATH TMPDIR http_proxy https_proxy url 700 C.UTF-8"
    );
}

#[tokio::test]
async fn output_that_is_too_large_or_no_record_is_an_error() {
    let flooded = run("while True: sys.stdout.write('[' * 65536)", "https://video.invalid/").await;
    assert!(matches!(flooded, Err(ToolError::TooMuchOutput { .. })), "{flooded:?}");
    let odd = run("print('{\"id\":')", "https://video.invalid/").await;
    assert!(matches!(odd, Err(ToolError::Output { .. })), "{odd:?}");
    let nothing = run("print('null')", "https://video.invalid/").await;
    assert!(matches!(nothing, Err(ToolError::Failed { .. })), "{nothing:?}");
}

#[tokio::test]
async fn what_it_is_not_used_for_is_refused_before_it_starts() {
    let rig = Rig::new(&[("yt-dlp", "sys.exit(1)")]);
    let refused = extract(&rig, "ftp://video.invalid/").await;
    assert!(matches!(refused, Err(ToolError::Scheme { .. })), "{refused:?}");
    let job = Extraction {
        url: SafeUrl::parse("https://video.invalid/").unwrap(),
        given_by: GivenBy::User,
        proxy: Some(SafeUrl::parse("https://127.0.0.1:1080").unwrap()),
    };
    let refused = rig.tools.extract(job).await;
    assert!(matches!(refused, Err(ToolError::Proxy { .. })), "{refused:?}");
}

#[tokio::test]
async fn an_old_version_is_named() {
    let script = "if '--version' in sys.argv: print('2023.03.04'); sys.exit(0)\n\
        print('yt-dlp: error: no such option: --no-plugin-dirs', file=sys.stderr); sys.exit(2)";
    let rig = Rig::new(&[("yt-dlp", script)]);
    let refused = extract(&rig, "https://video.invalid/").await;
    assert!(
        matches!(&refused, Err(ToolError::TooOld { found, .. }) if found == "2023.03.04"),
        "{refused:?}"
    );
    let found = rig.tools.find(Tool::YtDlp).await;
    assert_eq!(
        (found.tool, found.version.as_deref()),
        (Tool::YtDlp, Some("2023.03.04"))
    );
    assert!(found.problem.as_ref().unwrap().contains("too old"), "{found:?}");
}

#[tokio::test]
async fn a_page_that_never_ends_is_given_up_when_the_caller_is() {
    let rig = Rig::new(&[("yt-dlp", "time.sleep(1000)")]);
    let job = Extraction {
        url: SafeUrl::parse("https://video.invalid/").unwrap(),
        given_by: GivenBy::User,
        proxy: None,
    };
    let waited = timeout(Duration::from_millis(500), rig.tools.extract(job)).await;
    assert!(waited.is_err());
    timeout(PATIENCE, rig.tools.shutdown()).await.unwrap();
    assert!(rig.is_clean());
}
