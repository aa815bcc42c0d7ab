//! Operations of a management server on hosts behind a link.
//!
//! # Model
//! A client does operations one after the other. An operation is a number of exchanges: a request, work at the other end, a
//! response. A message goes in flights of segments as TCP sends them: ten at first, twice as many after each round trip,
//! one more per round trip once a loss has been seen. A lost segment is sent again after one more round trip when three or
//! more follow it, else after the retransmission timeout, which doubles as long as the segment is lost again. Each direction
//! of the link sends one flight at a time, so that clients share its bandwidth.
//!
//! # Assumptions
//! Both ends have window and buffers enough; the window is back at its start at the begin of a message, as TCP does on a
//! connection that was idle. Acknowledgements are not lost. Bytes and work of an operation spread evenly over its exchanges.
//! With a connection for each operation, TCP and TLS 1.2 come first.
//!
//! # Parameters
//! See [`Spec`].
//!
//! # Limits
//! No delay from queues of other traffic, no limits of sessions, no failures of operations; CPU and disks of the hosts are
//! only in the work of an operation.
//!
//! # Sources
//! RFC 6928 for the first flight; RFC 5681, 3.1, 3.2 and 4.1, for slow start, fast retransmit and idle connections;
//! RFC 6298 and Linux `TCP_RTO_MIN` for the timeout; RFC 9293 and RFC 5246, 7.3, for round trips of a new connection;
//! Mathis, Semke, Mahdavi and Ott, "The macroscopic behavior of the TCP congestion avoidance algorithm" (CCR 27, 1997).

pub mod system;

use serde::Deserialize;

use crate::kernel::{Model, Schedule};
use crate::measure::{Durations, TimeWeighted, WindowSeries};
use crate::random::{Stream, Streams};
use crate::time::{MILLISECOND, Nanos, SECOND, millis, whole};
use leadline_stats::error::{LeadlineError, wrong};

/// Payload of a segment, bytes. Source: RFC 9293, 3.7.1: 1,500 bytes of Ethernet less 20 each for IP and TCP.
pub const SEGMENT_BYTES: u64 = 1_460;
/// Headers of a segment, bytes: IP and TCP. Source: RFC 9293, 3.7.1.
pub const HEADER_BYTES: u64 = 40;
/// Segments of the first flight. Source: RFC 6928.
pub const FIRST_FLIGHT: u64 = 10;
/// What a retransmission timeout is longer than the round trip, ns. Source: Linux, `TCP_RTO_MIN`.
pub const RTO_ABOVE: Nanos = 200 * MILLISECOND;
/// Round trips before the first byte of a new connection: TCP one, TLS 1.2 two.
pub const HANDSHAKE_TRIPS: u32 = 3;
/// Segments behind a lost one that let it be sent again at once. Source: RFC 5681, 3.2.
const DUPLICATES: u64 = 3;
/// Timeouts of one segment at most. Source: RFC 9293, 3.8.3: then the connection is given up; here it gets through.
const TIMEOUTS_MAX: u32 = 15;

/// A kind of operation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationSpec {
    /// Its name.
    pub name: String,
    /// Exchanges, each waiting for the one before.
    pub round_trips: u32,
    /// Bytes of all requests.
    pub request_bytes: u64,
    /// Bytes of all responses.
    pub response_bytes: u64,
    /// Work at the other end, ns.
    pub work: Nanos,
}

/// A link, and what goes over it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Round trip of an empty segment, ns.
    pub round_trip: Nanos,
    /// Bits per second, in each direction.
    pub bits_per_second: f64,
    /// Share of segments that are lost, 0 to 1.
    pub loss: f64,
    /// Whether each operation has a connection of its own.
    pub reconnects: bool,
    /// Clients; each does all kinds in turn, beginning at another one.
    pub clients: u32,
    /// Width of the series, ns.
    pub window: Nanos,
    /// Kinds of operations.
    pub operations: Vec<OperationSpec>,
}

