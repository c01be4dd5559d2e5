//! Runs a whole service in this process and downloads a file through its REST API:
//! `cargo run -p host --example embed -- https://example.com/file DATA_DIR SAVE_DIR`.
#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::time::Duration;

use host::{
    Host,
    protocol::{CreatedTask, TaskDto, TaskStatus},
};
use http_body_util::{BodyExt as _, Full};
use hyper::{Method, Request, body::Bytes, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let [url, data, save] = <[String; 3]>::try_from(std::env::args().skip(1).collect::<Vec<_>>())
        .map_err(|_| "write a URL, a data directory and a directory for downloads")?;

    let (data, save) = (std::path::absolute(data)?, std::path::absolute(save)?);
    let host = Host::builder(data, save).start().await?;
    println!("listening on http://{}", host.address());

    let body = json!({ "url": url });
    let CreatedTask { task_id, .. } = call(&host, Method::POST, "/api/v1/tasks", Some(&body)).await?;
    let path = format!("/api/v1/tasks/{task_id}");
    loop {
        let task: TaskDto = call(&host, Method::GET, &path, None).await?;
        match task.status {
            TaskStatus::Completed => break println!("{} is there", task.file_name),
            TaskStatus::Error => return Err(task.error_message.into()),
            _ => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }

    host.shutdown().await;
    Ok(())
}

/// Sends a request as any HTTP client would, with the access key.
async fn call<T: DeserializeOwned>(host: &Host, method: Method, path: &str, body: Option<&Value>) -> Result<T, Error> {
    let stream = tokio::net::TcpStream::connect(host.address()).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let key = host.access_key().ok_or("there is no access key")?;
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, host.address().to_string())
        .header(header::AUTHORIZATION, format!("Bearer {}", key.expose()))
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body.map(Value::to_string).unwrap_or_default())))?;
    let exchange = async move {
        let answer = sender.send_request(request).await?;
        let status = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        if !status.is_success() {
            return Err(format!("{status}: {}", String::from_utf8_lossy(&body)).into());
        }
        Ok(serde_json::from_slice(&body)?)
    };
    // The connection moves the bytes while the exchange waits for them.
    tokio::join!(exchange, connection).0
}
