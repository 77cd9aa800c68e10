//! JSON whose layout stays: what is not changed is written as it was.

use jsonc_parser::cst::{CstObject, CstObjectProp, CstRootNode};
use jsonc_parser::{ParseOptions, json};
use serde_json::Value;

use super::Trouble;

/// A file that holds one object.
pub(super) struct Document {
    root: CstRootNode,
    value: Value,
}

impl Document {
    /// Of a text; none, or a blank one, is an empty object.
    pub(super) fn parse(text: Option<&str>) -> Result<Self, Trouble> {
        let text = text.filter(|text| !text.trim().is_empty()).unwrap_or("{}\n");
        let value: Value =
            serde_json::from_str(text).map_err(|error| Trouble::Broken(format!("no valid JSON ({error})")))?;
        if !value.is_object() {
            return Err(Trouble::Broken("it holds no JSON object".to_owned()));
        }
        let strict = ParseOptions {
            allow_comments: false,
            allow_loose_object_property_names: false,
            allow_trailing_commas: false,
            ..ParseOptions::default()
        };
        let root =
            CstRootNode::parse(text, &strict).map_err(|error| Trouble::Broken(format!("no valid JSON ({error})")))?;
        let document = Self { root, value };
        Self::each_once(&document.top()?, "")?;
        Ok(document)
    }

    /// Of a name that is there twice nobody knows which counts.
    fn each_once(object: &CstObject, path: &str) -> Result<(), Trouble> {
        let mut names: Vec<String> = object.properties().iter().filter_map(CstObjectProp::decoded_name).collect();
        names.sort_unstable_by_key(|name| name.to_ascii_lowercase());
        match names.windows(2).find(|pair| pair[0].eq_ignore_ascii_case(&pair[1])) {
            Some(pair) => Err(Trouble::Broken(format!("{path}{:?} is in it twice", pair[0]))),
            None => Ok(()),
        }
    }

    /// The object itself.
    pub(super) fn top(&self) -> Result<CstObject, Trouble> {
        self.root.object_value().ok_or_else(|| Trouble::Broken("it holds no JSON object".to_owned()))
    }

    /// A member that is an object, made where it is absent.
    pub(super) fn object(&self, name: &str) -> Result<CstObject, Trouble> {
        let top = self.top()?;
        if self.value.get(name).is_some_and(Value::is_null) {
            top.append_or_set(name, json!({}));
        }
        let object =
            top.object_value_or_create(name).ok_or_else(|| Trouble::Broken(format!("{name:?} in it is no object")))?;
        Self::each_once(&object, &format!("{name}."))?;
        Ok(object)
    }

    /// What it was when it was read.
    pub(super) fn value(&self) -> &Value {
        &self.value
    }

    /// A text of the top object's member, as it was read.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.value.get(name)?.as_str()
    }

    /// The changed text.
    pub(super) fn into_text(self) -> String {
        self.root.to_string()
    }
}

/// What the crate lacks.
pub(super) trait SetMember {
    /// Gives a member this value, whether it was there or not.
    fn append_or_set(&self, name: &str, value: jsonc_parser::cst::CstInputValue);
    /// Takes a member out, if it is there.
    fn take_out(&self, name: &str);
}

impl SetMember for CstObject {
    fn append_or_set(&self, name: &str, value: jsonc_parser::cst::CstInputValue) {
        match self.get(name) {
            Some(property) => property.set_value(value),
            None => {
                self.append(name, value);
            }
        }
    }

    fn take_out(&self, name: &str) {
        if let Some(property) = self.get(name) {
            property.remove();
        }
    }
}
