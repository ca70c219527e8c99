//! Search items by name, description and tags.
//!
//! A [`Searcher`] is kept as long as its process: the first search reads every item, the later ones what has changed. The
//! signatures of those that are shown are checked, and an answer says of each whether it may be believed.

mod index;
mod query;
mod scope;
#[cfg(test)]
mod tests;
mod watch;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::limits::FILE_BYTES;
use serde_json::{Map, Value as Json, json};

use super::outline::Outline;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::items::{ItemId, ItemType, SpaceKind, Spaces};
use crate::trust::Trust;
use index::{Entry, FIELDS, SpaceIndex};
pub use query::Query;
pub use scope::Scope;

/// Results that an answer has without a setting.
const LIMIT: usize = 10;

/// Bytes that a query may have.
const LONGEST: usize = 4_096;

/// Items that a thread takes at a time; fewer are not worth a thread.
const SHARE: usize = 2_000;

/// Threads that look at the same time, at most.
const MAX_THREADS: usize = 8;

/// What is searched for.
///
/// ```
/// use cuebook::actions::search::SearchRequest;
/// use cuebook::items::SpaceKind;
///
/// let request = SearchRequest { space: Some(SpaceKind::System), ..SearchRequest::new("tool.rye.core.*", "subprocess") };
/// assert_eq!(request.scope, "tool.rye.core.*");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct SearchRequest {
    /// A type and a part of its ids, as in `tool.rye.core.*`.
    pub scope: String,
    /// The query; an empty one finds everything.
    pub query: String,
    /// The only space to look into.
    pub space: Option<SpaceKind>,
    /// How many results to give.
    pub limit: usize,
    /// How many of the best results to leave out.
    pub offset: usize,
    /// What comes first.
    pub sort_by: SortBy,
    /// Queries of single fields: title, name, description, category, content.
    pub fields: Map<String, Json>,
    /// What an item must say of itself, word for word.
    pub filters: Map<String, Json>,
    /// In how many letters words may differ.
    pub fuzzy: Option<usize>,
    /// Within how many words the words of the query must stand.
    pub proximity: Option<usize>,
}

/// What comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortBy {
    /// The best.
    Score,
    /// What was changed last.
    Date,
    /// By name.
    Name,
}

impl SearchRequest {
    /// A search of a scope with everything else as usual.
    pub fn new(scope: impl Into<String>, query: impl Into<String>) -> SearchRequest {
        SearchRequest {
            scope: scope.into(),
            query: query.into(),
            space: None,
            limit: LIMIT,
            offset: 0,
            sort_by: SortBy::Score,
            fields: Map::new(),
            filters: Map::new(),
            fuzzy: None,
            proximity: None,
        }
    }

    /// Reads a request as `rye_search` takes it; what it does not say is as usual.
    pub fn from_json(json: &Json) -> SearchRequest {
        let text = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
        let count = |name: &str, usual| {
            json[name].as_u64().map_or(usual, |n| usize::try_from(n).unwrap_or(usize::MAX))
        };
        let enabled = |name: &str, usual: usize| {
            let options = &json[name];
            let distance = options["max_distance"].as_u64().and_then(|n| usize::try_from(n).ok());
            options["enabled"].as_bool().unwrap_or(false).then(|| distance.unwrap_or(usual))
        };
        let object = |name: &str| json[name].as_object().cloned().unwrap_or_default();
        SearchRequest {
            space: json["space"].as_str().and_then(SpaceKind::named),
            limit: count("limit", LIMIT),
            offset: count("offset", 0),
            sort_by: match json["sort_by"].as_str() {
                Some("date") => SortBy::Date,
                Some("name") => SortBy::Name,
                _ => SortBy::Score,
            },
            fields: object("fields"),
            filters: object("filters"),
            fuzzy: enabled("fuzzy", 2),
            proximity: enabled("proximity", 5),
            ..SearchRequest::new(text("scope"), text("query"))
        }
    }
}

/// What a search found.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SearchResults {
    /// The best items, at most as many as the request asks for.
    pub items: Vec<FoundItem>,
    /// How many items match.
    pub total: usize,
    /// Files that could not be read.
    pub problems: Vec<Diagnostic>,
}

impl SearchResults {
    /// The answer of `rye_search` to the request.
    pub fn to_json(&self, request: &SearchRequest) -> Json {
        let mut answer = json!({
            "results": self.items.iter().map(FoundItem::to_json).collect::<Vec<_>>(),
            "total": self.total,
            "query": request.query,
            "scope": request.scope,
            "space": request.space.map_or("all", SpaceKind::as_str),
            "limit": request.limit,
            "offset": request.offset,
            "search_type": "keyword",
        });
        if !self.problems.is_empty() {
            answer["problems"] = self.problems.iter().map(|found| Json::Object(found.to_json())).collect();
        }
        answer
    }
}

