import Foundation
import Synchronization
import Testing

@testable import Coffer
@testable import CofferReplica

/// Where access keys come from, and that nothing shows their secrets.
@Suite(.againstHanging, .onOwnThreads) struct S3CredentialTests {
    private static let secret = "wJalrXUtnFEMI/K7MDENG"
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func write(_ text: String, mode: Int = 0o600) throws -> String {
        let path = folder.path("credentials")
        try Data(text.utf8).write(to: URL(filePath: path))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        return path
    }

    /// What the keys sign with: the secret itself cannot be read.
    private func signature(_ keys: S3Keys) -> String {
        RequestSignature(scheme: .amazon, region: "us-east-1").authorization(
            of: .init(method: "GET", path: "/", headers: [:], bodyHash: ""), at: "20130524T000000Z",
            by: keys)
    }

    private func keys(_ id: String, token: String? = nil) throws -> S3Keys {
        try S3Keys(
            accessKeyID: id, secret: Self.secret.utf8, token: token?.utf8, source: "the test")
    }

    // MARK: Files

    @Test func `a profile is found among comments, blanks and other profiles`() throws {
        let path = try write(
            """
            # aws_access_key_id = comment
            aws_access_key_id = outside
            [default]\r
            aws_access_key_id=AKIDEFAULT\r
            aws_secret_access_key = other
            ; [backup]
            [ backup ]
              AWS_ACCESS_KEY_ID  =  AKIBACKUP
            region = us-east-1
            aws_secret_access_key = \(Self.secret)
            aws_session_token = dG9r=
            """)
        let found = try CredentialFile.keys(path, profile: "backup")
        #expect(found.accessKeyID == "AKIBACKUP")
        #expect(found.tokenText == "dG9r=")
        #expect(signature(found) == signature(try keys("AKIBACKUP")))
        #expect(try CredentialFile.keys(path, profile: "default").accessKeyID == "AKIDEFAULT")
    }

    @Test(arguments: [0o640, 0o604, 0o620, 0o644])
    func `a file that others may use is refused`(mode: Int) throws {
        let path = try write("[default]\naws_access_key_id=a\naws_secret_access_key=b", mode: mode)
        expect(.misuse) { try CredentialFile.keys(path, profile: "default") }
    }

    @Test func `what a file lacks is named without what it has`() throws {
        expect(.notFound) { try CredentialFile.keys(folder.path("none"), profile: "default") }
        expect(.misuse) { try CredentialFile.keys(folder.url.path, profile: "default") }
        let path = try write("[default]\naws_secret_access_key=\(Self.secret)")
        let absent = expect(.notFound) { try CredentialFile.keys(path, profile: "backup") }
        let half = expect(.misuse) { try CredentialFile.keys(path, profile: "default") }
        for error in [absent, half] {
            #expect(error.map { "\($0)".contains(Self.secret) } == false)
        }
    }

    // MARK: Commands

