import Foundation
import Testing

@testable import Coffer

/// Names of files that are not UTF-8. If they were repaired, they would name other files.
@Suite struct FileNameTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    /// Makes a folder whose name is one byte that never occurs in UTF-8.
    private func odd() -> [CChar] {
        Array(folder.url.path.utf8CString.dropLast()) + [0x2f, CChar(bitPattern: 0xff), 0]
    }

    @Test func `a path through a link to a name that is not UTF-8 is refused`() throws {
        try #require(mkdir(odd(), 0o700) == 0)
        let link = folder.path("link")
        try #require(symlink(odd(), link) == 0)
        for mode in [OpenMode.createIfMissing, .mustExist, .readOnly] {
            let error = expect(.misuse) {
                try Connection(path: link + "/store.db", key: .numbered(1), mode: mode)
            }
            #expect(error?.message.contains("UTF-8") == true)
        }
        expect(.misuse) { try StoreFileStatus(path: link) }
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder.url.path).count == 2)
    }

    @Test(arguments: ["%FF.db", "a%C3.db", "%ED%A0%80.db"])
    func `a URL whose path is not UTF-8 is refused`(name: String) throws {
        let url = try #require(URL(string: "file:///tmp/\(name)"))
        expect(.misuse) { try Location.url(url) }
    }

    @Test func `a URL with other percent signs names the file that it says`() throws {
        for name in ["a b.db", "100%.db", "%41.db", "é?#.db"] {
            let location = try Location.url(URL(filePath: folder.path(name)))
            #expect(location == .file(folder.path(name)))
        }
    }
}
