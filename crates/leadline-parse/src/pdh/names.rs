//! Column names: `\\HOST\Object(Instance)\Counter` taken apart and stored once per distinct part.

use std::collections::HashMap;

/// The parts of one header cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path<'a> {
    /// Host name without backslashes; empty where the path has none.
    pub host: &'a str,
    /// Object (group of counters); empty where the cell is no counter path.
    pub object: &'a str,
    /// Instance, `None` for an object that has none.
    pub instance: Option<&'a str>,
    /// Counter name, or the whole cell where it is no counter path.
    pub counter: &'a str,
}

/// Takes a counter path apart; `None` where `cell` is no counter path.
///
/// The instance may hold parentheses, commas, colons and backslashes (names of virtual machines do), and objects and
/// counters may hold parentheses. So the instance ends at the *last* `)\`, and begins at the first `(` that follows
/// the object directly: `Object (x)(Instance)` has a space before the parenthesis that belongs to the object.
/// A backslash before that parenthesis ends the object, and the path has no instance.
///
/// Source: Microsoft, "Specifying a Counter Path" (Performance Counters documentation).
#[must_use]
pub fn split_path(cell: &str) -> Option<Path<'_>> {
    let (host, rest) = match cell.strip_prefix(r"\\") {
        Some(behind) => behind.split_once('\\')?,
        None => ("", cell.strip_prefix('\\')?),
    };
    if let Some(close) = rest.rfind(r")\") {
        let before = &rest.as_bytes()[..close];
        let open = (1..before.len()).find(|&i| before[i] == b'(' && before[i - 1] != b' ');
        if let Some(open) = open.filter(|&open| !before[..open].contains(&b'\\')) {
            let (object, instance) = (&rest[..open], &rest[open + 1..close]);
            return Some(Path {
                host,
                object,
                instance: Some(instance),
                counter: &rest[close + 2..],
            });
        }
    }
    let (object, counter) = rest.split_once('\\')?;
    Some(Path {
        host,
        object,
        instance: None,
        counter,
    })
}

/// The names of all columns, each distinct host and counter kept once.
#[derive(Debug, Default)]
pub struct Names {
    /// Distinct hosts, in order of appearance.
    pub hosts: Vec<String>,
    /// Distinct (object, counter) pairs, in order of appearance.
    pub counters: Vec<(String, String)>,
    /// Per column, index into `hosts`.
    pub column_host: Vec<u32>,
    /// Per column, index into `counters`.
    pub column_counter: Vec<u32>,
    /// All instances in one string.
    instances: String,
    /// Per column, the end of its instance in `instances` and whether it has one; it begins where the last one ends.
    instance_ends: Vec<(u32, bool)>,
    host_index: HashMap<String, u32>,
    counter_index: HashMap<String, u32>,
    key: String,
}

impl Names {
    /// Appends a column; returns whether `cell` is a proper counter path.
    pub fn push(&mut self, cell: &str) -> bool {
        let path = split_path(cell);
        let parts = path.unwrap_or(Path {
            host: "",
            object: "",
            instance: None,
            counter: cell,
        });
        let host = self.host_index.get(parts.host).copied().unwrap_or_else(|| {
            let index = small(self.hosts.len());
            self.hosts.push(parts.host.to_owned());
            self.host_index.insert(parts.host.to_owned(), index);
            index
        });
        self.key.clear();
        self.key.push_str(parts.object);
        // No name holds a NUL, so the pair is unambiguous.
        self.key.push('\0');
        self.key.push_str(parts.counter);
        let counter = self
            .counter_index
            .get(&self.key)
            .copied()
            .unwrap_or_else(|| {
                let index = small(self.counters.len());
                self.counters
                    .push((parts.object.to_owned(), parts.counter.to_owned()));
                self.counter_index.insert(self.key.clone(), index);
                index
            });
        self.column_host.push(host);
        self.column_counter.push(counter);
        self.instances.push_str(parts.instance.unwrap_or_default());
        self.instance_ends
            .push((small(self.instances.len()), parts.instance.is_some()));
        path.is_some()
    }

