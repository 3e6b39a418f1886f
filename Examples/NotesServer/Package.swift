// swift-tools-version:6.1

import PackageDescription

// A package of its own, so that the other examples do not build a web server.
let package = Package(
    name: "notes-server",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "coffer", path: "../..", traits: [.defaults, "Service"]),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        .executableTarget(
            name: "NotesServer",
            dependencies: [
                .product(name: "Coffer", package: "coffer"),
                .product(name: "CofferService", package: "coffer"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ]
        ),
        // The tests of CofferService stand here, where its packages are built anyway.
        .testTarget(
            name: "CofferServiceTests",
            dependencies: [
                .product(name: "Coffer", package: "coffer"),
                .product(name: "CofferService", package: "coffer"),
                .product(name: "InMemoryTracing", package: "swift-distributed-tracing"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(
                    name: "ServiceLifecycleTestKit", package: "swift-service-lifecycle"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
            ]
        ),
    ],
    swiftLanguageModes: [.v6]
)
