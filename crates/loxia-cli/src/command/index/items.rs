//! The texts of items in the order of an index or a matrix, out of one or more data sets.
//!
//! An index keeps ids and the digest of the data it was built from: of the first items under `data`, of
//! items added at positions A to B under `data A..B`. Each part must have its digest again before a search
//! pairs texts with stored numbers.

use std::ops::Range;
use std::path::Path;

use anyhow::Result;
use loxia::core::artefact::{Digester, MANIFEST_FILE, Manifest};
use loxia::core::{Error, IdTable, Item, Progress};
use loxia::data::{ItemStore, Record};
use loxia::search::{Index, ItemTexts};

use crate::context::Context;

/// Name of the digest of the items of the build.
pub(super) const DATA_DIGEST: &str = "data";

/// Items in an order of their own.
pub(crate) struct OrderedItems<'a> {
    stores: Vec<&'a ItemStore>,
    /// Store and position of each; `None`: the first store as it is.
    order: Option<Vec<(u32, u32)>>,
}

impl<'a> OrderedItems<'a> {
    /// A store in its own order.
    pub(crate) fn whole(store: &'a ItemStore) -> Self {
        OrderedItems { stores: vec![store], order: None }
    }

    /// Some items of a store.
    pub(super) fn some(store: &'a ItemStore, positions: impl IntoIterator<Item = u32>) -> Self {
        let order = positions.into_iter().map(|position| (0, position)).collect();
        OrderedItems { stores: vec![store], order: Some(order) }
    }

    /// The items of an id list; an id that no store has is the error.
    pub(super) fn by_ids(stores: Vec<&'a ItemStore>, ids: &IdTable) -> Result<Self, String> {
        Self::by_ids_from(stores, ids, |_| None)
    }

    /// The same, where some positions must come from one store, whatever others have the id.
    fn by_ids_from(
        stores: Vec<&'a ItemStore>,
        ids: &IdTable,
        store_of: impl Fn(usize) -> Option<usize>,
    ) -> Result<Self, String> {
        let find = |(position, id): (usize, &str)| {
            let known = store_of(position);
            let allowed = (0..stores.len()).filter(|&store| known.is_none_or(|known| known == store));
            let mut places = allowed.filter_map(|n| Some((n as u32, stores[n].position(id)?)));
            places.next().ok_or_else(|| id.to_owned())
        };
        let order = ids.iter().enumerate().map(find).collect::<Result<_, _>>()?;
        Ok(OrderedItems { stores, order: Some(order) })
    }

    /// The items of an index, compared with what it was built from.
    pub(crate) fn of_index(
        index: &Index,
        path: &Path,
        stores: Vec<&'a ItemStore>,
        context: &Context,
    ) -> Result<Self> {
        let known = |name: &str| index.manifest().and_then(|manifest| manifest.digests.get(name));
        if let ([store], Some(manifest), 0) = (stores.as_slice(), index.manifest(), index.added()) {
            if known(DATA_DIGEST).is_some() {
                manifest.check_digest(path, DATA_DIGEST, store.digest())?;
                if store.ids().iter().eq(index.item_ids().iter()) {
                    return Ok(Self::whole(store));
                }
            }
            if is_numbered(index.item_ids()) && store.len() == index.item_ids().len() {
                context.say(format_args!(
                    "{} was built from scores without ids: its items are taken for those of the data set, in order",
                    path.display()
                ));
                return Ok(Self::whole(store));
            }
        }
        let parts = match index.manifest() {
            Some(manifest) if known(DATA_DIGEST).is_some() => parts_of(index, manifest, path)?,
            _ => Vec::new(),
        };
        // A part is read from the data that has its digest: of another one with the same ids it is not known
        // whether it has the same texts. An index of some items of a data set keeps the digest of all of them.
        let store_of = |part: &Part<'_>| stores.iter().position(|store| store.digest() == part.digest);
        let places: Vec<(Range<usize>, Option<usize>)> =
            parts.iter().map(|part| (part.range.clone(), store_of(part))).collect();
        let place = |position: usize| places.iter().find(|(range, _)| range.contains(&position))?.1;
        let items = Self::by_ids_from(stores, index.item_ids(), place).map_err(|id| Error::Mismatch {
            path: path.to_owned(),
            field: "item list".into(),
            found: format!("{} items with {id:?} among them", index.item_ids().len()),
            expected: "items of the data set, which has none of that name".into(),
            advice: "give the data it was built from, and with a --data of its own what was added since"
                .into(),
        })?;
        if parts.is_empty() {
            context.say(format_args!(
                "{} does not say which texts it was built from: only ids were compared",
                path.display()
            ));
        }
        for (part, (range, store)) in parts.iter().zip(places) {
            if let (None, Some(manifest)) = (store, index.manifest()) {
                manifest.check_digest(path, part.name, &items.digest(range)?)?;
            }
        }
        Ok(items)
    }

