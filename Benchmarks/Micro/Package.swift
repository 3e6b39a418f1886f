// swift-tools-version:6.1

import PackageDescription

/// The rooms of `Sources/Coffer` that have their own benchmarks.
let rooms = ["Keys", "Keyring", "Pages", "Engine", "Store", "Records", "Buckets", "Rotation"]

// A separate package, so that nothing else fetches or builds the benchmark tools.
let package = Package(
    name: "coffer-micro-benchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "coffer", path: "../.."),
        // Without its traits, which preload libraries to count allocations and references.
        .package(url: "https://github.com/ordo-one/benchmark", from: "1.38.1", traits: []),
    ],
    targets: [
        .target(
            name: "Fixture",
            dependencies: [
                .product(name: "Benchmark", package: "benchmark"),
                .product(name: "Coffer", package: "coffer"),
            ])
    ]
        + rooms.map { room in
            .executableTarget(
                name: room,
                dependencies: [
                    "Fixture",
                    .product(name: "Benchmark", package: "benchmark"),
                    .product(name: "Coffer", package: "coffer"),
                ],
                path: "Benchmarks/\(room)",
                plugins: [.plugin(name: "BenchmarkPlugin", package: "benchmark")])
        },
    swiftLanguageModes: [.v6]
)
