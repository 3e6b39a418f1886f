import Foundation
import Testing

/// `make manual` generates `Documentation/coffer.1`. It is committed, so that it can be read and
/// packaged without building anything.
@Suite(.againstHanging) struct ManualTests {
    @Test func `the manual page describes every verb and option`() throws {
        let help = try Tool.run(["--experimental-dump-help"])
        let dump = try #require(
            JSONSerialization.jsonObject(with: help.stdout) as? [String: Any])
        let root = try #require(dump["command"] as? [String: Any])
        let manual = try Repository.text("Documentation/coffer.1")
        let wanted = Self.facts(of: root)
        #expect(wanted.count > 100)
        for fact in wanted {
            let isThere = manual.contains(fact)
            #expect(isThere, "run `make manual`: \(fact) is missing")
        }
    }

    /// The texts that the page must have about a command and its subcommands.
    private static func facts(of command: [String: Any]) -> [String] {
        let name = command["commandName"] as? String ?? ""
        guard name != "help" else { return [] }
        var found = [name]
        if let abstract = command["abstract"] as? String { found.append(abstract) }
        for argument in command["arguments"] as? [[String: Any]] ?? [] {
            for name in argument["names"] as? [[String: Any]] ?? []
            where name["kind"] as? String == "long" {
                found.append("-\(name["name"] as? String ?? "")")
            }
            // The page doubles its own markup characters.
            if let abstract = argument["abstract"] as? String, abstract.allSatisfy(\.isASCII) {
                found.append(abstract)
            }
        }
        let below = command["subcommands"] as? [[String: Any]] ?? []
        return found + below.flatMap(facts)
    }
}
