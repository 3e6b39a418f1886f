import Coffer

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One page of the list of objects, in version 2.
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html>
struct ObjectList {
    /// Names inside the remote, as far as a replica may use them.
    let names: [String]
    /// The last key of the page, whatever it is.
    let last: String?
    /// Whether there is another page.
    let isCut: Bool

    /// - Parameters:
    ///   - prefix: What the keys of the remote begin with.
    ///   - place: The remote, as messages name it.
    /// - Throws: `.remoteUnavailable` for an answer that is not whole, `.remoteUnfit` for one that
    ///   is no list.
    init(_ response: HTTPResponse, prefix: String, place: String) throws(StoreError) {
        if let length = response.headers["content-length"], Int(length) != response.body.count {
            throw StoreError(.remoteUnavailable, "the list of \(place) did not arrive whole")
        }
        let root = "ListBucketResult"
        guard let fields = XMLFields(response.body), fields[root] != nil else {
            throw StoreError(
                .remoteUnfit, "\(place) answers with something that is no list of objects",
                hint: "Look whether the URL names the host of the service, then the bucket.")
        }
        let isEncoded = fields["\(root)/EncodingType"] == "url"
        let keys = fields.all("\(root)/Contents/Key").compactMap { key in
            isEncoded ? Self.decoded(key, prefix) : key
        }
        names = keys.filter { $0.hasPrefix(prefix) }.map { String($0.dropFirst(prefix.count)) }
            .filter { (try? RemoteName.require($0)) != nil }
        last = keys.max()
        isCut = fields["\(root)/IsTruncated"] == "true"
    }

    /// Some services write a blank as a plus sign, and others leave the sign as it is.
    private static func decoded(_ key: String, _ prefix: String) -> String? {
        let plain = key.removingPercentEncoding
        if plain?.hasPrefix(prefix) == true { return plain }
        return key.replacing("+", with: " ").removingPercentEncoding ?? plain
    }
}
