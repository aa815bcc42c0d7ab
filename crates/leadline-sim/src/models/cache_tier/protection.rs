//! How data is protected: what it takes of raw capacity, and what one small write takes of I/O.
//!
//! # Model
//! A stripe of units with real contents. Copies: one unit and its replicas. A code of k data and m parity units: parity i
//! is the sum of `g^(i j) d_j` over the field of 256 elements, so that m = 1 is the exclusive or and m = 2 is P and Q. A
//! small write changes one data unit as systems do it; every unit that is read or written is counted.
//!
//! # Assumptions
//! A write smaller than a unit to a stripe that is in no cache: a code reads the old data and the old parities and writes
//! the new ones (read-modify-write); a full stripe reads nothing.
//!
//! # Parameters
//! Data units k, parity units m; or copies.
//!
//! # Limits
//! m is at most 2. No witness components, no checksums, no compression.
//!
//! # Sources
//! Patterson, Gibson and Katz, "A case for redundant arrays of inexpensive disks" (SIGMOD '88), small writes; Anvin, "The
//! mathematics of RAID-6" (2004), for P, Q and the field; VMware, vSAN documentation, "Using RAID 5 or RAID 6 erasure
//! coding", for 3+1 and 4+2.

use serde::Deserialize;

use leadline_stats::error::LeadlineError;

const PARITY_MAX: usize = 2;
const UNITS_MAX: usize = 64;

/// A protection scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Protection {
    /// So many copies of everything.
    Copies(usize),
    /// Data units and parity units of a stripe.
    Code {
        /// Data units.
        data: usize,
        /// Parity units.
        parity: usize,
    },
}

/// Units a stripe was read and written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitCount {
    /// Reads.
    pub read: usize,
    /// Writes.
    pub written: usize,
}

impl Protection {
    /// Whether there is such a scheme.
    ///
    /// # Errors
    /// No copy or data unit, or more parity units than the model knows.
    pub fn check(self) -> Result<(), LeadlineError> {
        let is_sound = match self {
            Self::Copies(copies) => (1..=UNITS_MAX).contains(&copies),
            Self::Code { data, parity } => {
                (1..=UNITS_MAX).contains(&data) && (1..=PARITY_MAX).contains(&parity)
            }
        };
        if is_sound {
            return Ok(());
        }
        Err(LeadlineError::new(
            "protection",
            format!("{self:?}"),
            format!("1 to {UNITS_MAX} copies or data units, 1 to {PARITY_MAX} parity units"),
            "Correct the scenario.",
        ))
    }

    /// Raw capacity by what can be used of it: units of a full stripe by its data units.
    #[must_use]
    pub fn capacity_factor(self) -> f64 {
        let stripe = Stripe::new(self);
        stripe.units.len() as f64 / stripe.data as f64
    }

    /// Reads and writes of one small write.
    #[must_use]
    pub fn small_write(self) -> UnitCount {
        let mut stripe = Stripe::new(self);
        stripe.count = UnitCount::default();
        stripe.small_write(0, 0xa5);
        stripe.count
    }
}

/// A stripe, one byte for each unit.
#[derive(Clone, Debug)]
pub struct Stripe {
    scheme: Protection,
    data: usize,
    units: Vec<u8>,
    /// What was read and written since it was made.
    pub count: UnitCount,
}

impl Stripe {
    /// A full stripe of zeros.
    #[must_use]
    pub fn new(scheme: Protection) -> Self {
        let (data, total) = match scheme {
            Protection::Copies(copies) => (1, copies),
            Protection::Code { data, parity } => (data, data + parity),
        };
        Self {
            scheme,
            data,
            units: vec![0; total],
            count: UnitCount {
                read: 0,
                written: total,
            },
        }
    }

    fn read(&mut self, unit: usize) -> u8 {
        self.count.read += 1;
        self.units[unit]
    }

    fn write(&mut self, unit: usize, value: u8) {
        self.count.written += 1;
        self.units[unit] = value;
    }

    /// Changes one data unit and what protects it.
    pub fn small_write(&mut self, unit: usize, value: u8) {
        if let Protection::Copies(copies) = self.scheme {
            (0..copies).for_each(|copy| self.write(copy, value));
            return;
        }
        let change = self.read(unit) ^ value;
        self.write(unit, value);
        for index in self.data..self.units.len() {
            let parity = self.read(index) ^ times(power((index - self.data) * unit), change);
            self.write(index, parity);
        }
    }

    /// All units: data, then parity or copies.
    #[must_use]
    pub fn units(&self) -> &[u8] {
        &self.units
    }

    /// The parities as they must be for the data.
    #[must_use]
    pub fn parities(&self) -> Vec<u8> {
        let sum = |index: usize| {
            let parts = self.units[..self.data].iter().enumerate();
            parts.fold(0, |sum, (unit, value)| {
                sum ^ times(power(index * unit), *value)
            })
        };
        (0..self.units.len() - self.data).map(sum).collect()
    }
}

/// Product in the field of 256 elements, polynomial 0x11d.
fn times(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        if b & 1 == 1 {
            product ^= a;
        }
        let carry = a & 0x80 != 0;
        a <<= 1;
        if carry {
            a ^= 0x1d;
        }
        b >>= 1;
    }
    product
}

/// g^exponent for g = 2.
fn power(exponent: usize) -> u8 {
    (0..exponent % 255).fold(1, |value, _| times(value, 2))
}
