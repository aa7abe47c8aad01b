//! Values by key: found without a search, gone through in order. None is ever removed.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::ops::RangeBounds;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize, Serializer};

/// Such values; saved as a map.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    from = "BTreeMap<K, V>",
    bound(deserialize = "K: Copy + Ord + Hash + Deserialize<'de>, V: Deserialize<'de>")
)]
pub(super) struct Ordered<K, V> {
    values: Vec<V>,
    /// Where the value of each key is.
    places: FxHashMap<K, usize>,
    in_order: BTreeMap<K, usize>,
}

impl<K, V> Default for Ordered<K, V> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            places: FxHashMap::default(),
            in_order: BTreeMap::new(),
        }
    }
}

impl<K: Copy + Ord + Hash, V> Ordered<K, V> {
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.places.get(key).map(|at| &self.values[*at])
    }

    /// The value of a key, made now if there is none.
    #[inline]
    pub(super) fn get_or_make(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let values = &mut self.values;
        let at = *self.places.entry(key).or_insert_with(|| {
            values.push(make());
            self.in_order.insert(key, values.len() - 1);
            values.len() - 1
        });
        &mut values[at]
    }

    /// All values, in order of their keys.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.range(..)
    }

    pub(super) fn range(&self, keys: impl RangeBounds<K>) -> impl Iterator<Item = (&K, &V)> {
        let places = self.in_order.range(keys);
        places.map(|(key, at)| (key, &self.values[*at]))
    }

    pub(super) fn change(&mut self, keys: impl RangeBounds<K>, mut each: impl FnMut(&mut V)) {
        let places = self.in_order.range(keys);
        places.for_each(|(_, at)| each(&mut self.values[*at]));
    }
}

impl<K: Copy + Ord + Hash + Serialize, V: Serialize> Serialize for Ordered<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let values = self.in_order.iter();
        // One after another, of a known number: not every format can do without.
        serializer.collect_map(values.map(|(key, at)| (key, &self.values[*at])))
    }
}

impl<K: Copy + Ord + Hash, V> From<BTreeMap<K, V>> for Ordered<K, V> {
    fn from(saved: BTreeMap<K, V>) -> Self {
        let mut ordered = Self::default();
        for (key, value) in saved {
            ordered.get_or_make(key, || value);
        }
        ordered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(dosmos_testseeds::config(64))]

        #[test]
        fn what_is_kept_is_a_map(keys in prop::collection::vec(0u16..50, 0..200), from in 0u16..50, length in 0u16..50) {
            let (mut ordered, mut map) = (Ordered::default(), BTreeMap::new());
            for key in &keys {
                *ordered.get_or_make(*key, || 0u32) += u32::from(*key) + 1;
                *map.entry(*key).or_insert(0) += u32::from(*key) + 1;
            }
            let range = from..from + length;
            ordered.change(range.clone(), |value| *value *= 2);
            map.range_mut(range.clone()).for_each(|(_, value)| *value *= 2);
            let bytes = postcard::to_stdvec(&ordered).unwrap();
            prop_assert_eq!(&bytes, &postcard::to_stdvec(&map).unwrap());
            let saved: Ordered<u16, u32> = postcard::from_bytes(&bytes).unwrap();
            for ordered in [ordered, saved] {
                prop_assert!(ordered.iter().eq(&map));
                prop_assert!(ordered.range(range.clone()).eq(map.range(range.clone())));
                prop_assert!((0..50).all(|key| ordered.get(&key) == map.get(&key)));
            }
        }
    }
}
