//! Draws against the moments and quantiles of their distributions.

#![allow(clippy::unwrap_used)] // a test may end so

use leadline_sim::measure::LogLinear;
use leadline_sim::random::{
    Constant, Distribution, Empirical, Erlang, Exponential, LogNormal, Normal, Pareto, Sample,
    Streams, Uniform,
};

const DRAWS: u32 = 400_000;

fn mean_and_deviation(sample: &impl Sample) -> (f64, f64) {
    let mut stream = Streams::new(2).stream("test", "draws");
    let draws: Vec<f64> = (0..DRAWS).map(|_| sample.draw(&mut stream)).collect();
    let mean = draws.iter().sum::<f64>() / f64::from(DRAWS);
    let squares: f64 = draws.iter().map(|x| (x - mean) * (x - mean)).sum();
    (mean, (squares / f64::from(DRAWS)).sqrt())
}

fn agrees(sample: &impl Sample, mean: f64, deviation: f64) {
    let found = mean_and_deviation(sample);
    assert!(
        (sample.mean() - mean).abs() <= 1e-9 * mean,
        "{} for {mean}",
        sample.mean()
    );
    assert!(
        (found.0 - mean).abs() <= 0.01 * mean,
        "{found:?} for {mean}"
    );
    assert!(
        (found.1 - deviation).abs() <= 0.03 * deviation,
        "{found:?} for {deviation}"
    );
}

#[test]
fn moments_are_right() {
    agrees(&Constant(7.0), 7.0, 0.0);
    agrees(
        &Uniform {
            low: 2.0,
            high: 8.0,
        },
        5.0,
        6.0 / 12f64.sqrt(),
    );
    agrees(&Exponential { mean: 5.0 }, 5.0, 5.0);
    agrees(
        &Erlang {
            mean: 6.0,
            stages: 9,
        },
        6.0,
        2.0,
    );
    agrees(
        &Normal {
            mean: 100.0,
            deviation: 5.0,
        },
        100.0,
        5.0,
    );
    agrees(&LogNormal::from_mean(5.0, 0.5), 5.0, 2.5);
    agrees(&Pareto::from_mean(5.0, 5.0), 5.0, 5.0 / 15f64.sqrt());
}

#[test]
fn a_cut_normal_has_the_mean_it_states() {
    let sample = Normal {
        mean: 1.0,
        deviation: 2.0,
    };
    let (mean, _) = mean_and_deviation(&sample);
    assert!(
        (mean - sample.mean()).abs() < 0.01,
        "{mean} for {}",
        sample.mean()
    );
    assert!(
        (Normal {
            mean: 3.0,
            deviation: 0.0
        }
        .mean()
            - 3.0)
            .abs()
            < 1e-12
    );
}

#[test]
fn medians_and_tails_are_right() {
    let mut stream = Streams::new(2).stream("test", "tails");
    let share =
        |sample: &dyn Fn(&mut leadline_sim::random::Stream) -> f64, above: f64, stream: &mut _| {
            (0..DRAWS).filter(|_| sample(stream) > above).count() as f64 / f64::from(DRAWS)
        };
    let lognormal = LogNormal::from_median(3.0, 1.0);
    assert!((share(&|s| lognormal.draw(s), 3.0, &mut stream) - 0.5).abs() < 0.004);
    let pareto = Pareto {
        minimum: 2.0,
        shape: 1.5,
    };
    let tail = share(&|s| pareto.draw(s), 20.0, &mut stream);
    assert!((tail - libm::pow(0.1, 1.5)).abs() < 0.001, "{tail}");
    assert!(
        Pareto {
            minimum: 2.0,
            shape: 1.0
        }
        .mean()
        .is_infinite()
    );
}

#[test]
fn a_histogram_is_drawn_as_it_was_measured() {
    let mut measured = LogLinear::default();
    for (value, count) in [(0, 10), (3, 500), (100, 200), (1_000_000, 290)] {
        measured.record_n(value, count);
    }
    let empirical = Empirical::from_histogram(&measured).unwrap();
    let distribution = Distribution::Empirical(std::sync::Arc::new(empirical));
    let mut stream = Streams::new(2).stream("test", "empirical");
    let mut drawn = LogLinear::default();
    for _ in 0..DRAWS {
        drawn.record(distribution.sample(&mut stream));
    }
    assert!(measured.distance(&drawn).unwrap() < 0.01);
    assert!((distribution.mean() / measured.mean().unwrap() - 1.0).abs() < 1e-6);
}

#[test]
fn a_histogram_without_sense_is_refused() {
    assert_eq!(Empirical::from_buckets(&[]), None);
    assert_eq!(Empirical::from_buckets(&[(1.0, 2.0, 0.0)]), None);
    assert_eq!(Empirical::from_buckets(&[(1.0, 2.0, -1.0)]), None);
    assert_eq!(Empirical::from_buckets(&[(f64::NAN, 2.0, 1.0)]), None);
    assert_eq!(Empirical::from_histogram(&LogLinear::default()), None);
}

#[test]
fn parameters_without_sense_are_refused() {
    let senseless = [
        Distribution::Constant(Constant(-1.0)),
        Distribution::Uniform(Uniform {
            low: 2.0,
            high: 1.0,
        }),
        Distribution::Exponential(Exponential { mean: f64::NAN }),
        Distribution::Erlang(Erlang {
            mean: 1.0,
            stages: 0,
        }),
        Distribution::Normal(Normal {
            mean: 1.0,
            deviation: -1.0,
        }),
        Distribution::LogNormal(LogNormal::from_mean(0.0, 1.0)),
        Distribution::Pareto(Pareto::from_mean(1.0, 1.0 - 1e-9)),
        Distribution::Pareto(Pareto {
            minimum: 1.0,
            shape: 0.0,
        }),
    ];
    for distribution in senseless {
        let error = distribution.check("disk: service").unwrap_err();
        assert!(error.to_string().starts_with("disk: service: "), "{error}");
    }
    let sensible = [
        Distribution::Constant(Constant(0.0)),
        Distribution::Uniform(Uniform {
            low: 1.0,
            high: 1.0,
        }),
        Distribution::LogNormal(LogNormal::from_median(1.0, 0.0)),
        Distribution::Pareto(Pareto::from_mean(1.0, 1.1)),
    ];
    for distribution in sensible {
        distribution.check("disk: service").unwrap();
    }
}
