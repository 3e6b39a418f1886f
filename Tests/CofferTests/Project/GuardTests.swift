import Foundation
import Testing

/// The patches of `Tests/Guards`, each of which switches off one guard of the store, so that
/// `make guards` can tell whether the harnesses notice. Here only that they still do.
@Suite struct GuardTests {
    struct Patch: CustomTestStringConvertible {
        let name: String
        let lines: [String]

        var harnesses: [String] {
            lines.prefix { !$0.isEmpty }.compactMap { line in
                line.hasPrefix("Harness: ") ? String(line.dropFirst("Harness: ".count)) : nil
            }
        }

        var changedFiles: [String] {
            lines.filter { $0.hasPrefix("+++ ") || $0.hasPrefix("--- ") }
                .map { String($0.dropFirst("+++ a/".count)) }
        }

        var testDescription: String { name }
    }

    private static let patches: [Patch] = {
        let folder = Repository.root.appending(path: "Tests/Guards").path
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return names.sorted().map { name in
            let text = (try? Repository.text("Tests/Guards/\(name)")) ?? ""
            return Patch(name: name, lines: text.components(separatedBy: "\n"))
        }
    }()

    @Test func `each harness has a guard to notice`() {
        let named = Set(Self.patches.flatMap(\.harnesses))
        #expect(
            named == [
                "CancellationTests", "FaultTests", "JournalModeTests", "KillTests",
                "LinearizabilityTests", "PowerLossTests",
            ])
    }

    @Test(arguments: patches)
    func `a patch says what it switches off, and touches the library alone`(patch: Patch) {
        #expect(patch.name.hasSuffix(".patch"))
        #expect(patch.lines.first?.isEmpty == false)
        #expect(patch.lines.first?.contains("|") == false, "it goes into a table")
        #expect(!patch.harnesses.isEmpty)
        #expect(!patch.changedFiles.isEmpty)
        #expect(patch.changedFiles.allSatisfy { $0.hasPrefix("Sources/Coffer/") })
    }

    @Test(.againstHanging, arguments: patches)
    func `a patch applies to the sources as they are`(patch: Patch) throws {
        let root = Repository.root.path
        let output = try Tool.runProgram([
            "git", "-C", root, "apply", "--check", "\(root)/Tests/Guards/\(patch.name)",
        ])
        #expect(output.exitCode == 0, "\(output.errorText)")
    }
}
