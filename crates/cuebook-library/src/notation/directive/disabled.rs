//! A program without the feature `items` reads no XML, and says so. There are no nodes, so nothing below is ever reached.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use super::opaque::Masked;
use super::written::Written;
use crate::error::{Error, ErrorKind, Result};
use crate::source::{Place, Source};

pub(super) struct Xml<'s> {
    pub(super) source: &'s Arc<Source>,
    pub(super) start: usize,
}

impl<'s> Xml<'s> {
    pub(super) fn mask(source: &'s Arc<Source>, _range: Range<usize>) -> Result<(Xml<'s>, Masked)> {
        let error = Error::missing_feature(ErrorKind::PromptRead, "read directives", "items");
        Err(error.map(|finding| finding.file(source.name())))
    }

    pub(super) fn parse<'t>(&self, _masked: &'t str) -> Result<Document<'t>> {
        Err(Error::missing_feature(ErrorKind::PromptRead, "read directives", "items"))
    }

    pub(super) fn place(&self, range: Range<usize>) -> Place {
        self.source.place(self.start + range.start..self.start + range.end)
    }

    pub(super) fn attribute(&self, node: Node<'_, '_>, _name: &str) -> Option<Written> {
        match node.0 {}
    }

    pub(super) fn any_attribute(&self, node: Node<'_, '_>, _name: &str) -> Option<Written> {
        match node.0 {}
    }

    pub(super) fn text(&self, node: Node<'_, '_>) -> Option<Written> {
        match node.0 {}
    }

    pub(super) fn stripped(&self, node: Node<'_, '_>) -> Option<Written> {
        match node.0 {}
    }

    pub(super) fn name_place(&self, node: Node<'_, '_>) -> Place {
        match node.0 {}
    }
}

pub(super) struct Document<'i>(Infallible, PhantomData<&'i str>);

impl<'i> Document<'i> {
    pub(super) fn root_element(&self) -> Node<'_, 'i> {
        match self.0 {}
    }
}

#[derive(Clone, Copy, PartialEq)]
pub struct Node<'a, 'i>(Infallible, PhantomData<(&'a (), &'i ())>);

pub(super) struct Attribute<'a>(Infallible, PhantomData<&'a ()>);

pub(super) struct Name<'a>(Infallible, PhantomData<&'a ()>);

impl<'a, 'i> Node<'a, 'i> {
    pub(super) fn is_element(&self) -> bool {
        match self.0 {}
    }

    pub(super) fn descendants(&self) -> std::vec::IntoIter<Node<'a, 'i>> {
        match self.0 {}
    }

    pub(super) fn parent_element(&self) -> Option<Node<'a, 'i>> {
        match self.0 {}
    }

    pub(super) fn tag_name(&self) -> Name<'a> {
        match self.0 {}
    }

    pub(super) fn range(&self) -> Range<usize> {
        match self.0 {}
    }

    pub(super) fn attributes(&self) -> std::vec::IntoIter<Attribute<'a>> {
        match self.0 {}
    }

    pub(super) fn attribute(&self, _name: &str) -> Option<&'a str> {
        match self.0 {}
    }

    pub(super) fn attribute_node(&self, _name: &str) -> Option<Attribute<'a>> {
        match self.0 {}
    }
}

impl<'a> Attribute<'a> {
    pub(super) fn name(&self) -> &'a str {
        match self.0 {}
    }

    pub(super) fn value(&self) -> &'a str {
        match self.0 {}
    }

    pub(super) fn namespace(&self) -> Option<&'a str> {
        match self.0 {}
    }

    pub(super) fn range_qname(&self) -> Range<usize> {
        match self.0 {}
    }

    pub(super) fn range_value(&self) -> Range<usize> {
        match self.0 {}
    }
}

impl<'a> Name<'a> {
    pub(super) fn namespace(&self) -> Option<&'a str> {
        match self.0 {}
    }
}

pub(super) fn elements<'a, 'i>(node: Node<'a, 'i>) -> std::vec::IntoIter<Node<'a, 'i>> {
    match node.0 {}
}

pub(super) fn name<'a>(node: Node<'a, '_>) -> &'a str {
    match node.0 {}
}