    /// SHA-256 of some items, as a store of them would have it.
    pub(super) fn digest(&self, range: Range<usize>) -> Result<String> {
        let mut digester = Digester::new();
        for position in range {
            self.get(position as u32)?.feed(&mut |bytes| digester.update(bytes));
        }
        Ok(digester.finish())
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.order.as_ref().map_or_else(|| self.stores[0].len(), Vec::len)
    }

    /// Their ids.
    pub(crate) fn ids(&self) -> Result<IdTable> {
        let mut ids = IdTable::new();
        match &self.order {
            None => return Ok(self.stores[0].ids().clone()),
            Some(order) => order.iter().try_for_each(|&(store, at)| {
                ids.push(self.stores[store as usize].ids().get(at)).map(|_| ())
            })?,
        }
        Ok(ids)
    }

    /// One of them.
    pub(crate) fn get(&self, position: u32) -> Result<Item, loxia::data::Error> {
        match &self.order {
            None => self.stores[0].get(position),
            Some(order) => {
                let (store, at) = order[position as usize];
                self.stores[store as usize].get(at)
            }
        }
    }

    /// Some of them.
    pub(super) fn read(&self, range: Range<usize>) -> Result<Vec<Item>, loxia::data::Error> {
        match &self.order {
            None => self.stores[0].read(range),
            Some(_) => range.map(|position| self.get(position as u32)).collect(),
        }
    }
}

/// Items that came into an index together.
struct Part<'a> {
    /// Name of their digest.
    name: &'a str,
    digest: &'a str,
    range: Range<usize>,
}

/// The items of the build, and those of each addition.
fn parts_of<'a>(index: &Index, manifest: &'a Manifest, path: &Path) -> Result<Vec<Part<'a>>> {
    let items = index.item_ids().len();
    let mut parts = Vec::new();
    for (name, digest) in &manifest.digests {
        let Some(rest) = name.strip_prefix(DATA_DIGEST) else { continue };
        let number = |text: &str| text.parse::<usize>().ok();
        let range = match rest.trim().split_once("..").map(|(start, end)| (number(start), number(end))) {
            Some((Some(start), Some(end))) => start..end,
            _ if rest.is_empty() => 0..items - index.added(),
            _ => continue,
        };
        if range.start > range.end || range.end > items {
            let what = format!("items {name:?} of an index of {items} items; build the index again");
            return Err(Error::corrupt(path.join(MANIFEST_FILE), what).into());
        }
        parts.push(Part { name, digest, range });
    }
    Ok(parts)
}

/// Whether ids are nothing but positions: the columns of an npy file have no other names.
fn is_numbered(ids: &IdTable) -> bool {
    ids.iter().enumerate().all(|(position, id)| id.parse() == Ok(position))
}

/// The texts, told to a progress bar on every pass.
pub(crate) struct ToldTexts<'a> {
    pub(crate) items: &'a OrderedItems<'a>,
    pub(crate) progress: &'a dyn Progress,
}

impl ItemTexts for ToldTexts<'_> {
    fn for_each(&self, see: &mut dyn FnMut(&str) -> loxia::search::Result<()>) -> loxia::search::Result<()> {
        const AT_ONCE: usize = 256;
        for start in (0..self.items.len()).step_by(AT_ONCE) {
            let block = self.items.read(start..(start + AT_ONCE).min(self.items.len()));
            for item in block.map_err(|error| Error::Scorer(Box::new(error)))? {
                see(&item.title_and_text())?;
                self.progress.advance(1);
            }
        }
        Ok(())
    }
}
