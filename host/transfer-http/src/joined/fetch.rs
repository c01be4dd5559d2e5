//! Fetches one segment: its key, its request, the check of the response, and its body into the window.

use std::sync::Arc;

use tokio::time::{Instant, timeout};
use transfer::{
    ByteRange, Failure, SPEED_WINDOW, SafeUrl, Segment, SegmentKey, failure::FailureKind, run::upkeep::too_slow,
};

use crate::{
    answer::verdict::{Facts, Unusable, Verdict, encoding, is_page, judge},
    client::{
        body::Body,
        exchange::now,
        fetch::{Fetched, RangeWish},
    },
    joined::{cipher::Decryptor, joining::Joining, speed::Speed},
};

/// Read size; each segment being fetched has a buffer of this size.
const BUFFER_BYTES: usize = 128 * 1024;

impl Joining {
    /// Fetches a segment from its start and hands it to the window.
    pub(crate) async fn fetch(&self, index: usize) -> Result<(), Failure> {
        self.fetch_one(index, &self.source.segments[index])
            .await
            .map_err(|failure| {
                if failure.kind.is_disk() {
                    return failure;
                }
                let (number, count) = (index + 1, self.source.segments.len());
                let message = format!("segment {number} of {count}: {failure}");
                Failure { message, ..failure }
            })
    }

    async fn fetch_one(&self, index: usize, segment: &Segment) -> Result<(), Failure> {
        self.restart(index);
        let mut decryptor = match &segment.cipher {
            Some(cipher) => Some(Decryptor::new(&self.key(&cipher.key).await?, &cipher.iv)),
            None => None,
        };
        let mut body = self.ask(segment).await?;
        let mut left = segment.part.map(ByteRange::len);
        let mut buffer = vec![0; BUFFER_BYTES];
        // Not put back by a fetch that fails: the next one is another connection.
        let mut speed = self.speeds.borrow_mut().pop().unwrap_or_default();
        loop {
            let wanted = left.map_or(BUFFER_BYTES, |left| usize::try_from(left).unwrap_or(usize::MAX));
            if wanted == 0 {
                break;
            }
            let room = self.room(index).await.min(wanted).min(BUFFER_BYTES);
            let read = self.read(&mut body, &mut buffer[..room]);
            let read = self.read_in_time(read, &mut speed, &segment.url).await?;
            if read == 0 {
                break;
            }
            left = left.map(|left| left - read as u64);
            match &mut decryptor {
                None => self.put(index, &buffer[..read])?,
                Some(decryptor) => self.put(index, decryptor.push(&buffer[..read]))?,
            }
        }
        if let Some(missing) = left.filter(|left| *left > 0) {
            let message = format!("the server has {missing} bytes less than the list of segments says");
            return Err(Failure::new(FailureKind::SizeMismatch, message));
        }
        if let Some(decryptor) = decryptor {
            self.put(index, &decryptor.finish()?)?;
        }
        body.drain().await;
        if speed.completed() > self.connections.lowest_bytes_per_second {
            self.has_fast.set(true);
        }
        self.speeds.borrow_mut().push(speed);
        self.complete(index)
    }

    /// Reads as many bytes as the rate limits allow.
    async fn read(&self, body: &mut Body, buffer: &mut [u8]) -> Result<usize, Failure> {
        let granted = self.limits.acquire(buffer.len() as u64).await;
        let room = usize::try_from(granted).unwrap_or(usize::MAX);
        let read = body.read(&mut buffer[..room], self.shared.config.stall_timeout).await;
        let used = read.as_ref().map_or(0, |read| *read as u64);
        self.limits.refund(granted - used);
        self.received.set(self.received.get() + used);
        read
    }

    /// Fails if the lowest speed is above that of this read and those before it.
    async fn read_in_time(
        &self,
        read: impl Future<Output = Result<usize, Failure>>,
        speed: &mut Speed,
        url: &SafeUrl,
    ) -> Result<usize, Failure> {
        let limit = self.connections.lowest_bytes_per_second;
        if limit == 0 {
            return read.await;
        }
        let begun = Instant::now();
        let rate = match timeout(SPEED_WINDOW, read).await {
            Ok(read) => {
                let bytes = read?;
                let Some(rate) = speed.count(begun.elapsed(), bytes as u64, limit) else {
                    return Ok(bytes);
                };
                rate
            }
            Err(_) => 0,
        };
        Err(too_slow(url.as_url().host_str(), rate, limit))
    }

    async fn ask(&self, segment: &Segment) -> Result<Body, Failure> {
        let wish = segment.part.map(|part| RangeWish {
            start: part.start,
            end: Some(part.end),
            if_range: None,
        });
        let refused = |why: &str| Failure::new(FailureKind::RangeMismatch, format!("the server {why}"));
        let (body, verdict) = self.ask_at(&segment.url, wish.as_ref()).await?;
        match (verdict, &wish) {
            (Verdict::Part { end, .. }, Some(wish)) if wish.end.is_some_and(|wanted| end < wanted) => {
                Err(refused("has less than the list of segments says"))
            }
            (Verdict::PastEnd { .. }, _) => Err(refused("has nothing where the list of segments says there is a part")),
            _ => Ok(body),
        }
    }

    /// Sends a request of this file; its secrets go to the source's own origin only.
    async fn ask_at(&self, url: &SafeUrl, wish: Option<&RangeWish>) -> Result<(Body, Verdict), Failure> {
        let Fetched { response, url } = self.fetcher.fetch(&self.source.urls[0], url, wish).await?;
        let verdict = judge(wish, &Facts::default(), &response.head, now()).map_err(|objection| match objection {
            Unusable::Failed(failure) => Failure {
                message: format!("{url}: {failure}"),
                ..failure
            },
            Unusable::IgnoresRanges | Unusable::Changed(_) => Failure::new(
                FailureKind::RangeMismatch,
                format!("{url}: the server sends all of it where a part was asked for"),
            ),
        })?;
        if is_page(&response.head) {
            let message = format!("{url}: the server answered with a web page; it may want you to sign in");
            return Err(Failure::new(FailureKind::NotTheFile, message));
        }
        if let Some(coding) = encoding(&response.head) {
            let message = format!("{url}: the server sent it in the encoding {coding:?} although none was asked for");
            return Err(Failure::new(FailureKind::Encoding, message));
        }
        Ok((response.body, verdict))
    }

    async fn key(&self, key: &Arc<SegmentKey>) -> Result<[u8; 16], Failure> {
        match &**key {
            SegmentKey::Bytes(bytes) => Ok(*bytes),
            SegmentKey::At(url) => {
                let cell = self.keys.cell(url);
                cell.get_or_try_init(|| self.fetch_key(url)).await.copied()
            }
        }
    }

    async fn fetch_key(&self, url: &SafeUrl) -> Result<[u8; 16], Failure> {
        let (mut body, _) = self.ask_at(url, None).await?;
        // One byte more than a key, to detect that it is none.
        let mut bytes = [0; 17];
        let mut filled = 0;
        while filled < bytes.len() {
            match body
                .read(&mut bytes[filled..], self.shared.config.stall_timeout)
                .await?
            {
                0 => break,
                read => filled += read,
            }
        }
        if filled != 16 {
            let message = format!("{url}: a key has 16 bytes, and this is something else");
            return Err(Failure::new(FailureKind::NotTheFile, message));
        }
        body.drain().await;
        Ok(*bytes.first_chunk().expect("17 bytes have a first 16"))
    }
}
