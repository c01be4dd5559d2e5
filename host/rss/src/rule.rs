//! The rules of a source: which items are taken, and why. The poller and the dry run call the same function.

mod pattern;
mod taken;
mod template;

use std::ops::RangeInclusive;

pub use taken::{Claim, Taken};

use crate::title::{Quality, Release};
use pattern::Pattern;
use protocol::{RssRuleDto, RssSourceDto};
use template::Template;

/// The most rules of a source.
pub const MAX_RULES: usize = 100;

/// A field of a source that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct InvalidField {
    /// As on the wire: `includePattern`, `rules[2].sizeMinBytes`.
    pub field: String,
    /// What is wrong, and what to do.
    pub reason: String,
}

impl InvalidField {
    /// A field by its name on the wire, and what is wrong with it.
    pub fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            reason: reason.into(),
        }
    }
}

/// Why an item has its state; each has a stable name on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names on the wire say it")]
pub enum Reason {
    NotIncluded,
    Excluded,
    TooSmall,
    TooLarge,
    Quality,
    DuplicateEpisode,
    DuplicateItem,
    Included,
    Upgrade,
    SeedSkipped,
    NothingToDownload,
    Ignored,
    Read,
    Manual,
    TaskDeleted,
    NotStarted,
    TooMany,
}

/// Every reason with its name on the wire and in the database.
const REASONS: &[(Reason, &str)] = &[
    (Reason::NotIncluded, "not_included"),
    (Reason::Excluded, "excluded"),
    (Reason::TooSmall, "too_small"),
    (Reason::TooLarge, "too_large"),
    (Reason::Quality, "quality"),
    (Reason::DuplicateEpisode, "dup_episode"),
    (Reason::DuplicateItem, "dup_item"),
    (Reason::Included, "included"),
    (Reason::Upgrade, "upgrade"),
    (Reason::SeedSkipped, "seed_skipped"),
    (Reason::NothingToDownload, "nothing_to_download"),
    (Reason::Ignored, "ignored"),
    (Reason::Read, "read"),
    (Reason::Manual, "manual"),
    (Reason::TaskDeleted, "task_deleted"),
    (Reason::NotStarted, "not_started"),
    (Reason::TooMany, "too_many"),
];

impl Reason {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        let named = REASONS.iter().find(|(reason, _)| *reason == self);
        named.expect("the table lists every reason").1
    }

    /// The reason of this name.
    pub fn parse(name: &str) -> Option<Self> {
        REASONS
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(reason, _)| *reason)
    }
}

/// What is judged.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// Its title.
    pub title: &'a str,
    /// What the title says.
    pub release: &'a Release,
    /// Its size, if known.
    pub bytes: Option<u64>,
    /// The feed's title, which names the series of items that do not.
    pub feed: &'a str,
}

/// What the rules say of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// It is to be downloaded.
    pub is_taken: bool,
    /// Why.
    pub reason: Reason,
    /// Why, for people.
    pub detail: String,
    /// Which of the rules took it; `None` is the source itself.
    pub rule: Option<usize>,
}

/// The rules of a source, compiled.
#[derive(Debug, Clone)]
pub struct Rules {
    /// What every item must pass.
    gate: Rule,
    alternatives: Vec<Rule>,
    is_smart: bool,
    upgrades_quality: bool,
    qualities: Vec<Quality>,
}

/// One rule, compiled.
#[derive(Debug, Clone)]
struct Rule {
    name: String,
    include: Pattern,
    exclude: Pattern,
    sizes: RangeInclusive<u64>,
    template: Option<Template>,
}

