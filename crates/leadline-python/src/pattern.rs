//! `leadline._core.LinearRegex`: regular expressions of users' files, in time linear in the text.

use std::collections::HashMap;

use leadline_stats::error::LeadlineError;
use pyo3::prelude::*;
use regex::{Error, Regex, RegexBuilder};

use crate::errors::to_python;

/// Bytes that a compiled expression may take. Judgement: `\w` with every letter of Unicode takes a tenth of it.
const SIZE_MAX: usize = 1 << 20;

/// Adds the class of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<LinearRegex>()
}

/// A regular expression that no text can make slow.
#[pyclass(frozen, module = "leadline._core")]
pub struct LinearRegex {
    whole: Regex,
}

#[pymethods]
impl LinearRegex {
    /// Compile an expression.
    ///
    /// Raises `CoreError` for what is no regular expression, too large, or not decided in linear time (look-around,
    /// back-references).
    #[new]
    fn new(py: Python<'_>, pattern: &str) -> PyResult<Self> {
        compiled(pattern)
            .map(|whole| Self { whole })
            .map_err(|error| to_python(py, &refused(pattern, &error)))
    }

    /// Names of the groups, in order.
    #[getter]
    fn groups(&self) -> Vec<&str> {
        self.whole.capture_names().flatten().collect()
    }

    /// What the named groups hold where all of a text matches (None: a group that has no part in it); None elsewhere.
    fn full_match<'a>(&'a self, text: &'a str) -> Option<HashMap<&'a str, Option<&'a str>>> {
        let found = self.whole.captures(text)?;
        let names = self.whole.capture_names().flatten();
        Some(
            names
                .map(|name| (name, found.name(name).map(|part| part.as_str())))
                .collect(),
        )
    }
}

/// The expression, anchored at both ends of the text.
fn compiled(pattern: &str) -> Result<Regex, Error> {
    let build = |text: &str| RegexBuilder::new(text).size_limit(SIZE_MAX).build();
    build(pattern)?; // alone first: "a)|(?:b" must not become sound by what is put around it
    // The line break ends a comment of (?x).
    build(&format!(r"\A(?:{pattern})\z")).or_else(|_| build(&format!("\\A(?:{pattern}\n)\\z")))
}

fn refused(pattern: &str, error: &Error) -> LeadlineError {
    let found = match error {
        Error::CompiledTooBig(_) => "too large when compiled".to_owned(),
        // The last line says why; those before it draw an arrow, which one line cannot hold.
        Error::Syntax(message) => message
            .lines()
            .last()
            .map_or(message.as_str(), |line| line.trim_start_matches("error: "))
            .to_owned(),
        other => other.to_string(),
    };
    LeadlineError::new(
        format!("the expression {pattern}"),
        found,
        "a regular expression without look-around and back-references, which is matched in linear time",
        "Write it without them; https://docs.rs/regex lists what is allowed.",
    )
}
