import Foundation
import Testing

@testable import Coffer
@testable import CofferReplica

/// The examples that Amazon publishes, with the signatures that it gives.
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html>
@Suite struct S3SignatureTests {
    private static let date = "20130524T000000Z"
    private static let emptyHash =
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

    private func authorization(
        _ method: String, _ path: String, query: [String: String] = [:],
        headers: [String: String] = [:], bodyHash: String = emptyHash
    ) throws -> String {
        let keys = try S3Keys(
            accessKeyID: "AKIAIOSFODNN7EXAMPLE",
            secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".utf8, token: [UInt8]?.none,
            source: "the example")
        let own = [
            "host": "examplebucket.s3.amazonaws.com", "x-amz-date": Self.date,
            "x-amz-content-sha256": bodyHash,
        ]
        let request = RequestSignature.Request(
            method: method, path: path, query: query,
            headers: own.merging(headers) { $1 }, bodyHash: bodyHash)
        return RequestSignature(scheme: .amazon, region: "us-east-1")
            .authorization(of: request, at: Self.date, by: keys)
    }

    private func expected(_ names: String, _ signature: String) -> String {
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
            + "SignedHeaders=\(names),Signature=\(signature)"
    }

    @Test func `a part of an object is asked for as in Amazon's example`() throws {
        #expect(
            try authorization("GET", "/test.txt", headers: ["range": "bytes=0-9"])
                == expected(
                    "host;range;x-amz-content-sha256;x-amz-date",
                    "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"))
    }

    @Test func `an object is created as in Amazon's example`() throws {
        // Of `Welcome to Amazon S3.`
        let hash = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"
        let headers = [
            "date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY",
        ]
        #expect(
            try authorization("PUT", "/test$file.text", headers: headers, bodyHash: hash)
                == expected(
                    "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
                    "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"))
    }

    @Test func `a query without a value is signed as in Amazon's example`() throws {
        #expect(
            try authorization("GET", "/", query: ["lifecycle": ""])
                == expected(
                    "host;x-amz-content-sha256;x-amz-date",
                    "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"))
    }

    @Test func `a list is asked for as in Amazon's example`() throws {
        #expect(
            try authorization("GET", "/", query: ["prefix": "J", "max-keys": "2"])
                == expected(
                    "host;x-amz-content-sha256;x-amz-date",
                    "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"))
    }

    @Test func `the date of a signature has no separators and no fraction`() {
        let date = Date(timeIntervalSince1970: 1_369_353_600.75)
        #expect(RequestSignature.text(of: date) == Self.date)
    }

    @Test func `everything but plain characters is encoded, in capitals`() {
        #expect(RequestSignature.encoded(path: "/a b/ü+*~'") == "/a%20b/%C3%BC%2B%2A~%27")
        #expect(
            RequestSignature.encoded(query: ["b": "x/y", "a": "=&", "a-": ""])
                == "a=%3D%26&a-=&b=x%2Fy")
    }
}
