//! Where requests come from.
//!
//! A source says when the next request is issued; the model schedules an event then, asks again after each issue
//! and after each completion, and need not know which kind of source it has:
//!
//! ```text
//! start:       while let Some(time) = source.first(now) { schedule.at(time, Issue) }
//! Issue:       if let Some(time) = source.postpone(now) { schedule.at(time, Issue); return }
//!              send the request; if let Some(time) = source.after_issue(now)      { schedule.at(time, Issue) }
//! completion:                    if let Some(time) = source.after_completion(now) { schedule.at(time, Issue) }
//! ```

mod closed;
mod mix;
mod on_off;
mod open;
mod pace;
mod replay;

pub use closed::Closed;
pub use mix::{AnyMix, Request, RequestMix};
pub use on_off::OnOff;
pub use open::{Paced, Renewal};
pub use pace::Pace;
pub use replay::{Recording, Replay};

use crate::random::Distribution;
use crate::time::Nanos;

/// Something that issues requests. Times returned are not before `now`.
pub trait Source {
    /// The time of one more request that is issued without waiting for another, ns; called until None, before anything
    /// else.
    fn first(&mut self, now: Nanos) -> Option<Nanos>;

    /// Whether the source is open with one next request at a time, which depends on nothing but the one before: then a
    /// model may ask for requests long before they are issued.
    #[inline]
    fn is_known_ahead(&self) -> bool {
        false
    }

    /// The time, ns, to which the request about to be issued now is put off to keep the source's rate; asked again then.
    #[inline]
    fn postpone(&mut self, _now: Nanos) -> Option<Nanos> {
        None
    }

    /// The time of the request after the one issued now, ns, when it does not wait for a completion.
    fn after_issue(&mut self, now: Nanos) -> Option<Nanos>;

    /// The time of the request that the completion now allows, ns.
    fn after_completion(&mut self, now: Nanos) -> Option<Nanos>;
}

/// A source chosen when the program runs, as a scenario names it.
#[derive(Clone, Debug)]
pub enum AnySource {
    /// Open, independent gaps (Poisson when they are exponential).
    Renewal(Renewal<Distribution>),
    /// Open, at even distances.
    Paced(Paced),
    /// Open, bursts and pauses.
    OnOff(OnOff),
    /// Open, as recorded.
    Replay(Replay),
    /// Closed, with or without a limit of its rate.
    Closed(Closed<Distribution>),
}

macro_rules! each {
    ($self:ident, $source:ident => $call:expr) => {
        match $self {
            AnySource::Renewal($source) => $call,
            AnySource::Paced($source) => $call,
            AnySource::OnOff($source) => $call,
            AnySource::Replay($source) => $call,
            AnySource::Closed($source) => $call,
        }
    };
}

impl Source for AnySource {
    fn first(&mut self, now: Nanos) -> Option<Nanos> {
        each!(self, source => source.first(now))
    }

    fn is_known_ahead(&self) -> bool {
        each!(self, source => source.is_known_ahead())
    }

    fn postpone(&mut self, now: Nanos) -> Option<Nanos> {
        each!(self, source => source.postpone(now))
    }

    fn after_issue(&mut self, now: Nanos) -> Option<Nanos> {
        each!(self, source => source.after_issue(now))
    }

    fn after_completion(&mut self, now: Nanos) -> Option<Nanos> {
        each!(self, source => source.after_completion(now))
    }
}