    /// Forgets what only building needs.
    pub fn finish(&mut self) {
        self.host_index = HashMap::new();
        self.counter_index = HashMap::new();
        self.instances.shrink_to_fit();
    }

    /// Number of columns.
    #[must_use]
    pub fn len(&self) -> usize {
        self.column_counter.len()
    }

    /// Whether there are no columns.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.column_counter.is_empty()
    }

    /// The instance of a column; `None` where it has none or the column does not exist.
    #[must_use]
    pub fn instance(&self, column: usize) -> Option<&str> {
        let (end, has) = *self.instance_ends.get(column)?;
        let start = column
            .checked_sub(1)
            .map_or(0, |before| self.instance_ends[before].0);
        if has {
            self.instances.get(start as usize..end as usize)
        } else {
            None
        }
    }
}

/// Header lines are limited to 256 MB, so every index and offset fits.
fn small(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn split(cell: &str) -> (&str, &str, Option<&str>, &str) {
        let p = split_path(cell).unwrap();
        (p.host, p.object, p.instance, p.counter)
    }

    #[test]
    fn counter_paths() {
        let plain = split(r"\\esx1.lab\Memory\Memory Overcommit (1 Minute Avg)");
        assert_eq!(
            plain,
            (
                "esx1.lab",
                "Memory",
                None,
                "Memory Overcommit (1 Minute Avg)"
            )
        );
        let vcpu = split(r"\\h\Vcpu(1:system:65545:netLegacyRx)\% CoStop");
        assert_eq!(
            vcpu,
            ("h", "Vcpu", Some("1:system:65545:netLegacyRx"), "% CoStop")
        );
        let awkward = split(r"\\h\Group Cpu(12:db (copy), a\b: (old)(2))\% Used");
        assert_eq!(
            awkward,
            (
                "h",
                "Group Cpu",
                Some(r"12:db (copy), a\b: (old)(2)"),
                "% Used"
            )
        );
        let inner = split(r"\\h\Group Cpu(1:a)\b)\% Used (max)");
        assert_eq!(inner, ("h", "Group Cpu", Some(r"1:a)\b"), "% Used (max)"));
        assert_eq!(
            split(r"\\h\Object (x)\Counter"),
            ("h", "Object (x)", None, "Counter")
        );
        assert_eq!(
            split(r"\\h\Object (x)(i)\Counter"),
            ("h", "Object (x)", Some("i"), "Counter")
        );
        assert_eq!(
            split(r"\Processor(_Total)\% Idle"),
            ("", "Processor", Some("_Total"), "% Idle")
        );
        assert_eq!(
            split(r"\\h\Memory\Odd (a)\b"),
            ("h", "Memory", None, r"Odd (a)\b")
        );
        assert_eq!(split(r"\\h\Object()\C"), ("h", "Object", Some(""), "C"));
    }

    #[test]
    fn other_cells_are_no_paths() {
        for cell in ["", "x", r"\", r"\\", r"\\host", r"\\host\object", "a(b)c"] {
            assert_eq!(split_path(cell), None, "{cell}");
        }
    }

    #[test]
    fn instances_are_kept_per_column() {
        let mut names = Names::default();
        for cell in [r"\\h\A(x)\c", r"\\h\B\c", r"\\h\A()\c", r"\\g\A(y)\c"] {
            assert!(names.push(cell));
        }
        assert!(!names.push("odd"));
        names.finish();
        let instances: Vec<_> = (0..6).map(|c| names.instance(c)).collect();
        assert_eq!(
            instances,
            [Some("x"), None, Some(""), Some("y"), None, None]
        );
        assert_eq!(names.column_counter, [0, 1, 0, 0, 2]);
        assert_eq!(names.column_host, [0, 0, 0, 1, 2]);
    }
}
