//! M/M/1 in NexoSim, as lean as it allows: one model, one pending arrival, one pending departure, one thread.
//!
//! `nexosim-mm1 EVENTS` prints events handled, the mean wait in ms and the seconds of CPU time.

use std::collections::VecDeque;
use std::time::Duration;

use nexosim::model::{Context, Model};
use nexosim::simulation::{Mailbox, SimInit};
use nexosim::time::MonotonicTime;

const GAP_NS: f64 = 1_250_000.0;
const SERVICE_NS: f64 = 1_000_000.0;

struct Queue {
    state: u64,
    waiting: VecDeque<MonotonicTime>,
    is_busy: bool,
    wait_ns: f64,
    served: u64,
    handled: u64,
    results: std::sync::Arc<std::sync::Mutex<(u64, f64)>>,
}

impl Queue {
    /// An exponential time of this mean; at least 1 ns, as an event must lie in the future. The numbers are from SplitMix64.
    fn draw(&mut self, mean_ns: f64) -> Duration {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let unit = ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64;
        Duration::from_nanos((-mean_ns * (1.0 - unit).ln()).max(1.0) as u64)
    }

    fn start(&mut self, context: &mut Context<Self>) {
        let Some(arrived) = self.waiting.pop_front() else {
            self.is_busy = false;
            return;
        };
        self.is_busy = true;
        self.wait_ns += context.time().duration_since(arrived).as_nanos() as f64;
        self.served += 1;
        let service = self.draw(SERVICE_NS);
        let _ = context.schedule_event(service, Self::depart, ());
    }

    fn handled(&mut self) {
        self.handled += 1;
        if self.handled % 1024 == 0 {
            if let Ok(mut results) = self.results.lock() {
                *results = (self.handled, self.wait_ns / self.served as f64);
            }
        }
    }

    fn arrive(&mut self, _: (), context: &mut Context<Self>) {
        self.handled();
        self.waiting.push_back(context.time());
        let gap = self.draw(GAP_NS);
        let _ = context.schedule_event(gap, Self::arrive, ());
        if !self.is_busy {
            self.start(context);
        }
    }

    fn depart(&mut self, _: (), context: &mut Context<Self>) {
        self.handled();
        self.start(context);
    }
}

impl Model for Queue {
    async fn init(mut self, context: &mut Context<Self>) -> nexosim::model::InitializedModel<Self> {
        let gap = self.draw(GAP_NS);
        let _ = context.schedule_event(gap, Self::arrive, ());
        self.into()
    }
}

/// CPU time of this process, seconds; Linux.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().and_then(|word| word.parse::<f64>().ok());
    first.unwrap_or(f64::NAN) / 1e9
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let events: f64 = std::env::args().nth(1).unwrap_or("1000000".into()).parse()?;
    let results = std::sync::Arc::new(std::sync::Mutex::new((0, 0.0)));
    let queue = Queue {
        state: 1,
        waiting: VecDeque::new(),
        is_busy: false,
        wait_ns: 0.0,
        served: 0,
        handled: 0,
        results: results.clone(),
    };
    let simulation = SimInit::with_num_threads(1).add_model(queue, Mailbox::new(), "queue");
    let (mut simulation, _) = simulation.init(MonotonicTime::EPOCH)?;
    let start = cpu_seconds();
    simulation.step_until(Duration::from_secs_f64(events / 2.0 * GAP_NS / 1e9))?;
    let spent = cpu_seconds() - start;
    let (handled, wait_ns) = *results.lock().map_err(|_| "a model panicked")?;
    println!("{handled} {:.3} {spent:.6}", wait_ns / 1e6);
    Ok(())
}
