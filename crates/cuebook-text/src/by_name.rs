//! A list whose items are found by name without a search.

use std::collections::HashMap;
use std::ops::Deref;

/// Something with a name.
pub trait Named {
    /// Its name.
    fn name(&self) -> &str;
}

/// Lists up to this length are searched: that is faster than hashing.
const SHORT: usize = 8;

/// A list whose items are found by name. Of two items of one name the first is found.
#[derive(Debug, Clone)]
pub struct ByName<T> {
    items: Vec<T>,
    /// Where names are; empty while the list is short.
    index: HashMap<String, usize>,
}

impl<T: Named> ByName<T> {
    /// The first item of this name.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.position(name).map(|at| &self.items[at])
    }

    /// Changes the first item of this name; its name stays.
    pub fn change(&mut self, name: &str, change: impl FnOnce(&mut T)) -> bool {
        let Some(at) = self.position(name) else { return false };
        change(&mut self.items[at]);
        true
    }

    /// Adds an item at the end.
    pub fn push(&mut self, item: T) {
        self.items.push(item);
        match self.items.len() {
            ..=SHORT => {}
            length if self.index.is_empty() => (0..length).for_each(|at| self.note(at)),
            length => self.note(length - 1),
        }
    }

    fn note(&mut self, at: usize) {
        self.index.entry(self.items[at].name().to_owned()).or_insert(at);
    }

    fn position(&self, name: &str) -> Option<usize> {
        match self.index.is_empty() {
            true => self.items.iter().position(|item| item.name() == name),
            false => self.index.get(name).copied(),
        }
    }
}

impl<T> Default for ByName<T> {
    fn default() -> Self {
        ByName { items: Vec::new(), index: HashMap::new() }
    }
}

impl<T> Deref for ByName<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<T: Named> FromIterator<T> for ByName<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut list = ByName::default();
        items.into_iter().for_each(|item| list.push(item));
        list
    }
}

impl<T: Named> From<Vec<T>> for ByName<T> {
    fn from(items: Vec<T>) -> Self {
        items.into_iter().collect()
    }
}

impl<T> IntoIterator for ByName<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

impl<'l, T> IntoIterator for &'l ByName<T> {
    type Item = &'l T;
    type IntoIter = std::slice::Iter<'l, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Named for (String, usize) {
        fn name(&self) -> &str {
            &self.0
        }
    }

    #[test]
    fn short_and_long_lists_find_the_same() {
        for length in [0, 1, SHORT, SHORT + 1, 50] {
            let item = |number: usize| (format!("n{}", number % 40), number);
            let mut list: ByName<_> = (0..length).map(item).collect();
            for number in 0..60 {
                let (name, _) = item(number);
                let first = list.iter().find(|(known, _)| *known == name).cloned();
                assert_eq!(list.get(&name).cloned(), first, "{length}");
            }
            let name = "n0";
            assert_eq!(list.change(name, |item| item.1 = 99), length > 0);
            assert_eq!(list.get(name).map(|item| item.1), (length > 0).then_some(99));
        }
    }
}
