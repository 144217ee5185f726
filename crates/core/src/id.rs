//! Newtype ids and the vector they index.
//!
//! Every table in the World is keyed by its own id type, so that a node can never be looked up with a
//! gang's number. Ids are plain integers: they sort, hash and print the same on every machine.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};

/// An integer that names a row of one particular table.
pub trait Id: Copy + Eq + Ord + std::hash::Hash + std::fmt::Debug {
    /// The row for this id.
    fn index(self) -> usize;
    /// The id for this row.
    fn from_index(index: usize) -> Self;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident($int:ty) $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $int);

        impl Id for $name {
            #[inline]
            fn index(self) -> usize {
                self.0 as usize
            }
            #[inline]
            fn from_index(index: usize) -> Self {
                Self(<$int>::try_from(index).expect(concat!(stringify!($name), " table is full")))
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    )*};
}

ids! {
    /// A node's slot. Slots are reused after a node is gone; a name is what lasts.
    NodeIdx(u32) "n";
    /// A gang's number in order of submission; never reused, so it also breaks ties by age.
    GangId(u32) "g";
    /// A queue in the queue tree.
    QueueIdx(u16) "q";
    /// A pool.
    PoolIdx(u16) "p";
    /// One requested node; never reused.
    ClaimId(u32) "c";
    /// One atomic set of claims; never reused.
    OrderId(u32) "o";
    /// A named resource other than GPUs.
    ResourceIdx(u16) "r";
    /// Nodes with the same shape, labels and taints.
    ClassIdx(u32) "k";
    /// A class together with what is still free on such a node.
    StateIdx(u32) "s";
    /// Roles that ask for the same thing under the same constraints.
    SigIdx(u32) "sig";
    /// A place in the topology tree.
    DomainIdx(u32) "d";
    /// A depth of the topology tree; 0 is just below the root.
    LevelIdx(u8) "l";
}

/// One offering of one pool.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct OfferingRef {
    /// The pool that lists it.
    pub pool: PoolIdx,
    /// Its place in that pool's list.
    pub slot: u16,
}

/// A vector indexed by an id type.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IndexVec<I, T> {
    rows: Vec<T>,
    #[serde(skip)]
    id: PhantomData<fn(I) -> I>,
}

impl<I: Id, T> IndexVec<I, T> {
    /// An empty table.
    pub const fn new() -> Self {
        Self { rows: Vec::new(), id: PhantomData }
    }
    /// Appends a row and returns its id.
    pub fn push(&mut self, row: T) -> I {
        self.rows.push(row);
        I::from_index(self.rows.len() - 1)
    }
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }
    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
    /// The row, if the id is in the table.
    pub fn get(&self, id: I) -> Option<&T> {
        self.rows.get(id.index())
    }
    /// The row, if the id is in the table.
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.rows.get_mut(id.index())
    }
    /// Ids and rows, in id order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (I, &T)> + ExactSizeIterator {
        self.rows.iter().enumerate().map(|(i, row)| (I::from_index(i), row))
    }
    /// Rows, in id order.
    pub fn values(&self) -> std::slice::Iter<'_, T> {
        self.rows.iter()
    }
    /// Rows, in id order.
    pub fn values_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.rows.iter_mut()
    }
    /// All ids.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + use<I, T> {
        (0..self.rows.len()).map(I::from_index)
    }
    /// Grows the table with copies of `row` until it holds `len` rows.
    pub fn grow(&mut self, len: usize, row: T)
    where
        T: Clone,
    {
        if self.rows.len() < len {
            self.rows.resize(len, row);
        }
    }
}

impl<I: Id, T> Default for IndexVec<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I, T: std::fmt::Debug> std::fmt::Debug for IndexVec<I, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.rows.fmt(f)
    }
}

impl<I, T> FromIterator<T> for IndexVec<I, T> {
    fn from_iter<It: IntoIterator<Item = T>>(rows: It) -> Self {
        Self { rows: rows.into_iter().collect(), id: PhantomData }
    }
}

impl<I: Id, T> Index<I> for IndexVec<I, T> {
    type Output = T;
    #[inline]
    fn index(&self, id: I) -> &T {
        &self.rows[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for IndexVec<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.rows[id.index()]
    }
}
