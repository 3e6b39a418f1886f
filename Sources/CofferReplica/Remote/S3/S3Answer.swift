import Coffer

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An answer of a storage service, and what an error in it means.
struct S3Answer {
    let response: HTTPResponse
    /// The remote, as messages name it.
    let place: String
    /// The word for the failure, such as `NoSuchBucket`; `nil` if there is none.
    let code: String?
    private let fields: XMLFields?

    init(_ response: HTTPResponse, place: String) {
        (self.response, self.place) = (response, place)
        fields = response.status >= 300 ? XMLFields(response.body) : nil
        code = fields?["Error/Code"].flatMap(Self.word)
    }

    var status: Int { response.status }

    /// When the service answered, by its own clock.
    var time: Date? { HTTPDate.date(response.headers["date"]) }

    /// Whether another access key may be accepted where this one was not: it has expired, or was
    /// replaced.
    var isKeyInvalid: Bool {
        Self.codesOfKeys.contains(code ?? "")
    }

    /// Whether the service has the bucket and not the object.
    ///
    /// A status alone does not say so: a proxy or another server may answer 404 to everything.
    var isWithoutObject: Bool {
        status == 404 && (code == "NoSuchKey" || code == "NoSuchObject")
    }

    private static let codesOfKeys: Set<String> = [
        "ExpiredToken", "ExpiredTokenException", "InvalidAccessKeyId", "InvalidToken",
        "TokenRefreshRequired",
    ]

    /// The failures of one request, which the next may not have.
    private static let codesOfMoments: Set<String> = [
        "BadDigest", "IncompleteBody", "OperationAborted", "RequestTimeout", "SlowDown",
        "XAmzContentSHA256Mismatch",
    ]

    // MARK: Errors

    /// The error for an answer that is none of those that the request may have.
    ///
    /// It has the status and the service's own word for the failure, and no other text of it.
    ///
    /// - Parameter text: What was tried, such as `create log/1/2`.
    func error(_ text: String) -> StoreError {
        if let hint = hintElsewhere {
            return failure(.misuse, text, "it is to be asked elsewhere", hint)
        }
        if isKeyInvalid || status == 401 || status == 403 {
            return failure(.remoteDenied, text, "it was refused", hintOfRefusal)
        }
        if isUnfit {
            return failure(
                .remoteUnfit, text, "the service cannot do this",
                "Choose a service that refuses to create an object twice.")
        }
        switch status {
        case 404 where code == "NoSuchBucket":
            return failure(
                .notFound, text, "there is no such bucket",
                "Make the bucket first. Coffer makes none.")
        case 404:
            return failure(
                .notFound, text, "the host does not answer as a storage service does",
                "Look whether the URL names the host of the service, then the bucket.")
        case 408, 409, 429, 500...599:
            return failure(.remoteUnavailable, text, "the service cannot now", nil)
        case _ where Self.codesOfMoments.contains(code ?? ""):
            return failure(.remoteUnavailable, text, "the request did not arrive whole", nil)
        default:
            return failure(
                .remoteUnfit, text, "the service does not answer as it has to",
                "Look whether the URL names the host of the service, then the bucket.")
        }
    }

    private func failure(
        _ kind: StoreError.Code, _ text: String, _ reason: String, _ hint: String?
    ) -> StoreError {
        let word = code.map { ", \($0)" } ?? ""
        return StoreError(
            kind, "cannot \(text) in \(place): \(reason) (status \(status)\(word))", hint: hint)
    }

    /// Whether the service says that it does not implement the request.
    private var isUnfit: Bool {
        if status == 501 || code == "NotImplemented" { return true }
        guard status == 400, code == "InvalidArgument" else { return false }
        let words = [fields?["Error/ArgumentName"], fields?["Error/Message"]]
        return words.contains { word in
            let word = word?.lowercased() ?? ""
            return word.contains("if-none-match") || word.contains("if-generation-match")
        }
    }

    /// The next step if the service wants to be asked by another host or for another region.
    private var hintElsewhere: String? {
        let isOfRegion =
            code == "AuthorizationHeaderMalformed" || code == "IllegalLocationConstraint"
        guard (300..<400).contains(status) || isOfRegion else { return nil }
        let region = (response.headers["x-amz-bucket-region"] ?? fields?["Error/Region"])
            .flatMap(Self.word)
        if let region { return "The service names the region \(region)." }
        let location = response.headers["location"].flatMap { URL(string: $0)?.host() }
        if let host = (fields?["Error/Endpoint"] ?? location).flatMap(Self.word) {
            return "The service names the host \(host)."
        }
        return "Look whether the URL and the region are those of the bucket."
    }

    private var hintOfRefusal: String? {
        switch code {
        case "RequestTimeTooSkewed", "RequestExpired":
            "Set the clock of this machine. The service's date is "
                + "\(time.map { $0.formatted(.iso8601) } ?? "not known")."
        case "SignatureDoesNotMatch":
            "Look whether the secret belongs to the access key."
        case "AccessDenied":
            "The key must be allowed to list the bucket, and to read, create and delete objects. "
                + "Without the right to list, an absent object is refused too."
        case _ where isKeyInvalid: "The access key has expired, or is not one of this service."
        default: nil
        }
    }

    /// A text of the service, if it is one plain word: a terminal may show it.
    private static func word(_ text: String) -> String? {
        let isPlain = text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            default: "-_.:".utf8.contains(byte)
            }
        }
        return isPlain && !text.isEmpty && text.utf8.count <= 100 ? text : nil
    }
}