/// An item that a search found.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FoundItem {
    /// Its type.
    pub item_type: ItemType,
    /// Its id.
    pub id: ItemId,
    /// Its name.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Its description.
    pub description: String,
    /// How its text begins.
    pub preview: String,
    /// Its category.
    pub category: Option<String>,
    /// What else it says of itself.
    pub metadata: Map<String, Json>,
    /// Its space.
    pub space: SpaceKind,
    /// Its file, or its name if it is part of the program.
    pub path: String,
    /// How well it fits, from 0 to 1.
    pub score: f64,
    /// SHA-256 of what was signed, if a trusted key signed it.
    pub integrity: Option<String>,
    /// The space whose item of the same id is used instead of this one.
    pub shadowed_by: Option<SpaceKind>,
}

impl FoundItem {
    /// The item as `rye_search` shows it.
    pub fn to_json(&self) -> Json {
        let mut result = json!({
            "id": self.id.as_str(),
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "preview": self.preview,
            "source": self.space.as_str(),
            "path": self.path,
            "score": self.score,
        });
        if let Some(category) = &self.category {
            result["category"] = category.clone().into();
        }
        result["metadata"] = Json::Object(self.metadata.clone());
        result["signed"] = self.integrity.is_some().into();
        result["integrity"] = self.integrity.clone().into();
        result["type"] = self.item_type.as_str().into();
        if let Some(first) = self.shadowed_by {
            result["shadowed_by"] = first.as_str().into();
        }
        result
    }
}

/// Searches the spaces of a project, and remembers what it has read.
#[derive(Debug)]
pub struct Searcher {
    spaces: Spaces,
    space_indexes: Mutex<HashMap<(ItemType, SpaceKind), SpaceIndex>>,
}

/// An item that was found.
#[derive(Debug, Clone, Copy)]
struct Hit {
    score: f64,
    /// Which list of items, and where in it: both are in the order in which equals are shown.
    list: usize,
    at: usize,
}

/// What was found, and how much of it there is.
#[derive(Debug, Default)]
struct Hits {
    total: usize,
    /// All that can be on the page that was asked for, and perhaps more.
    kept: Vec<Hit>,
}

type List = (SpaceKind, Arc<Vec<Arc<Entry>>>);

impl Searcher {
    /// A searcher that has read nothing yet.
    pub fn new(spaces: Spaces) -> Searcher {
        Searcher { spaces, space_indexes: Mutex::default() }
    }

    /// The answer of `rye_search`, also if it fails.
    pub fn answer(&self, request: &SearchRequest, trust: &Trust) -> Json {
        match self.search(request, trust) {
            Ok(found) => found.to_json(request),
            Err(error) => {
                let mut answer = Map::from_iter([("error".to_owned(), json!(error.diagnostic().message))]);
                if let Some(hint) = &error.diagnostic().hint {
                    hint.add_to(&mut answer);
                }
                Json::Object(answer)
            }
        }
    }

    /// Finds items.
    ///
    /// # Errors
    ///
    /// `CB407` if the scope names no type, or the query is too long or has no word.
    pub fn search(&self, request: &SearchRequest, trust: &Trust) -> Result<SearchResults> {
        let refuse = |diagnostic: Diagnostic| Err(Error::new(ErrorKind::Usage, diagnostic));
        let Some(scope) = Scope::new(&request.scope) else {
            let message = "scope must specify an item_type (e.g., rye.search.directive.*)";
            return refuse(Diagnostic::new(Code::BadInput, message));
        };
        let texts = request.fields.values().filter_map(Json::as_str).chain([request.query.as_str()]);
        if texts.map(str::len).sum::<usize>() > LONGEST {
            let message = format!("the query is longer than {LONGEST} bytes");
            return refuse(Diagnostic::new(Code::BadInput, message).hint("search for a few words"));
        }
        if !request.query.trim().is_empty() && Query::new(&request.query).is_empty() {
            let message = format!("the query `{}` contains no word", request.query);
            let hint =
                "write words between AND, OR, NOT and parentheses; quote `\"not\"` to search for the word";
            return refuse(Diagnostic::new(Code::BadInput, message).hint(hint));
        }
        let lists = self.lists(scope.kind, request.space);
        let problems = self.problems(scope.kind, request.space);
        let asked = CompiledRequest::new(request, scope);
        let Hits { mut total, mut kept } = asked.hits(&lists);
        if !request.filters.is_empty() {
            kept.retain(|hit| self.passes(&lists, *hit, asked.scope.kind, &request.filters));
            total = kept.len();
        }
        let shown = best(kept, request, &lists);
        let items = shown.into_iter().filter_map(|hit| self.result(&lists, hit, asked.scope.kind, trust));
        Ok(SearchResults { items: items.collect(), total, problems })
    }

