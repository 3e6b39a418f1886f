/// Metrics in the format of Prometheus, for the textfile collector of a node exporter.
///
/// The format: <https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format>.
enum PrometheusText {
    /// The lines before the values of a metric.
    static func head(_ name: String, _ help: String) -> String {
        "# HELP \(name) \(help)\n# TYPE \(name) gauge\n"
    }

    /// "Label values … backslash, double-quote, and line feed characters have to be escaped".
    static func escaped(_ value: String) -> String {
        value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
            .replacing("\n", with: "\\n")
    }
}