/// A client goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkEvent(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Round trips until there is a connection.
    Connect(u32),
    /// Bytes of the request that are not sent.
    Request(u64),
    /// The other end works.
    Work,
    /// Bytes of the response that are not sent.
    Response(u64),
    /// The exchange is over.
    Arrived,
}

#[derive(Clone, Debug)]
struct Client {
    kind: usize,
    began: Nanos,
    trips_left: u32,
    step: Step,
    /// Segments of the next flight, and from where on one more each time.
    window: u64,
    threshold: u64,
    stream: Stream,
}

/// What is measured of a kind of operation.
#[derive(Clone, Debug)]
pub struct OperationMeasures {
    /// From begin to end.
    pub times: Durations,
    /// The same in ms, by time of completion since measuring began.
    pub times_ms: WindowSeries,
}

/// Clients that manage hosts over a link.
#[derive(Clone, Debug)]
pub struct ManagementPlane {
    spec: Spec,
    clients: Vec<Client>,
    link_free: [Nanos; 2],
    measured_since: Nanos,
    began_count: u64,
    done_count: u64,
    /// By kind of operation.
    pub measures: Vec<OperationMeasures>,
    /// Clients with an operation under way.
    pub busy: TimeWeighted,
    /// Time each direction sent since measuring began, ns: to the hosts, and back.
    pub sent: [Nanos; 2],
    /// Segments sent, sent again at once, and after a timeout, since measuring began.
    pub segments: [u64; 3],
}

impl ManagementPlane {
    /// Clients at the beginning of their first operation.
    ///
    /// # Errors
    /// When the parameters make no system.
    pub fn new(spec: Spec) -> Result<Self, LeadlineError> {
        check(&spec)?;
        let streams = Streams::new(spec.seed);
        let clients = (0..spec.clients).map(|index| Client {
            kind: index as usize % spec.operations.len(),
            began: 0,
            trips_left: 0,
            step: Step::Work,
            window: FIRST_FLIGHT,
            threshold: u64::MAX,
            stream: streams.stream(&format!("client-{}", index + 1), "loss"),
        });
        let measures = spec.operations.iter().map(|_| OperationMeasures {
            times: Durations::default(),
            times_ms: WindowSeries::new(spec.window),
        });
        Ok(Self {
            clients: clients.collect(),
            link_free: [0; 2],
            measured_since: 0,
            began_count: 0,
            done_count: 0,
            measures: measures.collect(),
            busy: TimeWeighted::default(),
            sent: [0; 2],
            segments: [0; 3],
            spec,
        })
    }

    /// Forgets what was measured; operations go on.
    pub fn restart_measuring(&mut self, now: Nanos) {
        self.measured_since = now;
        self.busy.restart(now);
        (self.sent, self.segments) = ([0; 2], [0; 3]);
        for own in &mut self.measures {
            own.times = Durations::default();
            own.times_ms = WindowSeries::new(self.spec.window);
        }
    }

    /// The next operation of a client.
    fn begin(&mut self, now: Nanos, index: usize) {
        let client = &mut self.clients[index];
        client.began = now;
        client.trips_left = self.spec.operations[client.kind].round_trips;
        self.began_count += 1;
        self.busy.add(now, 1);
        if self.spec.reconnects {
            client.step = Step::Connect(HANDSHAKE_TRIPS);
        } else {
            self.begin_exchange(index);
        }
    }

    /// The next exchange of the operation. An exchange that carries nothing still takes a segment each way.
    fn begin_exchange(&mut self, index: usize) {
        let client = &mut self.clients[index];
        let operation = &self.spec.operations[client.kind];
        client.step = Step::Request(part(operation.request_bytes, operation, client.trips_left));
        (client.window, client.threshold) = (FIRST_FLIGHT, u64::MAX);
    }

