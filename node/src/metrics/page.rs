//! The families of one scrape.

use std::borrow::Cow;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

/// Names and values that tell the series of a family apart.
pub type Labels = Vec<(&'static str, String)>;

/// The figures of a process at one instant.
#[derive(Debug, Default)]
pub struct Page {
    /// Begin of every name.
    prefix: &'static str,
    /// Labels of every series.
    common: Vec<(Cow<'static, str>, Cow<'static, str>)>,
    families: Families,
}

#[derive(Debug, Default)]
struct Families(Vec<Family>);

#[derive(Debug)]
struct Family {
    name: &'static str,
    help: &'static str,
    series: Vec<(Labels, Value)>,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// Only grows.
    Counter(f64),
    Gauge(f64),
    /// Counts by upper edge, not cumulative; the last edge is infinite.
    Histogram {
        sum: f64,
        count: u64,
        buckets: Vec<(f64, u64)>,
    },
}

impl Page {
    /// Of the process `name`; `role` is `mp`, `lp` or `emp`; all names begin with `prefix`.
    pub fn new(prefix: &'static str, name: &str, role: &'static str) -> Self {
        let mut page = Self {
            prefix,
            common: vec![
                ("process".into(), name.to_owned().into()),
                ("role".into(), role.into()),
            ],
            families: Families::default(),
        };
        let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
        page.gauge_of("build_info", "The program that runs", [(version, 1.0)]);
        page
    }

    /// A number that only grows; `_total` is added to its name.
    pub fn counter(&mut self, name: &'static str, help: &'static str, value: f64) {
        self.counter_of(name, help, [(Labels::new(), value)]);
    }

    /// Numbers that only grow, told apart by labels.
    pub fn counter_of(
        &mut self,
        name: &'static str,
        help: &'static str,
        series: impl IntoIterator<Item = (Labels, f64)>,
    ) {
        let series = series.into_iter().map(|(l, v)| (l, Value::Counter(v)));
        self.family(name, help, series.collect());
    }

    /// A number as it is now.
    pub fn gauge(&mut self, name: &'static str, help: &'static str, value: f64) {
        self.gauge_of(name, help, [(Labels::new(), value)]);
    }

    /// Numbers as they are now, told apart by labels.
    pub fn gauge_of(
        &mut self,
        name: &'static str,
        help: &'static str,
        series: impl IntoIterator<Item = (Labels, f64)>,
    ) {
        let series = series.into_iter().map(|(l, v)| (l, Value::Gauge(v)));
        self.family(name, help, series.collect());
    }

    pub(crate) fn histogram(&mut self, name: &'static str, help: &'static str, value: Value) {
        self.family(name, help, vec![(Labels::new(), value)]);
    }

    fn family(&mut self, name: &'static str, help: &'static str, series: Vec<(Labels, Value)>) {
        if !series.is_empty() {
            self.families.0.push(Family { name, help, series });
        }
    }

    /// As text, for a scrape.
    ///
    /// # Errors
    /// Never in practice: text grows.
    pub fn text(self) -> Result<String, fmt::Error> {
        let mut registry = Registry::with_prefix_and_labels(self.prefix, self.common.into_iter());
        registry.register_collector(Box::new(self.families));
        let mut text = String::new();
        encode(&mut text, &registry)?;
        Ok(text)
    }
}

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for family in &self.0 {
            let kind = match family.series.first() {
                Some((_, Value::Counter(_))) => MetricType::Counter,
                Some((_, Value::Histogram { .. })) => MetricType::Histogram,
                _ => MetricType::Gauge,
            };
            let mut metric = encoder.encode_descriptor(family.name, family.help, None, kind)?;
            for (labels, value) in &family.series {
                match labels.is_empty() {
                    // A family without labels would end its label set with a comma.
                    true => value.encode(&mut metric)?,
                    false => value.encode(&mut metric.encode_family(labels)?)?,
                }
            }
        }
        Ok(())
    }
}

impl Value {
    fn encode(&self, to: &mut MetricEncoder<'_>) -> fmt::Result {
        match self {
            Self::Counter(value) => to.encode_counter::<NoLabelSet, _, u64>(value, None),
            Self::Gauge(value) => to.encode_gauge(value),
            Self::Histogram {
                sum,
                count,
                buckets,
            } => to.encode_histogram::<NoLabelSet>(*sum, *count, buckets, None),
        }
    }
}
