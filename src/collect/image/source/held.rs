//! What the engines of a machine have in common: they say at once whether they have an image, and which; only then is it
//! read.

use super::{Failed, Found, Wish};

/// An image that an engine has, before anything large of it is read.
pub(super) trait Held {
    /// The digest of its configuration, if that is known by now.
    fn id(&self) -> Option<&str>;

    /// Reads of it what is wished.
    fn read(self: Box<Self>, wish: &Wish) -> Result<Found, Failed>;
}

/// What was looked for and found, or why not.
pub(super) type Looked<'a> = Result<Box<dyn Held + 'a>, Failed>;
