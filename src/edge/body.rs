//! Bodies on their way through: counted, bounded, never buffered, and ended when they stand still.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Body as HttpBody, Bytes, Frame, Incoming, SizeHint};

use super::exchange::{Exchange, Uploading};
use super::headers::drop_foreign_trailers;
use crate::env::Env;

/// Whatever ends a body early.
pub(super) type BodyError = Box<dyn Error + Send + Sync>;
/// A body of the edge's own, or one that streams through.
pub(super) type Body = UnsyncBoxBody<Bytes, BodyError>;

/// Why the edge ended a body.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error("the body of the request is larger than edge.body_bytes")]
    TooLarge,
    #[error("the origin sent nothing more of its answer for longer than edge.idle_timeout")]
    StoodStill,
}

/// A visitor's body on its way to the origin.
pub(super) struct Upload {
    body: Incoming,
    exchange: Arc<Exchange>,
    /// Bytes that may still come; none is no limit.
    left: Option<u64>,
}

impl Upload {
    pub(super) fn new(body: Incoming, exchange: Arc<Exchange>, limit: Option<u64>) -> Upload {
        Upload { body, exchange, left: limit }
    }
}

impl HttpBody for Upload {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Pending => {
                self.exchange.upload(Uploading::Visitor);
                return Poll::Pending;
            }
            Poll::Ready(frame) => frame,
        };
        self.exchange.upload(Uploading::Origin);
        Poll::Ready(match frame {
            None => {
                // The end of a body moves things on, too: the origin's time begins.
                self.exchange.came_in(0);
                None
            }
            Some(Err(error)) => {
                self.exchange.upload(Uploading::Broke);
                Some(Err(error.into()))
            }
            Some(Ok(frame)) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                self.exchange.came_in(bytes);
                let left = self.left.map(|left| left.checked_sub(u64::try_from(bytes).unwrap_or(u64::MAX)));
                if left == Some(None) {
                    self.exchange.upload(Uploading::TooLarge);
                    return Poll::Ready(Some(Err(Ended::TooLarge.into())));
                }
                self.left = left.flatten();
                Some(Ok(without_foreign_trailers(frame)))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// What may not stand in a head may not come after a body either: origins may merge the two.
fn without_foreign_trailers(frame: Frame<Bytes>) -> Frame<Bytes> {
    match frame.into_trailers() {
        Ok(mut trailers) => {
            drop_foreign_trailers(&mut trailers);
            Frame::trailers(trailers)
        }
        Err(frame) => frame,
    }
}

/// An answer's body on its way to the visitor. The exchange ends with it.
pub(super) struct Download<B> {
    body: B,
    exchange: Arc<Exchange>,
    env: Env,
    idle: Duration,
    /// Set while nothing comes: what had moved when it was set.
    timer: Option<(u64, BoxFuture<'static, ()>)>,
}

impl<B> Download<B> {
    pub(super) fn new(body: B, exchange: Arc<Exchange>, env: Env, idle: Duration) -> Download<B> {
        Download { body, exchange, env, idle, timer: None }
    }

    /// Whether nothing has moved for too long; sees to it that this is asked again in time.
    fn stood_still(&mut self, cx: &mut Context<'_>) -> bool {
        loop {
            let moved = self.exchange.moved();
            let (before, timer) = self.timer.get_or_insert_with(|| {
                let (env, idle) = (self.env.clone(), self.idle);
                (moved, Box::pin(async move { env.sleep(idle).await }))
            });
            if timer.as_mut().poll(cx).is_pending() {
                return false;
            }
            if *before == moved {
                return true;
            }
            self.timer = None;
        }
    }
}

impl<B> HttpBody for Download<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<BodyError>,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Ready(frame) => {
                if let Some(Ok(frame)) = &frame {
                    self.exchange.went_out(frame.data_ref().map_or(0, Bytes::len));
                }
                Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
            }
            Poll::Pending if self.stood_still(cx) => Poll::Ready(Some(Err(Ended::StoodStill.into()))),
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
