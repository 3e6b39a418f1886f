import Foundation
import Testing

@testable import Coffer
@testable import CofferTool

/// What `coffer rekey` says of a change that failed: the exit code shows which key holds.
@Suite struct RekeyFailureTests {
    private let cause = StoreError(.io, "the disk went away")

    private func told(_ key: RekeyFailure.Key, _ error: StoreError? = nil) -> Failure {
        Failure(RekeyFailure(error ?? cause, key).told)
    }

    @Test func `the old key still holds: the error is the store's`() {
        #expect(told(.old).exitCode == 17)
        #expect(told(.old).message == cause.message)
    }

    @Test func `another program changed the key in the meantime: nothing is proven`() {
        let told = told(.old, StoreError(.wrongKey, "the key does not open it"))
        #expect(told.exitCode == 130)
        #expect(told.message.contains("another program"))
    }

    @Test func `the new key holds: the same command finishes`() {
        #expect(told(.new).exitCode == 18)
        #expect(told(.new).hint?.contains("The new key holds") == true)
    }

    @Test func `no proof was possible: one of the two holds`() {
        #expect(told(.unproven).exitCode == 130)
        #expect(told(.unproven).hint?.contains("One of the two") == true)
    }

    @Test func `neither key opens it: that is damage`() {
        #expect(told(.neither, StoreError(.damaged, "neither opens")).exitCode == 14)
    }
}
