//! Keys on their way through a gateway: pieces of the store, each written when it is full.

use std::io;
use std::time::SystemTime;

use axum::body::Bytes;
use tokio::sync::OwnedSemaphorePermit;

use super::keys::check_work;
use super::link::Link;
use super::objects::Objects;
use super::pieces::{PIECE, piece_name, refuse};
use crate::backend::{Later, Sink, Upload};
use crate::ids::KeyRef;
use crate::jobs::Problem;

/// Keys that one request sends.
pub(super) struct Sending {
    pub link: Link,
    pub objects: Objects,
    pub key: KeyRef,
    /// Where the bytes in `piece` begin.
    pub offset: u64,
    pub piece: Vec<u8>,
    /// The right to hold a piece in memory.
    pub _permit: OwnedSemaphorePermit,
}

impl Sending {
    async fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let bytes = Bytes::from(std::mem::take(&mut self.piece));
        let len = bytes.len() as u64;
        self.objects.put(&piece_name(&self.key, self.offset), bytes).await?;
        self.offset += len;
        Ok(())
    }
}

impl Sink for Sending {
    fn write(&mut self, mut bytes: Bytes) -> Later<'_, io::Result<()>> {
        Box::pin(async move {
            while !bytes.is_empty() {
                let n = bytes.len().min(PIECE - self.piece.len());
                self.piece.extend_from_slice(&bytes.split_to(n));
                if self.piece.len() == PIECE {
                    self.flush().await?;
                }
            }
            Ok(())
        })
    }
}

impl Upload for Sending {
    fn keep(mut self: Box<Self>) -> Later<'static, io::Result<()>> {
        Box::pin(async move { self.flush().await })
    }

    fn complete(mut self: Box<Self>) -> Later<'static, io::Result<()>> {
        Box::pin(async move {
            self.flush().await?;
            check_work(&self.link, &self.key, SystemTime::now()).await
        })
    }

    fn refuse(self: Box<Self>, reason: Problem) -> Later<'static, io::Result<()>> {
        Box::pin(async move { refuse(&self.objects, &self.key, &reason).await })
    }
}
