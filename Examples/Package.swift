// swift-tools-version:6.1

import PackageDescription

let package = Package(
    name: "coffer-examples",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "coffer", path: ".."),
        .package(url: "https://github.com/swiftcsv/SwiftCSV", from: "0.10.0"),
    ],
    targets: [
        .target(name: "Report", path: "Report"),
        .executableTarget(
            name: "Airports",
            dependencies: [
                "Report",
                .product(name: "Coffer", package: "coffer"),
                .product(name: "SwiftCSV", package: "SwiftCSV"),
            ],
            path: "Airports"
        ),
        .executableTarget(
            name: "Cookbook",
            dependencies: [
                .product(name: "Coffer", package: "coffer"),
                .product(name: "CofferObservation", package: "coffer"),
            ],
            path: "Cookbook"
        ),
        .executableTarget(
            name: "Flights",
            dependencies: ["Report", .product(name: "Coffer", package: "coffer")],
            path: "Flights"
        ),
        .executableTarget(
            name: "Downloads",
            dependencies: [.product(name: "Coffer", package: "coffer")],
            path: "Downloads"
        ),
        .executableTarget(
            name: "Fleet",
            dependencies: ["Report", .product(name: "Coffer", package: "coffer")],
            path: "Fleet"
        ),
        .executableTarget(
            name: "Replica",
            dependencies: [
                "Report",
                .product(name: "Coffer", package: "coffer"),
                .product(name: "CofferReplica", package: "coffer"),
            ],
            path: "Replica"
        ),
        .executableTarget(
            name: "Sessions",
            dependencies: ["Report", .product(name: "Coffer", package: "coffer")],
            path: "Sessions"
        ),
    ],
    swiftLanguageModes: [.v6]
)
