//! Templates, styles and scripts of all pages, built into the program.

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment};
use serde::Serialize;
use serde_json::Value;

pub(crate) const STYLES: [&str; 2] =
    [include_str!("../../assets/uplot/uPlot.min.css"), include_str!("../../assets/page.css")];
pub(crate) const UPLOT: &str = include_str!("../../assets/uplot/uPlot.iife.min.js");
pub(crate) const THEME: &str = include_str!("../../assets/theme.js");
pub(crate) const UNITS: &str = include_str!("../../assets/units.js");
pub(crate) const CHARTS: &str = include_str!("../../assets/charts.js");
pub(crate) const CHART_LIBRARY_LICENCE: &str = include_str!("../../assets/uplot/LICENSE");

const TEMPLATES: [(&str, &str); 3] = [
    ("base.html", include_str!("../../assets/base.html")),
    ("page.html", include_str!("../../assets/page.html")),
    ("tuned.html", include_str!("../../assets/tuned.html")),
];

/// Renders a template.
pub(crate) fn render_template(name: &str, content: Value) -> String {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    for (name, text) in TEMPLATES {
        environment.add_template(name, text).expect("the templates are whole");
    }
    let template = environment.get_template(name).expect("there is such a template");
    template.render(Serde(content)).expect("the template fits what it is filled with")
}

/// Data as text within a script: no name in it can end the script.
pub(crate) fn embedded(data: &impl Serialize) -> String {
    let text = serde_json::to_string(data).expect("all keys are strings");
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// Data as readable text.
pub(crate) fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
