//! The one error of the Rust crates: where, what was found, what was expected, what to do.

use std::fmt;

/// Input that cannot be read, parameters that make no run, or a run that broke a law, told in four parts so that the
/// reader of the message can act on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeadlineError {
    /// File name and, where it helps, line, as `cap.csv:1042`; or the component and parameter, as `vm3: limit`.
    pub place: String,
    /// What stands or happened there.
    pub found: String,
    /// What should stand there, or why it does not.
    pub expected: String,
    /// What the user can do about it, as a sentence.
    pub advice: String,
}

impl LeadlineError {
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

    /// The error for an operating-system failure on `place`.
    #[must_use]
    pub fn from_io(place: &str, doing: &str, error: &std::io::Error) -> Self {
        Self::new(
            place,
            format!("cannot {doing}: {error}"),
            "a file that can be opened, read and written there",
            "Check the path, the permissions and the disk, then run the command again.",
        )
    }
}

/// Parameters of a scenario, or a state, that make no sense.
///
/// # Errors
/// Always: it is the error.
#[allow(clippy::needless_pass_by_value)] // most have a string of their own
pub fn wrong<T>(place: &str, found: impl ToString, expected: &str) -> Result<T, LeadlineError> {
    let found = found.to_string();
    Err(LeadlineError::new(
        place,
        found,
        expected,
        "Correct the scenario.",
    ))
}

impl fmt::Display for LeadlineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}; {}. {}",
            self.place, self.found, self.expected, self.advice
        )
    }
}

impl std::error::Error for LeadlineError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_four_parts_make_a_message() {
        let error = LeadlineError::new(
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
