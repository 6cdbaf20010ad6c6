//! The page of `fhec report` in a real browser.

mod common;

use std::path::Path;

use common::{HOSTILE, fhec_does, hostile_model};
use fhec_tests::browser::Browser;
use fhec_tests::models::{Network, Spec, generate};
use serde_json::json;

/// A browser with the page of a model, or nothing where no Chromium is installed.
fn browser_with(folder: &Path, model: &[u8], options: &[&str]) -> Option<Browser> {
    let command = Browser::required()?;
    std::fs::write(folder.join("model.onnx"), model).unwrap();
    fhec_does(folder, &[&["report", "model.onnx", "-o", "report.html"], options].concat());
    let mut browser = Browser::start(command, 1280, 900).unwrap();
    browser.open(&folder.join("report.html")).unwrap();
    Some(browser)
}

/// Center of the first element that a selector finds, scrolled into view.
fn center(browser: &mut Browser, selector: &str) -> (f64, f64) {
    let script = format!(
        "(() => {{ const e = document.querySelector('{selector}'); e.scrollIntoView({{ block: 'center' }}); \
         const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
    );
    let found = browser.evaluate(&script).unwrap();
    (found[0].as_f64().unwrap(), found[1].as_f64().unwrap())
}

#[test]
#[ignore = "needs Chromium and builds ResNet-20; run with cargo xtask slow"]
fn the_page_renders_and_answers_without_a_word_in_the_console() {
    let folder = tempfile::tempdir().unwrap();
    let model = generate(&Spec::new(Network::Resnet20));
    let Some(mut browser) = browser_with(folder.path(), &model, &[]) else { return };

    let boxes = "document.querySelectorAll('.stage:not([hidden]) .node').length";
    assert_eq!(browser.evaluate(boxes).unwrap(), json!(40));
    let sizes = "[...document.querySelectorAll('svg')].every(s => s.closest('[hidden], details') || s.getBoundingClientRect().width > 50)";
    assert_eq!(browser.evaluate(sizes).unwrap(), json!(true));
    let wide = "document.documentElement.scrollWidth <= innerWidth";
    assert_eq!(browser.evaluate(wide).unwrap(), json!(true), "nothing hangs out to the right");

    // Another stage.
    browser.evaluate("document.getElementById('tab-0').click()").unwrap();
    assert_eq!(browser.evaluate(boxes).unwrap(), json!(74));
    assert_eq!(browser.evaluate("document.querySelector('#tab-0').ariaSelected").unwrap(), json!("true"));
    browser.evaluate("document.querySelector('#tab-0').focus()").unwrap();
    browser
        .evaluate("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'End', bubbles: true }))")
        .unwrap();
    assert_eq!(browser.evaluate(boxes).unwrap(), json!(40), "the End key shows the program");

    // A pointer over a box.
    let (x, y) = center(&mut browser, ".stage:not([hidden]) .node:nth-of-type(1)");
    browser.point_at(x, y).unwrap();
    let tip = browser.evaluate("document.getElementById('tip').innerText").unwrap();
    for part in ["shape", "level", "scale", "L20.1"] {
        assert!(tip.as_str().is_some_and(|t| t.contains(part)), "{part}: {tip}");
    }
    browser.point_at(2.0, 2.0).unwrap();
    assert_eq!(browser.evaluate("document.getElementById('tip').hidden").unwrap(), json!(true));

    // Zoom by wheel and by button, and back.
    let view = "document.querySelector('.stage:not([hidden]) svg.graph').getAttribute('viewBox')";
    let width = |browser: &mut Browser| -> f64 {
        let found = browser.evaluate(view).unwrap();
        found.as_str().and_then(|v| v.split(' ').nth(2)?.parse().ok()).expect("a view box")
    };
    let home = width(&mut browser);
    let (x, y) = center(&mut browser, ".stage:not([hidden]) svg.graph");
    browser.zoom_in_at(x, y).unwrap();
    let near = width(&mut browser);
    assert!(near < home * 0.8, "{near} {home}");
    browser.evaluate("document.querySelector('[data-zoom=in]').click()").unwrap();
    assert!(width(&mut browser) < near);
    browser.evaluate("document.querySelector('[data-zoom=fit]').click()").unwrap();
    assert!((width(&mut browser) - home).abs() < 0.01);

    // A column of the charts, a narrow window, dark colors, paper.
    let (x, y) = center(&mut browser, ".chart .hit");
    browser.point_at(x, y).unwrap();
    assert_eq!(browser.evaluate("document.querySelectorAll('.hit.here').length").unwrap(), json!(1));
    browser.resize(400, 800).unwrap();
    assert_eq!(browser.evaluate(wide).unwrap(), json!(true), "nothing hangs out of a narrow window");
    let paper = "getComputedStyle(document.body).backgroundColor";
    let light = browser.evaluate(paper).unwrap();
    browser.prefer("dark").unwrap();
    assert_ne!(browser.evaluate(paper).unwrap(), light);
    assert!(browser.pdf().unwrap().len() > 10_000);

    assert!(browser.complaints().is_empty(), "{:?}", browser.complaints());
}

#[test]
#[ignore = "needs Chromium; run with cargo xtask slow"]
fn hostile_names_do_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut browser) = browser_with(folder.path(), &hostile_model(), &["--toy"]) else { return };
    for node in 1..4 {
        let (x, y) = center(&mut browser, &format!(".stage:not([hidden]) .node:nth-of-type({node})"));
        browser.point_at(x, y).unwrap();
    }
    let tip = browser.evaluate("document.getElementById('tip').innerText").unwrap();
    assert!(tip.as_str().is_some_and(|t| t.contains(&HOSTILE[..20])), "the name is shown: {tip}");
    assert_eq!(browser.evaluate("window.harm === undefined").unwrap(), json!(true));
    assert_eq!(browser.evaluate("document.images.length + document.scripts.length").unwrap(), json!(1));
    assert!(browser.complaints().is_empty(), "{:?}", browser.complaints());
}
