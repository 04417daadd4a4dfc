//! The way from the sender to the worker: never blocks, never loses what must not be lost.
//!
//! A bounded channel alone would have to block or to refuse when it is full, so the requests wait in
//! a list that stays short because newer commands replace older ones of the same
//! [`CoalescingKey`](super::command::CoalescingKey); the channel only rings.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crossbeam_channel::{Receiver, Sender, bounded};

use super::command::{Command, Generation, Request};
use crate::{Error, ErrorKind, Result};

/// Requests on their way to the worker.
pub(super) struct Mailbox {
    waiting: Mutex<Waiting>,
    bell: Sender<()>,
}

#[derive(Default)]
struct Waiting {
    newest: Generation,
    requests: Vec<Request>,
    closed: bool,
}

impl Mailbox {
    /// An empty mailbox and the bell that rings when it is not.
    pub(super) fn new() -> (Self, Receiver<()>) {
        let (bell, rung) = bounded(1);
        (
            Self {
                waiting: Mutex::default(),
                bell,
            },
            rung,
        )
    }

    /// Numbers the command and leaves it for the worker; an older one with the same key is dropped.
    pub(super) fn put(&self, command: Command) -> Result<Generation> {
        let generation = {
            let mut waiting = self.lock();
            if waiting.closed {
                return Err(Error::new(
                    ErrorKind::Internal,
                    "cannot start the work that was asked for",
                    "the worker thread has ended",
                    "Save what you need and start the program again",
                ));
            }
            let generation = Generation(waiting.newest.0 + 1);
            waiting.newest = generation;
            if let Some(key) = command.coalescing_key() {
                waiting
                    .requests
                    .retain(|older| older.command.coalescing_key() != Some(key));
            }
            waiting.requests.push(Request {
                generation,
                command,
            });
            generation
        };
        // A full bell is already ringing.
        let _ = self.bell.try_send(());
        Ok(generation)
    }

    /// Takes everything that waits, oldest first.
    pub(super) fn take(&self) -> Vec<Request> {
        std::mem::take(&mut self.lock().requests)
    }

    /// Refuses all further commands.
    pub(super) fn close(&self) {
        self.lock().closed = true;
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // The list is whole between any two statements, so a panic elsewhere leaves it usable.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceChoice;
    use crate::worker::{Content, Export, Lane};

    fn export(stem: &str) -> Command {
        Command::Export(Export {
            folder: "out".into(),
            stem: stem.to_owned(),
            formats: vec![],
            content: Content::Profiles(vec![]),
        })
    }

    fn measure(eta_l2: f64) -> Command {
        Command::Measure {
            recipes: vec![],
            eta_l2,
        }
    }

    #[test]
    fn only_the_newest_of_a_kind_waits_but_every_export_does() {
        let (mailbox, _bell) = Mailbox::new();
        for i in 0..1000 {
            mailbox.put(measure(f64::from(i))).unwrap();
            mailbox.put(Command::Cancel(Lane::Profile)).unwrap();
            mailbox.put(Command::Pause(Lane::Profile)).unwrap();
            mailbox.put(Command::Resume(Lane::Profile)).unwrap();
            mailbox.put(Command::UseDevice(DeviceChoice::Cpu)).unwrap();
        }
        mailbox.put(export("a")).unwrap();
        mailbox.put(export("b")).unwrap();
        let waiting = mailbox.take();
        assert_eq!(waiting.len(), 6);
        let newest = waiting.iter().find_map(|r| match r.command {
            Command::Measure { eta_l2, .. } => Some(eta_l2),
            _ => None,
        });
        assert_eq!(newest, Some(999.0));
        assert!(mailbox.take().is_empty());
    }

    #[test]
    fn numbers_grow_in_the_order_of_the_list_and_a_closed_mailbox_refuses() {
        let (mailbox, bell) = Mailbox::new();
        let first = mailbox.put(measure(1.0)).unwrap();
        let second = mailbox.put(export("a")).unwrap();
        assert!(first < second);
        assert!(
            bell.try_recv().is_ok() && bell.try_recv().is_err(),
            "one ring for both"
        );
        let order: Vec<_> = mailbox.take().iter().map(|r| r.generation).collect();
        assert_eq!(order, [first, second]);
        mailbox.close();
        assert_eq!(
            mailbox.put(measure(2.0)).unwrap_err().kind,
            ErrorKind::Internal
        );
    }
}
