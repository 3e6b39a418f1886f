import Foundation
import Testing

/// `Tests/ReflectionProgram`, built as programs are that leave out what reflection needs. For what
/// Coffer cannot find out, its error says what to declare instead.
@Suite(.againstHanging, .onOwnThreads) struct StrippedReflectionTests {
    private static let whole = """
        plain: true
        condition: 1
        order: 1
        partial: true
        declared: true
        declared text: 2023-11-14T22:13:20.500Z
        index: ()
        encoding: ()
        stored: true
        access: storedProperties
        reason: none
        unknown: misuse, declare example

        """

    private static let withoutMetadata = """
        plain: true
        condition: misuse, declare columns
        order: misuse, declare columns
        partial: misuse, declare columns
        declared: true
        declared text: 2023-11-14T22:13:20.500Z
        index: misuse, declare columns
        encoding: misuse, declare columns
        stored: true
        access: codable
        reason: the places of its properties are not what its mirror tells
        unknown: misuse, declare example

        """

    @Test(arguments: [
        ("-disable-reflection-names", whole), ("-disable-reflection-metadata", withoutMetadata),
    ])
    func `a program without reflection gets its rows, or an error that says what to declare`(
        flag: String, expected: String
    ) throws {
        let folder = try TemporaryFolder()
        let program = folder.path("program")
        let source = Repository.root.appending(path: "Tests/ReflectionProgram/Reflection.swift")
        let built = try BuiltModules.compile(
            source,
            ["-parse-as-library", "-Xfrontend", flag, "-o", program]
                + BuiltModules.linking(besides: "ReadmeProgram", in: folder))
        #expect(built == "")
        let output = try Tool.runProgram([program])
        #expect(output.exitCode == 0, "\(output.errorText)")
        #expect(output.text == expected)
    }
}
