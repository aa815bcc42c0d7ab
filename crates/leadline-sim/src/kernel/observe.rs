//! Who watches a run: told of every event, chosen at compile time, so that no watching costs nothing.

use crate::time::Nanos;

/// Is told of every event before the model handles it. `()` watches nothing and compiles to nothing; a pair watches
/// with both; an `Option` can be switched when the program runs, at the price of one branch per event.
pub trait Observer<E> {
    /// An event happens at `now`, ns.
    fn observe(&mut self, now: Nanos, event: &E);
}

impl<E> Observer<E> for () {
    #[inline]
    fn observe(&mut self, _now: Nanos, _event: &E) {}
}

impl<E, A: Observer<E>, B: Observer<E>> Observer<E> for (A, B) {
    #[inline]
    fn observe(&mut self, now: Nanos, event: &E) {
        self.0.observe(now, event);
        self.1.observe(now, event);
    }
}

impl<E, O: Observer<E>> Observer<E> for Option<O> {
    #[inline]
    fn observe(&mut self, now: Nanos, event: &E) {
        if let Some(observer) = self {
            observer.observe(now, event);
        }
    }
}
