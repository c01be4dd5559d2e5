//! JSON merge patches (RFC 7396) between two indexes, applied to their texts: parts that a patch does not touch keep
//! their bytes, so the result can be verified by its digest, and no tree of it is built in memory.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::format::json::{self, Malformed};

type Members<'a> = BTreeMap<String, &'a RawValue>;

/// Applies `patch` to `base`. The depth of both must have been checked; changed objects get sorted keys.
pub fn apply(base: &[u8], patch: &[u8]) -> Result<Vec<u8>, Malformed> {
    json::check(patch)?;
    let (base, patch) = (raw(base)?, raw(patch)?);
    let mut out = Vec::with_capacity(base.get().len() + patch.get().len());
    merge(Some(base), patch, &mut out)?;
    Ok(out)
}

/// The patch from `old` to `new`, both canonical; `None` if no patch expresses the change, because a patch cannot set a
/// value to `null`.
pub fn diff(old: &[u8], new: &[u8]) -> Option<Vec<u8>> {
    let mut patch = Vec::new();
    difference(raw(old).ok()?, raw(new).ok()?, &mut patch).ok()?;
    let is_exact = apply(old, &patch).is_ok_and(|made| made == new);
    is_exact.then_some(patch)
}

/// `text` without spaces, keys sorted.
pub fn canonical(text: &[u8]) -> Result<Vec<u8>, Malformed> {
    json::check(text)?;
    let mut out = Vec::with_capacity(text.len());
    write_canonical(raw(text)?, &mut out)?;
    Ok(out)
}

fn raw(text: &[u8]) -> Result<&RawValue, Malformed> {
    serde_json::from_slice(text).map_err(json::malformed)
}

/// The members of an object; none if it is something else.
fn members(value: &RawValue) -> Result<Option<Members<'_>>, Malformed> {
    let is_object = value.get().starts_with('{');
    let members = is_object.then(|| serde_json::from_str(value.get()).map_err(json::malformed));
    members.transpose()
}

/// Depth is bounded by that of `patch`, which has been checked.
fn merge(base: Option<&RawValue>, patch: &RawValue, out: &mut Vec<u8>) -> Result<(), Malformed> {
    let Some(patches) = members(patch)? else {
        out.extend_from_slice(patch.get().as_bytes());
        return Ok(());
    };
    let base = base.map(members).transpose()?.flatten().unwrap_or_default();
    let mut merged: BTreeMap<String, (Option<&RawValue>, Option<&RawValue>)> = BTreeMap::new();
    merged.extend(base.into_iter().map(|(key, value)| (key, (Some(value), None))));
    for (key, patch) in patches {
        if patch.get() == "null" {
            merged.remove(&key);
        } else {
            merged.entry(key).or_default().1 = Some(patch);
        }
    }
    write_object(out, merged, |(old, patch), out| {
        if let Some(patch) = patch {
            return merge(old, patch, out);
        }
        out.extend_from_slice(old.map_or("null", RawValue::get).as_bytes());
        Ok(())
    })
}

fn difference(old: &RawValue, new: &RawValue, out: &mut Vec<u8>) -> Result<(), Malformed> {
    let (Some(old), Some(new_members)) = (members(old)?, members(new)?) else {
        out.extend_from_slice(new.get().as_bytes());
        return Ok(());
    };
    let removed = old.keys().filter(|key| !new_members.contains_key(*key));
    let mut changes: BTreeMap<String, (Option<&RawValue>, Option<&RawValue>)> = BTreeMap::new();
    changes.extend(removed.map(|key| (key.clone(), (None, None))));
    for (key, new) in new_members {
        let old = old.get(&key).copied();
        if old.is_none_or(|old| old.get() != new.get()) {
            changes.insert(key, (old, Some(new)));
        }
    }
    write_object(out, changes, |change, out| match change {
        (Some(old), Some(new)) => difference(old, new, out),
        (_, new) => {
            out.extend_from_slice(new.map_or("null", RawValue::get).as_bytes());
            Ok(())
        }
    })
}

fn write_canonical(value: &RawValue, out: &mut Vec<u8>) -> Result<(), Malformed> {
    if let Some(members) = members(value)? {
        return write_object(out, members, write_canonical);
    }
    if value.get().starts_with('[') {
        let items: Vec<&RawValue> = serde_json::from_str(value.get()).map_err(json::malformed)?;
        out.push(b'[');
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write_canonical(item, out)?;
        }
        out.push(b']');
        return Ok(());
    }
    let scalar: serde_json::Value = serde_json::from_str(value.get()).map_err(json::malformed)?;
    serde_json::to_writer(out, &scalar).map_err(json::malformed)
}

fn write_object<T>(
    out: &mut Vec<u8>,
    members: BTreeMap<String, T>,
    mut write: impl FnMut(T, &mut Vec<u8>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    out.push(b'{');
    for (index, (key, value)) in members.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        serde_json::to_writer(&mut *out, &key).map_err(json::malformed)?;
        out.push(b':');
        write(value, out)?;
    }
    out.push(b'}');
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn check(base: &str, patch: &str, expected: &str) {
        let made = apply(base.as_bytes(), patch.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(made).unwrap(), expected);
    }

    #[test]
    fn patches_do_what_the_rfc_says() {
        check(r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#);
        check(r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#);
        check(r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#);
        check(r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#);
        check(
            r#"{"a":{"b":"c"}}"#,
            r#"{"a":{"b":"d","c":null}}"#,
            r#"{"a":{"b":"d"}}"#,
        );
        check(r#"{"a":"foo"}"#, "null", "null");
        check("[1,2]", r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#);
        check("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#);
        check(r#"{"e":null}"#, r#"{"a":1}"#, r#"{"a":1,"e":null}"#);
    }

    #[test]
    fn what_is_not_touched_keeps_its_bytes() {
        check(r#"{"b": [1, 2],"a":1}"#, r#"{"a":2}"#, r#"{"a":2,"b":[1, 2]}"#);
    }

    #[test]
    fn hostile_patches_are_refused() {
        let deep = r#"{"a":"#.repeat(100_000);
        for patch in ["", "{", r#"{"a":1,"a":2}"#, "{}{}", &deep] {
            apply(b"{}", patch.as_bytes()).unwrap_err();
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<u32>().prop_map(|n| json!(n)),
            "[a-c\"\\\\é\n]{0,3}".prop_map(|s| json!(s))
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::btree_map("[a-d\"]{1,2}", inner, 0..5).prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_difference_applied_gives_the_new_text(old in value(), new in value()) {
            let old = canonical(old.to_string().as_bytes()).unwrap();
            let new = canonical(new.to_string().as_bytes()).unwrap();
            let patch = diff(&old, &new).unwrap();
            prop_assert_eq!(apply(&old, &patch).unwrap(), new);
        }

        #[test]
        fn no_patch_makes_it_panic(base in value(), patch in prop::collection::vec(any::<u8>(), 0..60)) {
            let _either = apply(base.to_string().as_bytes(), &patch);
        }
    }
}
