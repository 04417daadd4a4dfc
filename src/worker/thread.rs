//! The loop of the worker thread: which job takes the next step, and what becomes of its outcome.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crossbeam_channel::Receiver;

use super::bench::Bench;
use super::command::{Command, Generation, Lane, Request};
use super::event::Event;
use super::jobs::{Job, Step, job_for};
use super::mailbox::Mailbox;
use super::memory::Memory;
use super::outbox::{Outbox, Outdated};
use crate::{Error, ErrorKind};

/// A job with the number of its request.
struct Task {
    generation: Generation,
    job: Box<dyn Job>,
}

/// The jobs of one lane. Only exports can be more than one.
#[derive(Default)]
struct Queue {
    tasks: VecDeque<Task>,
    paused: bool,
}

/// Everything that lives on the worker thread.
pub(super) struct Thread {
    mailbox: Arc<Mailbox>,
    bell: Receiver<()>,
    outbox: Outbox,
    bench: Bench,
    /// In the order of [`Lane`]: most urgent first.
    queues: BTreeMap<Lane, Queue>,
    /// The weights in memory as they were told last.
    told: Memory,
    ending: bool,
}

impl Thread {
    pub(super) fn new(
        mailbox: Arc<Mailbox>,
        bell: Receiver<()>,
        outbox: Outbox,
        bench: Bench,
    ) -> Self {
        Self {
            mailbox,
            bell,
            outbox,
            bench,
            queues: BTreeMap::new(),
            told: Memory::default(),
            ending: false,
        }
    }

    /// Serves requests until [`Command::Shutdown`]. Without work the thread sleeps.
    pub(super) fn run(mut self) {
        loop {
            for request in self.mailbox.take() {
                self.accept(request);
            }
            self.tell_memory();
            self.outbox.flush();
            match self.most_urgent() {
                Some(lane) => self.step(lane),
                None if self.ending => return,
                None => self.outbox.wait(&self.bell),
            }
        }
    }

    fn tell_memory(&mut self) {
        if self.told != *self.bench.memory() {
            self.told = self.bench.memory().clone();
            self.outbox.send(Event::Memory(self.told.clone()));
        }
    }

    fn most_urgent(&self) -> Option<Lane> {
        let has_work = |queue: &Queue| !queue.paused && !queue.tasks.is_empty();
        self.queues
            .iter()
            .find(|(_, queue)| has_work(queue))
            .map(|(lane, _)| *lane)
    }

    /// Files a request in its lane, or acts on it at once.
    fn accept(
        &mut self,
        Request {
            generation,
            command,
        }: Request,
    ) {
        if let Some(lane) = command.lane() {
            if command.coalescing_key().is_some() {
                self.queue(lane).tasks.clear();
                self.outbox.forget(lane, generation, Outdated::Superseded);
            }
            if let Some(job) = job_for(generation, command) {
                self.queue(lane).tasks.push_back(Task { generation, job });
            }
            return;
        }
        match command {
            Command::SetBudget(bytes) => self.bench.set_budget(bytes),
            Command::Pause(lane) => self.queue(lane).paused = true,
            Command::Resume(lane) => self.queue(lane).paused = false,
            Command::Cancel(lane) => {
                self.queue(lane).paused = false;
                self.cancel_older(lane, generation, "cancelled");
            }
            _ => self.end(),
        }
    }

    /// Drops all work but exports, which are still written.
    fn end(&mut self) {
        self.ending = true;
        for (lane, queue) in &mut self.queues {
            queue.paused = false;
            if *lane != Lane::Export {
                queue.tasks.clear();
            }
        }
    }

    /// Lets the first job of a lane take one step.
    fn step(&mut self, lane: Lane) {
        let Some(mut task) = self.queue(lane).tasks.pop_front() else {
            return;
        };
        let Self { bench, outbox, .. } = self;
        let outcome = catch_unwind(AssertUnwindSafe(|| task.job.step(bench, outbox)));
        match outcome {
            Ok(Ok(Step::More)) => self.queue(lane).tasks.push_front(task),
            Ok(Ok(Step::Done)) => self.finish(lane, task.generation),
            Ok(Err(error)) => {
                let error = if lane == Lane::Device {
                    error
                } else {
                    self.bench.judge(error)
                };
                self.fail(lane, &task, error);
            }
            Err(payload) => {
                let error = self.bench.recover(&task.job.asked(), payload.as_ref());
                self.fail(lane, &task, error);
            }
        }
    }

    fn finish(&mut self, lane: Lane, generation: Generation) {
        self.outbox.send(Event::Finished { generation, lane });
        let reason = match lane {
            Lane::Device => "the compute device was changed",
            Lane::Image => "another photograph was opened",
            _ => return,
        };
        for dependent in Lane::ON_PHOTOGRAPH {
            self.outbox
                .forget(dependent, generation, Outdated::Detached);
            self.cancel_older(dependent, generation, reason);
        }
    }

    fn fail(&mut self, lane: Lane, task: &Task, error: Error) {
        let asked = task.job.asked();
        log::warn!("{asked}: {error}");
        self.outbox.send(Event::Failed {
            generation: task.generation,
            lane,
            asked,
            error,
        });
    }

    /// Ends a lane's work that was asked for before `newest`.
    fn cancel_older(&mut self, lane: Lane, newest: Generation, reason: &str) {
        let tasks = std::mem::take(&mut self.queue(lane).tasks);
        let (older, kept): (VecDeque<_>, VecDeque<_>) =
            tasks.into_iter().partition(|task| task.generation < newest);
        self.queue(lane).tasks = kept;
        for task in older {
            let asked = task.job.asked();
            let error = Error::new(ErrorKind::Cancelled, asked.clone(), reason, "");
            self.outbox.send(Event::Failed {
                generation: task.generation,
                lane,
                asked,
                error,
            });
        }
    }

    fn queue(&mut self, lane: Lane) -> &mut Queue {
        self.queues.entry(lane).or_default()
    }
}

impl Drop for Thread {
    /// However the thread ends, later commands are refused rather than left unanswered.
    fn drop(&mut self) {
        self.mailbox.close();
    }
}
