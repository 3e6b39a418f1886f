import Testing

/// The document that `make proof` writes.
@Suite(.againstHanging, .onOwnThreads) struct ProofDocumentTests {
    @Test func `every harness has a text in Scripts/proof, which writes all of proof.md`() throws {
        let check = try Tool.runProgram([
            "\(Repository.root.path)/Scripts/proof", "--check",
        ])
        #expect(check.exitCode == 0, "\(check.errorText)")
    }
}
