//! Statistics over many networks.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use fhec_tests::differential::{Limits, Temper, draw};
use rayon::prelude::*;

use crate::compile::{Refusal, Rings};
use crate::judge::{Evaluation, Place, Verdict, judge};

/// Share of networks that may be refused.
const MOST_REFUSED: f64 = 0.02;

/// One network and what became of it.
struct Case {
    seed: u64,
    words: String,
    verdict: Verdict,
}

pub(crate) struct Tally {
    title: String,
    cases: Vec<Case>,
}

impl Tally {
    /// Draws and judges the networks of many seeds.
    pub(crate) fn of(seeds: Range<u64>, temper: Temper, limits: &Limits, rings: Rings) -> Self {
        let case = |seed: u64| {
            let drawn = draw(seed, temper, limits);
            let calibrated = if drawn.calibration.is_some() { "calibrated" } else { "made-up inputs" };
            let words = format!("{} ({calibrated})", drawn.network);
            let case = Case { seed, words, verdict: judge(&drawn, rings) };
            // Where a network takes minutes, what is known of it is told at once.
            if rings == Rings::Secure {
                eprintln!("{temper:?} {case}");
            }
            case
        };
        let title = format!("{temper:?} networks of seeds {seeds:?}, {rings:?} rings");
        Self { title, cases: seeds.into_par_iter().map(case).collect() }
    }

    fn faults(&self) -> impl Iterator<Item = &Case> {
        self.cases.iter().filter(|case| case.is_fault())
    }

    fn refusals(&self) -> impl Iterator<Item = (&Case, &Refusal)> {
        self.cases.iter().filter_map(|case| match &case.verdict {
            Verdict::Refused(refusal) => Some((case, refusal)),
            Verdict::Evaluated { .. } | Verdict::Misread(_) => None,
        })
    }

    /// Nothing beyond the bound, nothing silently wrong, hardly anything refused.
    pub(crate) fn assert_good(&self) {
        let seeds: Vec<u64> = self.faults().map(|case| case.seed).collect();
        assert!(seeds.is_empty(), "{}: wrong or unflagged at seeds {seeds:?}", self.title);
        let refused = self.refusals().count() as f64 / self.cases.len().max(1) as f64;
        assert!(refused <= MOST_REFUSED, "{}: {:.1} % refused", self.title, 100.0 * refused);
        let helpless: Vec<u64> =
            self.refusals().filter(|(_, refusal)| !refusal.is_helpful).map(|(case, _)| case.seed).collect();
        assert!(helpless.is_empty(), "{}: no layer or no help in the refusals of {helpless:?}", self.title);
    }
}

impl Case {
    fn is_fault(&self) -> bool {
        match &self.verdict {
            Verdict::Evaluated { evaluations, .. } => evaluations.iter().any(|e| e.is_fault()),
            Verdict::Misread(_) => true,
            Verdict::Refused(_) => false,
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        let mut rings: BTreeMap<u32, usize> = BTreeMap::new();
        for case in &self.cases {
            if let Verdict::Evaluated { log_n, .. } = case.verdict {
                *rings.entry(log_n).or_default() += 1;
            }
        }
        writeln!(
            f,
            "  {} networks, {} refused; by ring degree {rings:?}",
            self.cases.len(),
            self.refusals().count()
        )?;
        for place in [Place::Calibrated, Place::Like, Place::Beyond, Place::Far] {
            let all = || {
                self.cases.iter().flat_map(|case| match &case.verdict {
                    Verdict::Evaluated { evaluations, .. } => evaluations.as_slice(),
                    Verdict::Refused(_) | Verdict::Misread(_) => &[],
                })
            };
            let here = || all().filter(|e| e.place == place);
            writeln!(
                f,
                "  {place:?}: {} evaluations, {} right, {} flagged, {} faults; largest error of the right ones {:.2} of the bound",
                here().count(),
                here().filter(|e| e.is_right()).count(),
                here().filter(|e| e.is_flagged).count(),
                here().filter(|e| e.is_fault()).count(),
                here().filter(|e| e.is_right()).map(|e| e.ratio).fold(0.0, f64::max),
            )?;
        }
        for case in self.faults() {
            writeln!(f, "  {case}")?;
        }
        for (case, _) in self.refusals() {
            writeln!(f, "  {case}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, words, verdict } = self;
        match verdict {
            Verdict::Evaluated { log_n, evaluations } => {
                let told: Vec<String> = evaluations.iter().map(Evaluation::to_string).collect();
                write!(f, "seed {seed} at 2^{log_n}: {} of the bound: {words}", told.join(", "))
            }
            Verdict::Misread(text) => write!(f, "seed {seed}: misread, {text}: {words}"),
            Verdict::Refused(Refusal { code, text, is_helpful }) => {
                let help = if *is_helpful { "" } else { ", NO HELP" };
                write!(f, "seed {seed}: refused ({code}{help}), {}: {words}", text.replace('\n', " | "))
            }
        }
    }
}

impl fmt::Display for Evaluation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, ratio, clear_ratio, simulated_ratio, is_flagged, is_other_class } = self;
        write!(f, "{place:?} {ratio:.2} (clear {clear_ratio:.2}, simulated {simulated_ratio:.2}")?;
        write!(f, "{}", if *is_flagged { ", flagged" } else { "" })?;
        write!(f, "{})", if *is_other_class { ", ANOTHER CLASS" } else { "" })
    }
}
