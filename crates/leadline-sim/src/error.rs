//! The one error of the simulator: where, what was found, what was expected, what to do.

use std::fmt;

/// Parameters that make no run, or a run that broke one of its own laws.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimError {
    /// The component and parameter: `vm3: limit`.
    pub place: String,
    /// What stands or happened there.
    pub found: String,
    /// What should.
    pub expected: String,
    /// What the user can do about it, as a sentence.
    pub advice: String,
}

impl SimError {
    /// Builds the error from its four parts.
    pub fn new(
        place: impl Into<String>,
        found: impl Into<String>,
        expected: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            place: place.into(),
            found: found.into(),
            expected: expected.into(),
            advice: advice.into(),
        }
    }
}

/// Parameters of a scenario, or a state, that make no sense.
///
/// # Errors
/// Always: it is the error.
#[allow(clippy::needless_pass_by_value)] // most have a string of their own
pub fn wrong<T>(place: &str, found: impl ToString, expected: &str) -> Result<T, SimError> {
    let found = found.to_string();
    Err(SimError::new(
        place,
        found,
        expected,
        "Correct the scenario.",
    ))
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}; {}. {}",
            self.place, self.found, self.expected, self.advice
        )
    }
}

impl std::error::Error for SimError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_four_parts_make_a_message() {
        let error = SimError::new(
            "vm1: limit",
            "-5 IOPS",
            "a positive rate",
            "Leave it out for none.",
        );
        assert_eq!(
            error.to_string(),
            "vm1: limit: -5 IOPS; a positive rate. Leave it out for none."
        );
    }
}
