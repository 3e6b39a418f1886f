// swift-tools-version:6.1

import PackageDescription

// The Swift systems of the comparison. Those in C are built by `Benchmarks/run` with the C compiler.
let package = Package(
    name: "coffer-benchmarks",
    platforms: [.macOS(.v15)],
    traits: [
        .trait(name: "Rivals", description: "Fetches and builds GRDB too.")
    ],
    dependencies: [
        .package(name: "coffer", path: ".."),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/groue/GRDB.swift", exact: "7.10.0"),
    ],
    targets: [
        // Shared by all systems, in C so that the C floor and Swift write the same bytes.
        .target(name: "CWorkload"),
        .target(name: "Workloads", dependencies: ["CWorkload"]),
        .systemLibrary(name: "CEngine", pkgConfig: "sqlcipher"),
        .executableTarget(
            name: "bench-swift-c", dependencies: ["CEngine", "Workloads"], path: "Sources/SwiftC"),
        .executableTarget(
            name: "bench-coffer",
            dependencies: [
                "CWorkload", "Workloads", .product(name: "Coffer", package: "coffer"),
                .product(name: "Crypto", package: "swift-crypto"),
            ],
            path: "Sources/CofferBench"),
        .executableTarget(
            name: "bench-replica",
            dependencies: [
                "CWorkload", "Workloads", .product(name: "Coffer", package: "coffer"),
                .product(name: "CofferReplica", package: "coffer"),
            ],
            path: "Sources/ReplicaBench"),
        .executableTarget(
            name: "bench-grdb",
            dependencies: [
                "Workloads",
                .product(
                    name: "GRDB", package: "GRDB.swift", condition: .when(traits: ["Rivals"])),
            ],
            path: "Sources/GRDBBench"),
    ],
    swiftLanguageModes: [.v6]
)

// SQLite.swift, when RIVALS names a folder of checkouts. Its own manifest has SQLCipher for Apple's
// platforms alone, so its sources are compiled here, with its trait SQLCipher on and the module
// that this names made from what pkg-config finds. `Benchmarks/run` makes the link to them.
if Context.environment["RIVALS"] != nil {
    package.targets += [
        .systemLibrary(
            name: "SQLCipher", path: "Sources/SQLCipherModule", pkgConfig: "sqlcipher"),
        .target(
            name: "SQLite", dependencies: ["SQLCipher"], path: ".build-rivals/SQLite",
            exclude: ["Info.plist", "PrivacyInfo.xcprivacy"],
            swiftSettings: [.define("SQLCipher"), .swiftLanguageMode(.v5)]),
        .executableTarget(
            name: "bench-sqliteswift", dependencies: ["SQLite", "Workloads"],
            path: "Sources/SQLiteSwiftBench"),
    ]
}
