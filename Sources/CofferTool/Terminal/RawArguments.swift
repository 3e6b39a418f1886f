/// The bytes of the command line, which `CommandLine.arguments` repairs where they are not UTF-8.
enum RawArguments {
    /// Refuses what repaired would be the name of another file.
    ///
    /// - Throws: `ToolError` `.usage`, which repeats no argument.
    static func requireUTF8() throws {
        for index in 1..<max(1, Int(CommandLine.argc)) {
            guard let bytes = CommandLine.unsafeArgv[index],
                String(validatingCString: bytes) == nil
            else { continue }
            throw ToolError(
                .usage, "argument \(index) is not UTF-8",
                hint: "a file with such a name has to be renamed first")
        }
    }
}
