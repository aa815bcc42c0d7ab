//! The one error of every parser: where, what was found, what was expected, what to do.

use std::fmt;

/// Input that cannot be read, told in four parts so that the reader of the message can act on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// File name and, where it helps, line: `cap.csv:1042`.
    pub place: String,
    /// What stands there.
    pub found: String,
    /// What should stand there, or why it does not.
    pub expected: String,
    /// What the user can do about it, as a sentence.
    pub advice: String,
}

impl ParseError {
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

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}; {}. {}",
            self.place, self.found, self.expected, self.advice
        )
    }
}

impl std::error::Error for ParseError {}
