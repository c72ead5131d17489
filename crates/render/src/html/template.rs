//! Templates, styles and scripts of all pages, built into the program.

use serde::Serialize;
use serde_json::Value;
use tinytemplate::TinyTemplate;

pub(crate) const STYLES: [&str; 2] =
    [include_str!("../../assets/uplot/uPlot.min.css"), include_str!("../../assets/page.css")];
pub(crate) const UPLOT: &str = include_str!("../../assets/uplot/uPlot.iife.min.js");
pub(crate) const THEME: &str = include_str!("../../assets/theme.js");
pub(crate) const UNITS: &str = include_str!("../../assets/units.js");
pub(crate) const CHARTS: &str = include_str!("../../assets/charts.js");
pub(crate) const CHART_LIBRARY_LICENCE: &str = include_str!("../../assets/uplot/LICENSE");

const TEMPLATES: [(&str, &str); 4] = [
    ("base.html", include_str!("../../assets/base.html")),
    ("page.html", include_str!("../../assets/page.html")),
    ("table", include_str!("../../assets/table.html")),
    ("tuned.html", include_str!("../../assets/tuned.html")),
];

/// A page: the template with this name within that of all pages.
pub(crate) fn render_page(name: &str, mut content: Value) -> String {
    let mut templates = TinyTemplate::new();
    for (name, text) in TEMPLATES {
        templates.add_template(name, text).expect("the templates are whole");
    }
    let render =
        |name, content: &Value| templates.render(name, content).expect("the template fits what it is filled with");
    content["main"] = Value::String(render(name, &content));
    render("base.html", &content)
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
