import Foundation
import Testing

/// The patches of `Tests/Guards`. Each switches off one guard of store or tool, so that `make
/// guards` can find out whether a harness or a test notices. This suite checks only that they still
/// apply.
@Suite(.againstHanging, .onOwnThreads) struct GuardTests {
    struct Patch: CustomTestStringConvertible {
        let name: String
        let lines: [String]

        /// Harnesses that must count a loss.
        var harnesses: [String] { values("Harness") }
        /// Suites in which a test must fail.
        var tests: [String] { values("Test") }
        /// The major version of the only engine that has the guard; empty if both have it.
        var engines: [String] { values("Engine") }

        private func values(_ name: String) -> [String] {
            lines.dropFirst().prefix { !$0.isEmpty }.compactMap { line in
                line.hasPrefix("\(name): ") ? String(line.dropFirst(name.count + 2)) : nil
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
                "LinearizabilityTests", "PowerLossOfKeyringTests", "PowerLossTests",
            ])
    }

    @Test func `each promise that the README begins with has a guard to switch off`() {
        let names = Set(Self.patches.map(\.name))
        let needed = [
            "authorizer", "copy-compared", "foreign-keys-counted", "new-file-exclusive", "probe",
            "rekey-lock", "rekey-new-key-opens", "rekey-old-key-fails", "temporary-in-memory",
            "wiping", "zero-pages",
        ]
        for name in needed { #expect(names.contains("\(name).patch")) }
    }

    @Test func `each suite that a patch names exists`() throws {
        let root = Repository.root.appending(path: "Tests/CofferTests")
        let files = try #require(FileManager.default.enumerator(atPath: root.path))
        let suites = Set(
            files.compactMap { ($0 as? String)?.split(separator: "/").last.map(String.init) })
        for suite in Self.patches.flatMap({ $0.harnesses + $0.tests }) {
            #expect(suites.contains("\(suite).swift"), "\(suite)")
        }
    }

    @Test(arguments: patches)
    func `a patch says what it switches off, and changes only the library and the tool`(
        patch: Patch
    ) {
        #expect(patch.name.hasSuffix(".patch"))
        #expect(patch.lines.first?.isEmpty == false)
        #expect(patch.lines.first?.contains("|") == false, "it goes into a table")
        #expect(!(patch.harnesses + patch.tests).isEmpty)
        #expect(Set(["3", "4"]).isSuperset(of: patch.engines) && patch.engines.count <= 1)
        #expect(!patch.changedFiles.isEmpty)
        #expect(patch.changedFiles.allSatisfy { $0.hasPrefix("Sources/") })
    }

    @Test(arguments: patches)
    func `a patch applies to the sources as they are`(patch: Patch) throws {
        let root = Repository.root.path
        let output = try Tool.runProgram([
            "git", "-C", root, "apply", "--check", "\(root)/Tests/Guards/\(patch.name)",
        ])
        #expect(output.exitCode == 0, "\(output.errorText)")
    }
}