impl Rules {
    /// Compiles the rules of a source.
    pub fn compile(source: &RssSourceDto) -> Result<Self, InvalidField> {
        if source.rules.len() > MAX_RULES {
            return Err(InvalidField::new(
                "rules",
                format!("a source has at most {MAX_RULES} rules"),
            ));
        }
        let gate = RssRuleDto {
            name: String::new(),
            include_pattern: source.include_pattern.clone(),
            exclude_pattern: source.exclude_pattern.clone(),
            use_regex: source.use_regex,
            size_min_bytes: source.size_min_bytes,
            size_max_bytes: source.size_max_bytes,
            dir_template: source.dir_template.clone(),
            ..RssRuleDto::default()
        };
        let rules = source.rules.iter().enumerate();
        let qualities = source.qualities.iter().map(|text| {
            Quality::parse(text).ok_or_else(|| {
                let known = "not a quality; give lines, a medium or both, such as `1080p`, `web-dl`, `2160p bluray`";
                InvalidField::new(
                    "qualities",
                    format!("`{}` is {known}", crate::title::truncate(text, 40)),
                )
            })
        });
        Ok(Self {
            gate: Rule::compile(&gate, "")?,
            alternatives: rules
                .map(|(at, rule)| Rule::compile(rule, &format!("rules[{at}].")))
                .collect::<Result<_, _>>()?,
            is_smart: source.smart_episode,
            upgrades_quality: source.upgrade_quality,
            qualities: qualities.collect::<Result<_, _>>()?,
        })
    }

    /// Whether every title is taken, because no pattern asks for anything.
    pub fn include_everything(&self) -> bool {
        let includes_all = |rule: &Rule| rule.include.is_empty();
        includes_all(&self.gate) && (self.alternatives.is_empty() || self.alternatives.iter().any(includes_all))
    }

    /// Whether each episode is taken once.
    pub fn is_smart(&self) -> bool {
        self.is_smart
    }

    /// The place of a quality among those that are accepted, 0 is best; `None` if it is not accepted.
    pub fn rank(&self, quality: Quality) -> Option<usize> {
        if self.qualities.is_empty() {
            return Some(0);
        }
        self.qualities.iter().position(|wanted| quality.meets(*wanted))
    }

    /// Judges a candidate: include, exclude, size, quality, episode, in this order.
    pub fn judge(&self, candidate: Candidate<'_>, taken: &Taken) -> Verdict {
        if let Err((reason, detail)) = self.gate.check(candidate) {
            return Verdict {
                is_taken: false,
                reason,
                detail,
                rule: None,
            };
        }
        let rule = match self.first_match(candidate) {
            Ok(rule) => rule,
            Err((reason, detail)) => {
                return Verdict {
                    is_taken: false,
                    reason,
                    detail,
                    rule: None,
                };
            }
        };
        let quality = candidate.release.quality;
        if self.rank(quality).is_none() {
            let detail = format!("the quality is {quality}, which is none of those that are accepted");
            return Verdict {
                is_taken: false,
                reason: Reason::Quality,
                detail,
                rule,
            };
        }
        self.judge_episode(candidate, taken, rule)
    }

    /// The rule that takes the candidate; `None` if there are no rules.
    fn first_match(&self, candidate: Candidate<'_>) -> Result<Option<usize>, (Reason, String)> {
        let mut misses = Vec::with_capacity(self.alternatives.len());
        for (at, rule) in self.alternatives.iter().enumerate() {
            match rule.check(candidate) {
                Ok(()) => return Ok(Some(at)),
                Err(miss) => misses.push((rule.name.as_str(), miss)),
            }
        }
        // The rule that came furthest says most about what to change.
        let furthest = misses.iter().max_by_key(|(_, (reason, _))| *reason);
        let Some((_, (reason, _))) = furthest else {
            return Ok(None);
        };
        let details: Vec<_> = misses
            .iter()
            .map(|(name, (_, detail))| format!("{name}: {detail}"))
            .collect();
        Err((*reason, details.join("; ")))
    }

    /// The rule that applies to an item, whatever else is to be said of it.
    pub fn rule_of(&self, candidate: Candidate<'_>) -> Option<usize> {
        self.first_match(candidate).ok().flatten()
    }

