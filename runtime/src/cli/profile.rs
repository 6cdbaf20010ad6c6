//! A profile for people, for programs and for Chrome's trace viewer.

use comfy_table::{CellAlignment, Table};
use fhe_machine::{Profile, Share};

/// Two tables for people: per layer, then per operation.
pub(crate) fn to_table(profile: &Profile) -> String {
    let layers = table("layer", profile.by_layer(), profile.total_seconds);
    let mut operations: Vec<_> = profile.by_operation().into_iter().collect();
    operations.sort_by(|a, b| b.1.seconds.total_cmp(&a.1.seconds));
    let operations = table("operation", operations, profile.total_seconds);
    let encoding = format!(
        "{} plaintexts encoded in {:.3} s of thread time, within the linear layers",
        profile.n_encoded, profile.encode_seconds
    );
    format!("{layers}\n{operations}\n{encoding}")
}

/// Totals and events as JSON.
pub fn to_json(profile: &Profile) -> serde_json::Value {
    serde_json::json!({
        "total_seconds": profile.total_seconds,
        "encode_seconds": profile.encode_seconds,
        "n_encoded": profile.n_encoded,
        "layers": profile.by_layer().into_iter()
            .map(|(layer, share)| serde_json::json!({"layer": layer, "count": share.count, "seconds": share.seconds}))
            .collect::<Vec<_>>(),
        "operations": profile.by_operation(),
        "events": profile.events,
    })
}

/// Events in the format of Chrome's trace viewer.
pub(crate) fn to_chrome_trace(profile: &Profile) -> serde_json::Value {
    let micros = |seconds: f64| (seconds * 1e6).round();
    let events: Vec<_> = profile
        .events
        .iter()
        .map(|event| {
            serde_json::json!({
                "name": event.operation, "cat": event.layer, "ph": "X", "pid": 1, "tid": 1,
                "ts": micros(event.start), "dur": micros(event.seconds), "args": {"layer": event.layer},
            })
        })
        .collect();
    serde_json::json!({ "traceEvents": events, "displayTimeUnit": "ms" })
}

fn table(first_column: &str, rows: Vec<(&str, Share)>, total_seconds: f64) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::UTF8_BORDERS_ONLY);
    table.set_header([first_column, "operations", "seconds", "share"]);
    for (name, share) in rows {
        let percent = 100.0 * share.seconds / total_seconds.max(f64::MIN_POSITIVE);
        table.add_row([
            name.to_owned(),
            share.count.to_string(),
            format!("{:.3}", share.seconds),
            format!("{percent:.1} %"),
        ]);
    }
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table.to_string()
}

#[cfg(test)]
mod tests {
    use fhe_machine::Recorder;

    use super::*;

    #[test]
    fn chrome_trace_has_every_event() {
        let mut recorder = Recorder::new();
        for (layer, operation) in [("conv1", "linear"), ("act1", "square"), ("conv1", "rescale")] {
            recorder.time(layer, operation, || ());
        }
        let trace = to_chrome_trace(&recorder.finish(0.0, 0));
        assert_eq!(trace["traceEvents"].as_array().unwrap().len(), 3);
        assert_eq!(trace["traceEvents"][1]["name"], "square");
    }
}