    /// What could not be read by the last search of a type, so that the found items are not taken for all of them.
    pub fn problems(&self, kind: ItemType, only: Option<SpaceKind>) -> Vec<Diagnostic> {
        let space_indexes = self.space_indexes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = Vec::new();
        for space in self.spaces.all().iter().filter(|space| only.is_none_or(|only| space.kind() == only)) {
            let space_index = space_indexes.get(&(kind, space.kind()));
            found.extend(
                space_index.into_iter().flat_map(|space_index| space_index.problems.values().cloned()),
            );
        }
        found
    }

    /// The items of the spaces that are searched, as they are now.
    fn lists(&self, kind: ItemType, only: Option<SpaceKind>) -> Vec<List> {
        // What is remembered is whole between two searches, also if one of them panicked.
        let mut space_indexes = self.space_indexes.lock().unwrap_or_else(PoisonError::into_inner);
        let spaces = self.spaces.all().iter().filter(|space| only.is_none_or(|only| space.kind() == only));
        spaces
            .map(|space| {
                let space_index =
                    space_indexes.entry((kind, space.kind())).or_insert_with(|| SpaceIndex::new(kind, space));
                space_index.refresh();
                (space_index.space, space_index.entries.clone())
            })
            .collect()
    }

    fn outline(&self, lists: &[List], hit: Hit, kind: ItemType) -> Option<(crate::items::Item, Outline)> {
        let (space, entries) = &lists[hit.list];
        let id = ItemId::new(&entries[hit.at].id).ok()?;
        let located = self.spaces.space(*space)?.locate(kind, &id).ok()??;
        let item = located.read(FILE_BYTES).ok()?;
        let text = String::from_utf8_lossy(&item.bytes);
        let outline = Outline::of(kind, item.located.extension, id.name(), &text);
        Some((item, outline))
    }

    /// Whether an item says of itself what the filters want.
    fn passes(&self, lists: &[List], hit: Hit, kind: ItemType, filters: &Map<String, Json>) -> bool {
        let Some((item, outline)) = self.outline(lists, hit, kind) else { return false };
        filters.iter().all(|(key, wanted)| {
            let said = match key.as_str() {
                "id" => Some(item.located.id.as_str()),
                "name" => Some(outline.name.as_str()),
                "title" => Some(outline.title.as_str()),
                "category" => outline.category.as_deref(),
                "source" | "space" => Some(item.located.space.as_str()),
                _ => outline.metadata.get(key).and_then(Json::as_str),
            };
            let is = |wanted: &Json| {
                wanted
                    .as_str()
                    .map_or(Some(wanted.to_string()) == said.map(str::to_owned), |w| said == Some(w))
            };
            wanted.as_array().map_or_else(|| is(wanted), |several| several.iter().any(is))
        })
    }

    /// What is shown of an item; nothing if it went away meanwhile.
    fn result(&self, lists: &[List], hit: Hit, kind: ItemType, trust: &Trust) -> Option<FoundItem> {
        let (item, outline) = self.outline(lists, hit, kind)?;
        let verified = trust.verify(&item);
        let located = item.located;
        let path = located.path().map_or_else(|| located.name.clone(), |path| path.display().to_string());
        // What another space has under the same id is not what an id finds.
        let first = self.spaces.find(kind, &located.id).ok().flatten().map(|first| first.space);
        Some(FoundItem {
            item_type: kind,
            id: located.id,
            name: outline.name,
            title: outline.title,
            description: outline.description,
            preview: outline.preview,
            category: outline.category,
            metadata: outline.metadata,
            space: located.space,
            path,
            score: hit.score,
            integrity: verified.ok().map(|verified| verified.hash),
            shadowed_by: first.filter(|first| *first != located.space),
        })
    }
}

/// A request that can be asked of items.
struct CompiledRequest {
    scope: Scope,
    query: Query,
    fields: Vec<(usize, Query)>,
    /// The score of each choice of fields that the query can be found in.
    scores: [f64; 1 << FIELDS.len()],
    /// Of how many with the same fields no more need to be kept.
    enough: usize,
}

