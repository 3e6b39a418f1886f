import Foundation
import Testing

@testable import Coffer
@testable import CofferReplica

@Suite struct RemoteProofTests {
    @Test func `a remote that creates each name once is fit, and nothing is left of the proof`()
        async throws
    {
        let remote = MemoryRemote()
        try await RemoteProof(remote).run()
        #expect(remote.objects.isEmpty)
    }

    @Test func `a remote that overwrites is unfit`() async throws {
        let error = await #expect(throws: StoreError.self) {
            try await RemoteProof(MemoryRemote(.init(overwritePercentage: 100))).run()
        }
        #expect(error?.code == .remoteUnfit)
        #expect(error?.message.contains("second object take a name") == true)
    }

    @Test func `a folder is fit`() async throws {
        let folder = try TemporaryFolder()
        try await RemoteProof(FolderRemote(folder.url.path)).run()
    }
}
