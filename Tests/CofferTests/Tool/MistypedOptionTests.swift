import Foundation
import Testing

/// Options that do not exist, or come at the wrong place.
@Suite(.againstHanging, .onOwnThreads) struct MistypedOptionTests {
    @Test(arguments: [
        (["import", "x.db", "f.csv", "--tabel", "a"], "option --tabel", "Did you mean --table?"),
        (["decrypt", "x.db", "y.db", "--write-plaintex"], "--write-plaintex", "--write-plaintext"),
        (["-q", "rekye", "x.db"], "coffer has no verb rekye", "Did you mean coffer rekey?"),
        (["-q", "rekey", "x.db"], "the option -q comes before the verb", "coffer rekey -q"),
        (["--json", "kv", "get", "x.db"], "--json", "coffer kv --json"),
        (["import", "x.db", "f.csv"], "Name the table", "--table NAME"),
        (["kv", "put", "x.db", "b", "k", "-high"], "argument 6 begins with a dash", "Write --"),
        (["kv", "put", "x.db", "b", "k", "-5"], "argument 6 begins with a dash", "Write --"),
        (["verify", "-archive.db"], "argument 2 begins with a dash", "./ before the name"),
        (["keygen", "-host.key"], "argument 2 begins with a dash", "./ before the name"),
        (["keygen", "-"], "A key is written to a file", "standard output"),
        (["sql", "x.db", "--bind", "--tabel"], "", ""),
    ])
    func `a mistyped option is named before something that it would have given`(
        arguments: [String], message: String, hint: String
    ) throws {
        let output = try Tool.run(arguments, input: Data("SELECT 1".utf8))
        #expect(output.exitCode == (message.isEmpty ? 10 : 2), "\(output.errorText)")
        guard !message.isEmpty else { return }
        #expect(output.errorText.contains(message), "\(output.errorText)")
        #expect(output.errorText.contains(hint), "\(output.errorText)")
    }
}
