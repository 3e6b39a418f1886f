// swift-tools-version:6.1

import PackageDescription

let package = Package(
    name: "coffer",
    platforms: [.macOS(.v15), .iOS(.v18)],
    products: [
        .library(name: "Coffer", targets: ["Coffer"])
    ],
    traits: [
        .trait(
            name: "SystemSQLCipher",
            description: "Links the SQLCipher that pkg-config finds."
        ),
        .default(enabledTraits: ["SystemSQLCipher"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
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
            ]
        ),
        // The program of the README, so that the tests compile and run it.
        .executableTarget(
            name: "ReadmeProgram",
            dependencies: ["Coffer"],
            path: "Tests/ReadmeProgram"
        ),
        // The second process of the tests: it holds locks, is killed, runs out of disk.
        .executableTarget(
            name: "CofferTestPeer",
            dependencies: ["Coffer", "CSQLCipher"],
            path: "Tests/CofferTestPeer"
        ),
        .testTarget(
            name: "CofferTests",
            dependencies: ["Coffer", "CSQLCipher", "CofferTestPeer", "ReadmeProgram"]
        ),
    ],
    swiftLanguageModes: [.v6]
)
