/// The release of Coffer that the program is linked with.
public enum Release {
    /// The version of the library; see `CHANGELOG.md`.
    public static let version = "0.1.0"
}
