import Foundation

/// The library that these tests run on, for sources that the tests compile themselves.
enum BuiltModules {
    private static var folder: URL { Tool.executable.deletingLastPathComponent() }

    /// Compiles a source that imports Coffer, and returns what the compiler says.
    static func compile(_ source: URL, _ arguments: [String]) throws -> String {
        let map = Repository.root.appending(path: "Sources/CSQLCipher/module.modulemap").path
        let headers = try run(["pkg-config", "--cflags-only-I", "sqlcipher"])
            .split(whereSeparator: \.isWhitespace).flatMap { ["-Xcc", String($0)] }
        return try run(
            [
                "swiftc", "-swift-version", "6", "-I", folder.appending(path: "Modules").path,
                "-Xcc", "-fmodule-map-file=\(map)",
            ] + headers + arguments + [source.path])
    }

    /// Arguments that link everything a program of this package is linked from, except its own
    /// code.
    ///
    /// - Parameter list: The folder for the list of objects, needed until the program is linked.
    static func linking(besides program: String, in list: TemporaryFolder) throws -> [String] {
        let objects = folder.appending(path: "\(program).product/Objects.LinkFileList")
        let others = try String(contentsOf: objects, encoding: .utf8)
            .components(separatedBy: "\n").filter { !$0.contains("/\(program).build/") }
        let file = list.url.appending(path: "objects.resp")
        try others.joined(separator: "\n").write(to: file, atomically: true, encoding: .utf8)
        let libraries = try run(["pkg-config", "--libs", "sqlcipher"])
            .split(whereSeparator: \.isWhitespace).map(String.init)
        return ["@\(file.path)", cxxLibrary] + libraries
    }

    /// swift-crypto's BoringSSL needs it.
    private static var cxxLibrary: String {
        #if canImport(Darwin)
        "-lc++"
        #else
        "-lstdc++"
        #endif
    }

    private static func run(_ arguments: [String]) throws -> String {
        let output = try Tool.runProgram(["/usr/bin/env"] + arguments)
        return output.text + output.errorText
    }
}
