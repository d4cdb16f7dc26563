//! Tries whose edges are in one hash index: a step down costs one probe, however many children a
//! node has. Hosts and paths share it; the caller defines what an edge is.

use super::index::{Hasher, Index};

/// A node of a [`Trie`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeId(u32);

/// A forest: any number of roots, and a value at each node.
#[derive(Debug)]
pub(super) struct Trie<T> {
    nodes: Vec<Node<T>>,
    edges: Index,
}

#[derive(Debug)]
struct Node<T> {
    parent: Option<NodeId>,
    /// The edge that leads here.
    edge: Box<[u8]>,
    has_children: bool,
    value: T,
}

impl<T> Default for Trie<T> {
    fn default() -> Trie<T> {
        Trie { nodes: Vec::new(), edges: Index::default() }
    }
}

impl<T: Default> Trie<T> {
    pub(super) fn add_root(&mut self) -> NodeId {
        self.add_node(None, Box::default())
    }

    /// Returns the node to which `edges` lead from `root`; missing nodes are created.
    pub(super) fn insert<E>(&mut self, root: NodeId, edges: impl Iterator<Item = E>) -> NodeId
    where
        E: Iterator<Item = u8> + Clone,
    {
        let mut node = root;
        for edge in edges {
            node = self.child(node, &edge).unwrap_or_else(|| {
                let hash = Hasher::new(node.0).bytes(edge.clone()).finish();
                let child = self.add_node(Some(node), edge.collect());
                self.nodes[node.0 as usize].has_children = true;
                self.edges.insert(hash, child.0);
                child
            });
        }
        node
    }

    /// Frees the room for further nodes.
    pub(super) fn shrink(&mut self) {
        self.nodes.shrink_to_fit();
    }

    fn add_node(&mut self, parent: Option<NodeId>, edge: Box<[u8]>) -> NodeId {
        // A configuration's size keeps this far below 2^32.
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(Node { parent, edge, has_children: false, value: T::default() });
        id
    }
}

impl<T> Trie<T> {
    /// Returns the deepest node to which `edges` lead from `root`, and whether all of them matched.
    #[inline]
    pub(super) fn walk<E>(&self, root: NodeId, edges: impl Iterator<Item = E>) -> (NodeId, bool)
    where
        E: Iterator<Item = u8> + Clone,
    {
        let mut node = root;
        for edge in edges {
            match self.child(node, &edge) {
                Some(child) => node = child,
                None => return (node, false),
            }
        }
        (node, true)
    }

    pub(super) fn value(&self, node: NodeId) -> &T {
        &self.nodes[node.0 as usize].value
    }

    pub(super) fn value_mut(&mut self, node: NodeId) -> &mut T {
        &mut self.nodes[node.0 as usize].value
    }

    pub(super) fn parent(&self, node: NodeId) -> Option<NodeId> {
        self.nodes[node.0 as usize].parent
    }

    /// Returns whether no edge leads on from `node`.
    #[inline]
    pub(super) fn is_leaf(&self, node: NodeId) -> bool {
        !self.nodes[node.0 as usize].has_children
    }

    fn child(&self, node: NodeId, edge: &(impl Iterator<Item = u8> + Clone)) -> Option<NodeId> {
        if self.is_leaf(node) {
            return None;
        }
        let hash = Hasher::new(node.0).bytes(edge.clone()).finish();
        let found = self.edges.find(hash, |position| {
            let child = &self.nodes[position as usize];
            child.parent == Some(node) && edge.clone().eq(child.edge.iter().copied())
        });
        found.map(NodeId)
    }
}
