/// The bytes of the command line. `CommandLine.arguments` repairs bytes that are not UTF-8.
enum RawArguments {
    /// Refuses an argument that is not UTF-8, because the repaired text would name another file.
    ///
    /// - Throws: `ToolError` `.usage`, which repeats no argument.
    static func requireUTF8() throws {
        for index in 1..<max(1, Int(CommandLine.argc)) {
            guard let bytes = CommandLine.unsafeArgv[index],
                String(validatingCString: bytes) == nil
            else { continue }
            throw ToolError(
                .usage, "argument \(index) is not UTF-8",
                hint: "If it names a file, rename the file first.")
        }
    }
}
