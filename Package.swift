// swift-tools-version:6.1

import PackageDescription

/// The commit that `coffer --version` names. Scripts/install sets it; other builds name none.
let commit = Context.environment["COFFER_COMMIT"]?.filter {
    $0.isHexDigit || "+changes".contains($0)
}

/// The thread sanitizer runs the suites of Store, Observation and Proof only. The others would take
/// as long to compile as all of these to run.
let excludedTests =
    Context.environment["COFFER_TSAN"] == "1"
    ? [
        "Behaviours", "Buckets", "Copies", "Engine", "Faults", "Interop", "Keys", "Pages",
        "Project", "Records", "Recovery", "Rekey", "Replica", "Rotation", "TestKit", "Tool",
        "Verification",
    ] : []

let package = Package(
    name: "coffer",
    platforms: [.macOS(.v15), .iOS(.v18)],
    products: [
        .library(name: "Coffer", targets: ["Coffer"]),
        .library(name: "CofferReplica", targets: ["CofferReplica"]),
        .library(name: "CofferObservation", targets: ["CofferObservation"]),
        .library(name: "CofferService", targets: ["CofferService"]),
        .library(name: "CofferTestKit", targets: ["CofferTestKit"]),
        .executable(name: "coffer", targets: ["CofferTool"]),
    ],
    traits: [
        .trait(
            name: "SystemSQLCipher",
            description: "Links the SQLCipher that pkg-config finds."
        ),
        .trait(
            name: "Service",
            description: "Fills CofferService, which needs swift-service-lifecycle and "
                + "swift-distributed-tracing."
        ),
        .default(enabledTraits: ["SystemSQLCipher"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        .systemLibrary(
            name: "CSQLCipher",
            pkgConfig: "sqlcipher",
            providers: [.apt(["libsqlcipher-dev"]), .brew(["sqlcipher"])]
        ),
        .target(
            name: "Coffer",
            dependencies: [
                .target(name: "CSQLCipher", condition: .when(traits: ["SystemSQLCipher"])),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "CryptoExtras", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
            ],
            // Spans of bytes that live as long as the row that lends them.
            swiftSettings: [.enableExperimentalFeature("Lifetimes")]
        ),
        // Requests of HTTP by libcurl, which is loaded when the first one is sent.
        .target(name: "CCurl"),
        .target(
            name: "CofferReplica",
            dependencies: [
                "CCurl", "Coffer", .product(name: "Crypto", package: "swift-crypto"),
            ]
        ),
        // Models for screens, with the module Observation of Swift and no user interface.
        .target(name: "CofferObservation", dependencies: ["Coffer"]),
        // For the tests of programs that use Coffer, with any testing library.
        .target(name: "CofferTestKit", dependencies: ["Coffer"]),
        // Stores as services of a server, and their spans. Empty without the trait Service, so that
        // other users do not resolve what it needs.
        .target(
            name: "CofferService",
            dependencies: [
                "Coffer",
                .product(
                    name: "ServiceLifecycle", package: "swift-service-lifecycle",
                    condition: .when(traits: ["Service"])),
                .product(
                    name: "Tracing", package: "swift-distributed-tracing",
                    condition: .when(traits: ["Service"])),
            ]
        ),
        // What the tool needs in C: lines from a person by libedit, if it is installed, which is
        // loaded when it is needed, and the name of the commit.
        .target(
            name: "CTool",
            cSettings: commit.map { [.define("COFFER_COMMIT", to: "\"\($0)\"")] } ?? []
        ),
        // The terminal. A target may not differ from `Coffer` in case only.
        .executableTarget(
            name: "CofferTool",
            dependencies: [
                "CTool", "Coffer", "CofferReplica",
                .target(name: "CSQLCipher", condition: .when(traits: ["SystemSQLCipher"])),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "SystemPackage", package: "swift-system"),
            ]
        ),
        // The program of the README, so that the tests compile and run it.
        .executableTarget(
            name: "ReadmeProgram",
            dependencies: ["Coffer"],
            path: "Tests/ReadmeProgram"
        ),
        // An example, so that the tests compile and run it.
        .executableTarget(
            name: "DownloadsProgram",
            dependencies: ["Coffer"],
            path: "Examples/Downloads"
        ),
        // A disk that fails on demand, for the tests.
        .target(
            name: "CFaultVFS",
            dependencies: [
                .target(name: "CSQLCipher", condition: .when(traits: ["SystemSQLCipher"]))
            ],
            path: "Tests/CFaultVFS"
        ),
        // A record of every change of files, for the second process of the tests.
        .target(name: "CFileRecorder", path: "Tests/CFileRecorder"),
        // What the tests and their second process do to a store while it is put to the proof.
        .target(
            name: "Workload",
            dependencies: ["Coffer"],
            path: "Tests/Workload"
        ),
        // The second process of the tests: it holds locks, is killed, runs out of disk.
        .executableTarget(
            name: "CofferTestPeer",
            dependencies: [
                "CFaultVFS", "CFileRecorder", "Coffer", "CofferReplica", "CSQLCipher", "Workload",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
            ],
            path: "Tests/CofferTestPeer"
        ),
        .testTarget(
            name: "CofferTests",
            dependencies: [
                "CFaultVFS", "CFileRecorder", "Coffer", "CSQLCipher", "CTool", "CofferTestPeer",
                "CofferObservation", "CofferReplica", "CofferTestKit", "CofferTool",
                "DownloadsProgram", "ReadmeProgram", "Workload",
                .product(name: "Logging", package: "swift-log"),
            ],
            exclude: excludedTests
        ),
    ],
    swiftLanguageModes: [.v6]
)

// The fuzzer links a library that only a build with -sanitize=fuzzer has: see Scripts/fuzz.
if Context.environment["COFFER_FUZZER"] == "1" {
    package.targets += [
        .target(name: "CLibFuzzer", path: "Tests/CLibFuzzer"),
        .executableTarget(
            name: "KeyringFuzzer",
            dependencies: [
                "CLibFuzzer", "Coffer", .product(name: "Crypto", package: "swift-crypto"),
            ],
            path: "Tests/KeyringFuzzer"
        ),
    ]
}
