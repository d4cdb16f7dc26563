//! The rules of one host pattern, by path.

use std::borrow::Cow;

use model::{PathMatch, RouteMatch};

use super::rules::RuleList;
use super::trie::{NodeId, Trie};
use super::{RequestView, Subject};

/// An index over the rules of a host pattern.
#[derive(Debug)]
pub(super) struct Paths {
    /// Segments of paths, under one root.
    nodes: Trie<PathRules>,
    root: NodeId,
}

/// The rules at a node of the trie.
#[derive(Debug, Default)]
struct PathRules {
    exact: RuleList,
    prefix: RuleList,
}

impl Paths {
    /// Indexes the routes at these positions, and puts the positions in order of precedence.
    pub(super) fn new(routes: &[&RouteMatch], positions: &mut [u32]) -> Paths {
        let of_position = |position: &u32| with_canonical_path(routes[*position as usize]);
        let mut sorted: Vec<(Cow<'_, RouteMatch>, u32)> =
            positions.iter().map(|position| (of_position(position), *position)).collect();
        // Rules of one path need not be adjacent in this order, but their relative order is right,
        // which is all that a rule list relies on.
        sorted.sort_by(|(one, _), (other, _)| one.precedence(other));
        let mut nodes = Trie::default();
        let root = nodes.add_root();
        let mut paths = Paths { nodes, root };
        for (number, (matches, position)) in sorted.iter().enumerate() {
            paths.add(matches, number);
            positions[number] = *position;
        }
        paths.nodes.shrink();
        paths
    }

    /// Returns the first rule that matches, by its number in order of precedence.
    pub(super) fn find<R: RequestView>(
        &self,
        path: &str,
        subject: &Subject<'_, R>,
    ) -> Option<usize> {
        let root = self.root;
        let relative = match path.strip_prefix('/') {
            Some(relative) if !self.nodes.is_leaf(root) => relative,
            _ => return self.nodes.value(root).prefix.find(subject),
        };
        // Most paths are already canonical, and then cheaper to walk.
        let (deepest, whole) = if model::path::is_canonical(relative) {
            self.nodes.walk(root, relative.split('/').map(str::bytes))
        } else {
            self.nodes.walk(root, segments(relative))
        };
        if whole && let Some(found) = self.nodes.value(deepest).exact.find(subject) {
            return Some(found);
        }
        let mut next = Some(deepest);
        while let Some(node) = next {
            if let Some(found) = self.nodes.value(node).prefix.find(subject) {
                return Some(found);
            }
            next = self.nodes.parent(node);
        }
        None
    }

    /// Adds a rule; rules must be added in order of precedence.
    fn add(&mut self, matches: &RouteMatch, number: usize) {
        let (path, is_prefix) = match &matches.path {
            PathMatch::Prefix(path) => (path, true),
            PathMatch::Exact(path) => (path, false),
        };
        let node = match path.strip_prefix('/') {
            Some(relative) => self.nodes.insert(self.root, segments(relative)),
            None if is_prefix && path.is_empty() => self.root,
            None => return,
        };
        let rules = self.nodes.value_mut(node);
        let list = if is_prefix { &mut rules.prefix } else { &mut rules.exact };
        list.push(matches, number);
    }
}

fn with_canonical_path(matches: &RouteMatch) -> Cow<'_, RouteMatch> {
    let (PathMatch::Prefix(path) | PathMatch::Exact(path)) = &matches.path;
    if model::path::is_canonical(path) {
        return Cow::Borrowed(matches);
    }
    let canonical = model::path::canonical(path);
    let path = match &matches.path {
        PathMatch::Prefix(_) => PathMatch::Prefix(canonical),
        PathMatch::Exact(_) => PathMatch::Exact(canonical),
    };
    Cow::Owned(RouteMatch { path, ..matches.clone() })
}

/// Returns the segments of a path without its leading `/`, in canonical form.
fn segments(relative: &str) -> impl Iterator<Item: Iterator<Item = u8> + Clone> {
    relative.split('/').map(model::path::canonical_bytes)
}