    private func script(_ text: String) throws -> String {
        let path = folder.path("command")
        try Data("#!/bin/sh\n\(text)\n".utf8).write(to: URL(filePath: path))
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: path)
        return path
    }

    @Test func `a command gives a temporary key`() throws {
        let path = try script(
            """
            echo '{"Version": 1, "AccessKeyId": "'$1'", "SecretAccessKey": "\(Self.secret)",
                "SessionToken": "t", "Expiration": "2030-01-31T12:00:00Z"}'
            """)
        let found = try CredentialCommand.keys([path, "AKICOMMAND"])
        #expect(found.accessKeyID == "AKICOMMAND")
        #expect(found.tokenText == "t")
        #expect(found.expiration == Date(timeIntervalSince1970: 1_896_091_200))
        #expect(signature(found) == signature(try keys("AKICOMMAND")))
    }

    @Test(arguments: [
        "exit 3", "echo text", "kill -9 $$", "head -c 100000 /dev/zero",
        #"echo '{"Version": 2, "AccessKeyId": "a", "SecretAccessKey": "b"}'"#,
        #"echo '{"Version": 1, "AccessKeyId": "a", "SecretAccessKey": "b", "Expiration": "soon"}'"#,
    ])
    func `a command that gives no credentials is an error`(text: String) throws {
        let path = try script(text)
        expect(.remoteDenied) { try CredentialCommand.keys([path]) }
    }

    @Test func `a command that hangs is ended, one that is absent is misuse`() throws {
        let path = try script("exec sleep 600")
        expect(.remoteDenied) {
            try CredentialCommand.keys([path], timeout: .milliseconds(200))
        }
        expect(.misuse) { try CredentialCommand.keys([folder.path("none")]) }
    }

    @Test(arguments: [
        "2030-01-31T12:00:00Z", "2030-01-31T12:00:00.000Z", "2030-01-31T13:00:00+01:00",
        "2030-01-31T12:00:00+00:00",
    ])
    func `an expiration is read in each form`(text: String) throws {
        let json = #"{"AccessKeyId": "a", "SecretAccessKey": "b", "Expiration": "\#(text)"}"#
        let found = try CredentialDocument.keys(
            in: Array(json.utf8), isOfCommand: false, source: "the test")
        #expect(found.expiration == Date(timeIntervalSince1970: 1_896_091_200))
    }

    // MARK: Machines and containers

    private static let document = """
        {"Code": "Success", "AccessKeyId": "AKIROLE", "SecretAccessKey": "s", "Token": "t",
        "Expiration": "2030-01-31T12:00:00Z"}
        """

    @Test func `a machine is asked for a token, its role and the key of the role`() async throws {
        let transport = FakeTransport { request in
            switch request.url {
            case let url where url.hasSuffix("/latest/api/token"): .text(200, "token\n")
            case let url where url.hasSuffix("/security-credentials/"): .text(200, "role\n")
            default: .text(200, Self.document)
            }
        }
        let found = try await InstanceCredentials(transport: transport, environment: [:]).keys()
        #expect(found.accessKeyID == "AKIROLE")
        #expect(found.tokenText == "t")
        let requests = transport.requests
        #expect(
            requests.map(\.description) == [
                "PUT http://169.254.169.254/latest/api/token",
                "GET http://169.254.169.254/latest/meta-data/iam/security-credentials/",
                "GET http://169.254.169.254/latest/meta-data/iam/security-credentials/role",
            ])
        #expect(
            requests.dropFirst().allSatisfy { $0.headers["x-aws-ec2-metadata-token"] == "token" })
    }

    @Test func `a machine without a role, and none that answers, are told apart`() async throws {
        let none = FakeTransport { request in
            request.method == "PUT" ? .text(200, "token") : .text(404, "")
        }
        await expect(.remoteDenied) {
            try await InstanceCredentials(transport: none, environment: [:]).keys()
        }
        let silent = FakeTransport { _ in throw POSIXError(.ECONNREFUSED) }
        await expect(.remoteUnavailable) {
            try await InstanceCredentials(transport: silent, environment: [:]).keys()
        }
    }

    @Test func `a container is asked where the environment says`() async throws {
        let transport = FakeTransport { _ in .text(200, Self.document) }
        let token = folder.path("token")
        try Data("from file\n".utf8).write(to: URL(filePath: token))
        let environments = [
            ["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/id"],
            [
                "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.23/v1/id",
                "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": token,
            ],
            [
                "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://[::1]:80/id",
                "AWS_CONTAINER_AUTHORIZATION_TOKEN": "direct",
            ],
        ]
        for environment in environments {
            _ = try await InstanceCredentials(transport: transport, environment: environment).keys()
        }
        #expect(
            transport.requests.map(\.url) == [
                "http://169.254.170.2/v2/id", "http://169.254.170.23/v1/id", "http://[::1]:80/id",
            ])
        #expect(
            transport.requests.map { $0.headers["authorization"] } == [nil, "from file", "direct"])
    }

    @Test(arguments: ["http://192.0.2.1/id", "http://169.254.170.2.example/id", "file:///id", "id"])
    func `no other host is asked without encryption`(url: String) async throws {
        let transport = FakeTransport { _ in .text(200, Self.document) }
        await expect(.misuse) {
            try await InstanceCredentials(
                transport: transport, environment: ["AWS_CONTAINER_CREDENTIALS_FULL_URI": url]
            ).keys()
        }
        #expect(transport.requests.isEmpty)
    }

    // MARK: Loading

    @Test func `a key is used until five minutes before it expires`() async throws {
        let clock = Mutex(Date(timeIntervalSince1970: 0))
        let count = Mutex(0)
        let now = { @Sendable in clock.withLock { $0 } }
        let loader = S3KeyLoader(now: now) {
            let number = count.withLock { count in
                count += 1
                return count
            }
            return try S3Keys(
                accessKeyID: "key\(number)", secret: "s".utf8, token: [UInt8]?.none,
                expiration: Date(timeIntervalSince1970: Double(number) * 1000), source: "the test")
        }
        for (time, name) in [(0.0, "key1"), (699, "key1"), (700, "key2"), (1699, "key2")] {
            clock.withLock { $0 = Date(timeIntervalSince1970: time) }
            #expect(try await loader.keys().accessKeyID == name)
        }
        let second = try await loader.keys()
        #expect(try await loader.keys(insteadOf: second).accessKeyID == "key3")
        // Another request that was refused with the old key takes the new one, and loads none.
        #expect(try await loader.keys(insteadOf: second).accessKeyID == "key3")
    }

    @Test func `a key is used while it is valid if no other can be loaded`() async throws {
        let clock = Mutex(Date(timeIntervalSince1970: 0))
        let isLoaded = Mutex(false)
        let now = { @Sendable in clock.withLock { $0 } }
        let loader = S3KeyLoader(now: now) {
            guard !isLoaded.withLock({ $0 }) else {
                throw StoreError(.remoteUnavailable, "no service")
            }
            isLoaded.withLock { $0 = true }
            return try S3Keys(
                accessKeyID: "key", secret: "s".utf8, token: [UInt8]?.none,
                expiration: Date(timeIntervalSince1970: 1000), source: "the test")
        }
        for time in [0.0, 800, 999] {
            clock.withLock { $0 = Date(timeIntervalSince1970: time) }
            #expect(try await loader.keys().accessKeyID == "key")
        }
        clock.withLock { $0 = Date(timeIntervalSince1970: 1000) }
        await expect(.remoteUnavailable) { try await loader.keys() }
    }

    @Test func `all that wait for a key share one loading`() async throws {
        let count = Mutex(0)
        let loader = S3KeyLoader {
            count.withLock { $0 += 1 }
            await Task.yield()
            return try keys("key")
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<32 { group.addTask { _ = try await loader.keys() } }
            try await group.waitForAll()
        }
        #expect(count.withLock { $0 } == 1)
    }

    // MARK: Secrets

    @Test func `no description shows a secret, a token or an argument`() throws {
        let credentials = S3Credentials.keys(
            accessKeyID: "AKI", secretAccessKey: Self.secret, sessionToken: "dG9rZW4")
        let remote = try S3Remote(
            "https://s3.example/b", credentials: credentials,
            transport: FakeTransport { _ in .text(200, "") })
        let request = HTTPRequest(
            method: "GET", url: "https://s3.example/b", headers: ["authorization": Self.secret])
        let response = HTTPResponse(status: 200, body: Array(Self.secret.utf8))
        let all: [Any] = [
            credentials, remote, request, response, try keys("AKI", token: "dG9rZW4"),
            S3Credentials.command(["/bin/get", Self.secret]),
        ]
        for value in all {
            var text = "\(value) \(String(reflecting: value)) "
            dump(value, to: &text)
            for word in [Self.secret, "dG9rZW4", "authorization"] {
                #expect(!text.contains(word), "\(type(of: value)): \(text)")
            }
        }
    }

    @Test(arguments: [
        ("", "s"), ("a", ""), ("a b", "s"), ("a", "s\r\nx-amz-acl: public"), ("a", "ü"),
    ])
    func `a key that no header can have is refused when the remote is made`(
        id: String, secret: String
    ) {
        let credentials = S3Credentials.keys(accessKeyID: id, secretAccessKey: secret)
        let error = expect(.misuse) {
            try S3Remote("https://s3.example/b", credentials: credentials)
        }
        #expect(error.map { "\($0)".contains("x-amz-acl") } == false)
    }
}
