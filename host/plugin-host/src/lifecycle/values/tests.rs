use plugin_package::{Choice, Widget};

use super::*;

fn definition(key: &str, widget: Widget) -> Definition {
    Definition {
        key: key.to_owned(),
        title: key.to_owned(),
        description: String::new(),
        widget,
        options: vec![Choice {
            value: "hd".to_owned(),
            label: "HD".to_owned(),
        }],
        default: None,
        is_required: false,
        is_secret: widget == Widget::Password,
        min: Some(1.0),
        max: Some(5.0),
        pattern: None,
    }
}

fn batch(values: &[(&str, &str)]) -> BTreeMap<String, String> {
    values
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn a_batch_is_made_whole_or_not_at_all() {
    let definitions = [
        definition("count", Widget::Number),
        definition("token", Widget::Password),
    ];
    let before = Values::default()
        .with(&definitions, &batch(&[("count", "2"), ("token", "hunter2")]))
        .unwrap();
    assert_eq!(before.plain, batch(&[("count", "2")]));
    assert_eq!(before.secret["token"].expose(), "hunter2");
    let error = before
        .with(&definitions, &batch(&[("count", "3"), ("token", "x"), ("zzz", "1")]))
        .unwrap_err();
    assert_eq!(error.to_string(), "setting zzz: is unknown");
    let after = before.with(&definitions, &batch(&[("token", "")])).unwrap();
    assert!(after.secret.is_empty() && after.plain == before.plain);
}

#[test]
fn a_plugin_reads_defaults_and_values_that_still_fit_and_no_secret() {
    let mut count = definition("count", Widget::Number);
    count.default = Some("4".to_owned());
    let definitions = [
        count,
        definition("token", Widget::Password),
        definition("other", Widget::Text),
    ];
    assert_eq!(Values::default().effective(&definitions), batch(&[("count", "4")]));
    let stale = Values {
        plain: batch(&[("count", "9"), ("other", "x"), ("gone", "y")]),
        ..Values::default()
    };
    assert_eq!(stale.effective(&definitions), batch(&[("count", "4"), ("other", "x")]));
}
