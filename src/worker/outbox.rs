//! The way from the worker to the window: never blocks the work, never loses an answer.

use std::collections::VecDeque;

use crossbeam_channel::{Receiver, Select, Sender, TrySendError};

use super::command::{Generation, Lane};
use super::event::Event;

/// Events that wait for room in the bounded channel.
///
/// While they wait, a newer state of the same profile, search or progress replaces the older;
/// everything else is kept in order.
pub(super) struct Outbox {
    waiting: VecDeque<Event>,
    channel: Sender<Event>,
    wake: Box<dyn Fn() + Send>,
}

/// What makes a waiting event outdated by a newer one.
#[derive(Clone, Copy, PartialEq)]
enum StateKey {
    Profile(Generation, usize),
    Least(Generation, usize),
    Progress(Generation),
    Inverted(Generation),
    Memory,
}

fn state_key(event: &Event) -> Option<StateKey> {
    match event {
        Event::ProfileUpdated {
            generation, index, ..
        } => Some(StateKey::Profile(*generation, *index)),
        Event::LeastUpdated {
            generation, index, ..
        } => Some(StateKey::Least(*generation, *index)),
        Event::Progress { generation, .. } => Some(StateKey::Progress(*generation)),
        Event::Inverted { generation, .. } => Some(StateKey::Inverted(*generation)),
        Event::Memory(_) => Some(StateKey::Memory),
        _ => None,
    }
}

/// The request that an event is about, if it is about one.
fn request_of(event: &Event) -> Option<(Lane, Generation)> {
    Some(match event {
        Event::Memory(_) => return None,
        Event::DeviceReady { generation, .. } => (Lane::Device, *generation),
        Event::ImageOpened { generation, .. } => (Lane::Image, *generation),
        Event::ProfileUpdated { generation, .. } => (Lane::Profile, *generation),
        Event::SpectrumFound { generation, .. } | Event::LeastUpdated { generation, .. } => {
            (Lane::Spectrum, *generation)
        }
        Event::Measured { generation, .. } => (Lane::Measure, *generation),
        Event::EditFitted { generation, .. } | Event::EditSeen { generation, .. } => {
            (Lane::Edit, *generation)
        }
        Event::EditCut { generation, .. } => (Lane::Rank, *generation),
        Event::Inverted { generation, .. } => (Lane::Invert, *generation),
        Event::Exported { generation, .. } => (Lane::Export, *generation),
        Event::EncoderReady {
            generation, lane, ..
        }
        | Event::Progress {
            generation, lane, ..
        }
        | Event::Finished { generation, lane }
        | Event::Failed {
            generation, lane, ..
        } => (*lane, *generation),
    })
}

/// Which of an outdated request's events are forgotten.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outdated {
    /// Another request took its place: everything.
    Superseded,
    /// Device or photograph changed under it: its results, but not its answer.
    Detached,
}

impl Outbox {
    /// `wake` is called after each event that the channel took.
    pub(super) fn new(channel: Sender<Event>, wake: Box<dyn Fn() + Send>) -> Self {
        Self {
            waiting: VecDeque::new(),
            channel,
            wake,
        }
    }

    /// Queues the event for the next [`Outbox::flush`]. Results of a step are flushed only after the
    /// commands were read that arrived during it, so that none is outdated when it leaves.
    pub(super) fn send(&mut self, event: Event) {
        let outdated = state_key(&event).and_then(|key| {
            self.waiting
                .iter_mut()
                .find(|old| state_key(old) == Some(key))
        });
        match outdated {
            Some(old) => *old = event,
            None => self.waiting.push_back(event),
        }
    }

    /// Hands over as much as the channel takes.
    pub(super) fn flush(&mut self) {
        while let Some(event) = self.waiting.pop_front() {
            match self.channel.try_send(event) {
                Ok(()) => (self.wake)(),
                Err(TrySendError::Full(event)) => {
                    self.waiting.push_front(event);
                    return;
                }
                // Nobody listens any more.
                Err(TrySendError::Disconnected(_)) => self.waiting.clear(),
            }
        }
    }

    /// Forgets what waits of a lane's requests older than `newest`. That a device or a photograph
    /// came into use stays true and stays.
    pub(super) fn forget(&mut self, lane: Lane, newest: Generation, why: Outdated) {
        self.waiting.retain(|event| {
            let Some((of, generation)) = request_of(event) else {
                return true;
            };
            let is_fact = matches!(event, Event::DeviceReady { .. } | Event::ImageOpened { .. });
            let is_answer = matches!(event, Event::Finished { .. } | Event::Failed { .. });
            let is_kept = is_fact || (is_answer && why == Outdated::Detached);
            of != lane || generation >= newest || is_kept
        });
    }

    /// Waits until a command arrives or a waiting event can be handed over.
    pub(super) fn wait(&mut self, bell: &Receiver<()>) {
        let Some(event) = self.waiting.pop_front() else {
            // An error means that the sender is gone; the mailbox then holds the shutdown.
            let _ = bell.recv();
            return;
        };
        let mut select = Select::new();
        let command = select.recv(bell);
        select.send(&self.channel);
        let ready = select.select();
        if ready.index() == command {
            let _ = ready.recv(bell);
            self.waiting.push_front(event);
        } else if ready.send(&self.channel, event).is_ok() {
            (self.wake)();
        } else {
            self.waiting.clear();
        }
    }
}