    fn judge_episode(&self, candidate: Candidate<'_>, taken: &Taken, rule: Option<usize>) -> Verdict {
        let included = |detail: String| Verdict {
            is_taken: true,
            reason: Reason::Included,
            detail,
            rule,
        };
        if !self.is_smart {
            return included("it passes every rule".to_owned());
        }
        let Some(key) = candidate.release.identity(candidate.feed) else {
            return included("it passes every rule; its title names no episode".to_owned());
        };
        if !taken.has_all(&key) {
            return included(format!("{key} was not downloaded yet"));
        }
        let (quality, revision) = (candidate.release.quality, candidate.release.revision);
        let best = taken.best(&key, |claim| self.rank(claim.quality).unwrap_or(usize::MAX));
        let is_better = best.is_some_and(|best| {
            self.upgrades_quality && self.rank(quality) < Some(self.rank(best.quality).unwrap_or(usize::MAX))
        });
        let is_correction = best.is_some_and(|best| quality == best.quality && revision > best.revision);
        if is_better || is_correction {
            let what = if is_better {
                "in a worse quality"
            } else {
                "and this is a correction of it"
            };
            let detail = format!("{key} was downloaded {what}");
            return Verdict {
                is_taken: true,
                reason: Reason::Upgrade,
                detail,
                rule,
            };
        }
        let detail = format!("{key} was downloaded before");
        Verdict {
            is_taken: false,
            reason: Reason::DuplicateEpisode,
            detail,
            rule,
        }
    }

    /// The directories below the save directory, by the rule that took the item or else the source; safe to create.
    pub fn directories(&self, rule: Option<usize>, candidate: Candidate<'_>) -> Vec<String> {
        let of_rule = rule
            .and_then(|rule| self.alternatives.get(rule))
            .and_then(|rule| rule.template.as_ref());
        let template = of_rule.or(self.gate.template.as_ref());
        template.map_or_else(Vec::new, |template| template.fill(candidate))
    }
}

impl Rule {
    fn compile(rule: &RssRuleDto, prefix: &str) -> Result<Self, InvalidField> {
        let pattern = |name: &str, text: &str| {
            Pattern::compile(text, rule.use_regex)
                .map_err(|reason| InvalidField::new(format!("{prefix}{name}"), reason))
        };
        let largest = if rule.size_max_bytes == 0 {
            u64::MAX
        } else {
            rule.size_max_bytes
        };
        if rule.size_min_bytes > largest {
            let reason = format!("{} is more than sizeMaxBytes, {largest}", rule.size_min_bytes);
            return Err(InvalidField::new(format!("{prefix}sizeMinBytes"), reason));
        }
        let template = Template::compile(&rule.dir_template);
        Ok(Self {
            name: rule.name.clone(),
            include: pattern("includePattern", &rule.include_pattern)?,
            exclude: pattern("excludePattern", &rule.exclude_pattern)?,
            sizes: rule.size_min_bytes..=largest,
            template: template.map_err(|reason| InvalidField::new(format!("{prefix}dirTemplate"), reason))?,
        })
    }

    fn check(&self, candidate: Candidate<'_>) -> Result<(), (Reason, String)> {
        if !self.include.is_empty() && !self.include.is_match(candidate.title) {
            return Err((
                Reason::NotIncluded,
                format!("the title does not match {}", self.include),
            ));
        }
        if !self.exclude.is_empty() && self.exclude.is_match(candidate.title) {
            return Err((Reason::Excluded, format!("the title matches {}", self.exclude)));
        }
        match candidate.bytes {
            Some(bytes) if bytes < *self.sizes.start() => {
                let detail = format!("{bytes} bytes are less than {}", self.sizes.start());
                Err((Reason::TooSmall, detail))
            }
            Some(bytes) if bytes > *self.sizes.end() => Err((
                Reason::TooLarge,
                format!("{bytes} bytes are more than {}", self.sizes.end()),
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