impl CompiledRequest {
    fn new(request: &SearchRequest, scope: Scope) -> CompiledRequest {
        let fields = FIELDS.iter().enumerate().filter_map(|(index, (name, _))| {
            let query = request.fields.get(*name)?.as_str()?;
            Some((index, Query::new(query).fuzzy(request.fuzzy)))
        });
        let fields: Vec<(usize, Query)> = fields.collect();
        let query = Query::new(&request.query).fuzzy(request.fuzzy).near(request.proximity);
        let scores = scores(query.is_empty(), &fields);
        // The first of equals are the best, unless something else than the score decides.
        let enough = match request.sort_by == SortBy::Score && request.filters.is_empty() {
            true => request.offset.saturating_add(request.limit),
            false => usize::MAX,
        };
        CompiledRequest { scope, query, fields, scores, enough }
    }

    /// Everything that is found, looked for by several threads if there is much.
    fn hits(&self, lists: &[List]) -> Hits {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        let mut hits = Hits::default();
        for (list, (_, entries)) in lists.iter().enumerate() {
            // A free thread takes the next share: a thread that waits for a core delays no other.
            let next = AtomicUsize::new(0);
            let work = || self.look(list, entries, &next);
            let helpers = (entries.len() / SHARE).min(threads - 1);
            std::thread::scope(|scope| {
                let helpers: Vec<_> = (0..helpers).map(|_| scope.spawn(work)).collect();
                hits.add(work());
                for helper in helpers {
                    hits.add(helper.join().unwrap_or_default());
                }
            });
        }
        hits
    }

    /// Looks through the shares of a list that are not taken yet, in their order.
    fn look(&self, list: usize, entries: &[Arc<Entry>], next: &AtomicUsize) -> Hits {
        let mut hits = Hits::default();
        let mut seen = [0; 1 << FIELDS.len()];
        loop {
            let start = next.fetch_add(SHARE, Ordering::Relaxed);
            let Some(share) = entries.get(start..).filter(|rest| !rest.is_empty()) else { return hits };
            for (at, entry) in share.iter().take(SHARE).enumerate() {
                let Some(found) = self.found(entry) else { continue };
                hits.total += 1;
                if seen[found] < self.enough {
                    seen[found] += 1;
                    hits.kept.push(Hit { score: self.scores[found], list, at: start + at });
                }
            }
        }
    }

    /// The fields of an item that the query is found in, as the place of their score; none if the item does not fit.
    fn found(&self, entry: &Entry) -> Option<usize> {
        if !self.scope.holds(&entry.id) {
            return None;
        }
        let fields = entry.fields();
        let found = self.query.found_in(&fields);
        if found & query::WHOLE == 0 {
            return None;
        }
        let asked = self.fields.iter().all(|(index, query)| query.finds_lower(fields.get(*index)));
        asked.then_some(usize::from(found) % self.scores.len())
    }
}

impl Hits {
    fn add(&mut self, more: Hits) {
        self.total += more.total;
        self.kept.extend(more.kept);
    }
}

/// How well an item fits, for each choice of fields that a query can be found in.
fn scores(everything: bool, asked: &[(usize, Query)]) -> [f64; 1 << FIELDS.len()] {
    let all: f64 = FIELDS.iter().map(|(_, weight)| weight).sum();
    // A field that is asked for by itself counts once more, in what can be reached and in what is.
    let once_more: f64 = asked.iter().map(|(index, _)| FIELDS[*index].1).sum();
    std::array::from_fn(|found| {
        if everything && asked.is_empty() {
            return 1.0;
        }
        let weights = FIELDS.iter().enumerate().filter(|(index, _)| found & (1 << index) != 0);
        let reached: f64 = weights.map(|(_, (_, weight))| weight).sum();
        ((reached + once_more) / (all + once_more) * 10_000.0).round() / 10_000.0
    })
}

/// The hits that are shown, in order.
fn best(mut hits: Vec<Hit>, request: &SearchRequest, lists: &[List]) -> Vec<Hit> {
    let entry = |hit: &Hit| &lists[hit.list].1[hit.at];
    let order = |one: &Hit, other: &Hit| {
        let place = (one.list, one.at).cmp(&(other.list, other.at));
        match request.sort_by {
            SortBy::Score => other.score.total_cmp(&one.score).then(place),
            SortBy::Date => entry(other).modified.cmp(&entry(one).modified).then(place),
            SortBy::Name => entry(one).fields().get(1).cmp(entry(other).fields().get(1)).then(place),
        }
    };
    let end = request.offset.saturating_add(request.limit);
    if end < hits.len() {
        // Most of a hundred thousand need not be put in order.
        hits.select_nth_unstable_by(end, order);
        hits.truncate(end);
    }
    hits.sort_unstable_by(order);
    hits.drain(..request.offset.min(hits.len()));
    hits
}