    fn go_on(&mut self, now: Nanos, client_index: u32, schedule: &mut Schedule<LinkEvent>) {
        let index = client_index as usize;
        let half = self.spec.round_trip / 2;
        let client = &self.clients[index];
        let operation = &self.spec.operations[client.kind];
        let (trips_left, step) = (client.trips_left, client.step);
        let next = match step {
            Step::Connect(0) => {
                self.begin_exchange(index);
                now
            }
            Step::Connect(left) => {
                self.clients[index].step = Step::Connect(left - 1);
                now + self.spec.round_trip
            }
            Step::Request(bytes) => {
                let (left, next) = self.flight(now, index, 0, bytes);
                let step = left.map_or(Step::Work, Step::Request);
                self.clients[index].step = step;
                if left.is_some() { next } else { next + half }
            }
            Step::Work => {
                let work = part(operation.work, operation, trips_left);
                let bytes = part(operation.response_bytes, operation, trips_left);
                let client = &mut self.clients[index];
                client.step = Step::Response(bytes);
                (client.window, client.threshold) = (FIRST_FLIGHT, u64::MAX);
                now + work
            }
            Step::Response(bytes) => {
                let (left, next) = self.flight(now, index, 1, bytes);
                let step = left.map_or(Step::Arrived, Step::Response);
                self.clients[index].step = step;
                // The odd ns of a round trip is on the way back.
                let back = self.spec.round_trip - half;
                if left.is_some() { next } else { next + back }
            }
            Step::Arrived => {
                self.clients[index].trips_left -= 1;
                if self.clients[index].trips_left > 0 {
                    self.begin_exchange(index);
                } else {
                    self.finish(now, index);
                    self.begin(now, index);
                }
                now
            }
        };
        schedule.at(next, LinkEvent(client_index));
    }

    /// Sends a flight of a message of which `bytes` are left. Returns what is left after it, None for nothing, and when
    /// the next flight may go, or the last has left.
    fn flight(&mut self, now: Nanos, index: usize, way: usize, bytes: u64) -> (Option<u64>, Nanos) {
        let client = &mut self.clients[index];
        let wanted = bytes.div_ceil(SEGMENT_BYTES).max(1);
        let count = wanted.min(client.window);
        let payload = bytes.min(count * SEGMENT_BYTES);
        let lost: Vec<u64> = (0..count)
            .filter(|_| self.spec.loss > 0.0 && client.stream.chance(self.spec.loss))
            .collect();
        let on_wire = payload + count * HEADER_BYTES;
        let again: u64 = lost.len() as u64 * (SEGMENT_BYTES.min(payload) + HEADER_BYTES);
        let begins = now.max(self.link_free[way]);
        let takes = wire_time(on_wire + again, self.spec.bits_per_second);
        self.link_free[way] = begins + takes;
        self.sent[way] += takes;
        self.segments[0] += count;
        let mut extra = 0;
        match lost.first() {
            None if client.window < client.threshold => {
                client.window = client.window.saturating_mul(2).min(client.threshold);
            }
            None => client.window += 1,
            Some(first) if count - 1 - first >= DUPLICATES => {
                self.segments[1] += lost.len() as u64;
                client.threshold = (count / 2).max(2);
                client.window = client.threshold;
                extra = self.spec.round_trip;
            }
            Some(_) => {
                self.segments[2] += lost.len() as u64;
                client.threshold = (count / 2).max(2);
                client.window = 1;
                extra = timeouts(&self.spec, &mut client.stream);
            }
        }
        if wanted == count {
            return (None, begins + takes + extra);
        }
        let acknowledged = begins + self.spec.round_trip;
        (
            Some(bytes - payload),
            acknowledged.max(begins + takes) + extra,
        )
    }

    fn finish(&mut self, at: Nanos, index: usize) {
        let client = &mut self.clients[index];
        let own = &mut self.measures[client.kind];
        own.times.record(at - client.began);
        own.times_ms
            .record(at - self.measured_since, millis(at - client.began));
        client.kind = (client.kind + 1) % self.spec.operations.len();
        self.done_count += 1;
        self.busy.sub(at, 1);
    }
}

/// The share of an operation's bytes or work that an exchange has, of those with so many to go: what one does not get, a
/// later one does, so that nothing is lost.
fn part(whole: u64, operation: &OperationSpec, trips_left: u32) -> u64 {
    let (all, index) = (
        u64::from(operation.round_trips),
        u64::from(operation.round_trips - trips_left),
    );
    whole * (index + 1) / all - whole * index / all
}

fn wire_time(bytes: u64, bits_per_second: f64) -> Nanos {
    whole(bytes as f64 * 8.0 * SECOND as f64 / bits_per_second)
}

/// Timeouts until a segment gets through, ns.
///
/// Source: RFC 6298, 2 and 5.5: with a steady round trip its variance is that of the clock, and the timeout doubles.
fn timeouts(spec: &Spec, stream: &mut Stream) -> Nanos {
    let mut timeout = spec.round_trip + RTO_ABOVE;
    let mut sum = timeout;
    for _ in 1..TIMEOUTS_MAX {
        if !stream.chance(spec.loss) {
            break;
        }
        timeout = timeout.saturating_mul(2).min(120 * SECOND);
        sum += timeout;
    }
    sum
}

/// What one connection can carry at most on a link that loses segments, bits per second.
///
/// Source: Mathis et al. as above, equation 3 with a constant of sqrt(3/2): one loss at even distances, each segment
/// acknowledged.
#[must_use]
pub fn mathis_bits_per_second(round_trip: Nanos, loss: f64) -> f64 {
    let seconds = crate::time::seconds(round_trip);
    8.0 * SEGMENT_BYTES as f64 / seconds * libm::sqrt(1.5 / loss)
}

impl Model for ManagementPlane {
    type Event = LinkEvent;

    fn start(&mut self, schedule: &mut Schedule<LinkEvent>) {
        for index in 0..self.spec.clients {
            self.begin(0, index as usize);
            schedule.at(0, LinkEvent(index));
        }
    }

    fn handle(&mut self, now: Nanos, event: LinkEvent, schedule: &mut Schedule<LinkEvent>) {
        self.go_on(now, event.0, schedule);
    }

    fn check(&self, now: Nanos) -> Result<(), LeadlineError> {
        let under_way = self.began_count - self.done_count;
        if under_way == u64::from(self.spec.clients) {
            return Ok(());
        }
        Err(LeadlineError::new(
            "link",
            format!("{under_way} operations under way at {now} ns"),
            "one for each client (a defect of the model)",
            "Report it with the scenario.",
        ))
    }
}

fn check(spec: &Spec) -> Result<(), LeadlineError> {
    let rate = spec.bits_per_second;
    if !(rate >= 1.0 && rate.is_finite() && (0.0..0.9).contains(&spec.loss)) {
        return wrong(
            "link",
            format!("{rate} bit/s, loss {}", spec.loss),
            "1 bit/s or more, and a loss from 0 to below 0.9",
        );
    }
    if spec.operations.is_empty() || !(1..=10_000).contains(&spec.clients) || spec.window == 0 {
        return wrong(
            "link",
            format!(
                "{} operations, {} clients",
                spec.operations.len(),
                spec.clients
            ),
            "operations, and 1 to 10,000 clients",
        );
    }
    for own in &spec.operations {
        // Time has to pass, or operations would go on for ever at once.
        let bytes = own.request_bytes.max(own.response_bytes);
        if own.round_trips == 0 || own.round_trips > 1_000_000 || bytes > 1 << 40 {
            return wrong(
                &format!("operation {}", own.name),
                format!("{} round trips, {bytes} bytes", own.round_trips),
                "1 to 1,000,000 round trips, and 1 TB at most",
            );
        }
    }
    Ok(())
}
