"""External repositories: Debian's Bazel packages and the upstream sources that Debian ships.

The tarballs are Debian's *.orig.tar.gz, which tools/setup puts into third_party/distdir under the last component of the
URL named here. Bazel takes them from there by their sha256 (--distdir in .bazelrc).
"""

load("@bazel_tools//tools/build_defs/repo:http.bzl", "http_archive")
load("//third_party:cuda.bzl", "cuda_repository")
load("//third_party:nccl.bzl", "nccl_repository")

# buildifier: disable=unnamed-macro
def tcpx_deps():
    """Declares every external repository of this project."""

    # Bazel loads rules_cc and rules_java itself while it resolves toolchains.
    native.local_repository(name = "rules_cc", path = "third_party/rules_cc")
    native.local_repository(name = "rules_shell", path = "third_party/rules_shell")
    native.local_repository(name = "rules_java", path = "/usr/share/bazel/rules/java")

    # Abseil's BUILD files need both; the platforms inside Bazel 4.2.3 lack wasm32.
    native.local_repository(name = "bazel_skylib", path = "/usr/share/bazel/tools/skylib")
    native.local_repository(name = "platforms", path = "/usr/share/bazel/tools/platforms")

    # Debian repacked this one: the sum is that of abseil_20220623.1.orig.tar.gz, not that of the release.
    http_archive(
        name = "com_google_absl",
        sha256 = "abfe2897f3a30edaa74bc34365afe3c2a3cd012091a97dc7e008f7016adcd5fe",
        strip_prefix = "abseil-20220623.1",
        url = "https://github.com/abseil/abseil-cpp/archive/refs/tags/abseil-20220623.1.tar.gz",
    )
    http_archive(
        name = "com_google_googletest",
        build_file = "//third_party:googletest.BUILD",
        sha256 = "81964fe578e9bd7c94dfdb09c8e4d6e6759e19967e397dbea48d1c10e45d0df2",
        strip_prefix = "googletest-release-1.12.1",
        url = "https://github.com/google/googletest/archive/refs/tags/release-1.12.1.tar.gz",
    )
    http_archive(
        name = "com_github_google_benchmark",
        sha256 = "6430e4092653380d9dc4ccb45a1e2dc9259d581f4866dc0759713126056bc1d7",
        strip_prefix = "benchmark-1.7.1",
        url = "https://github.com/google/benchmark/archive/refs/tags/v1.7.1.tar.gz",
    )
    http_archive(
        name = "liburing",
        build_file = "//third_party:liburing.BUILD",
        sha256 = "2eac26f880125d83f75ba8641fde5d88226dd352d3cee95d45a9128758a8f1be",
        strip_prefix = "liburing-2.3",
        url = "https://github.com/axboe/liburing/archive/refs/tags/liburing-2.3.tar.gz",
    )
    http_archive(
        name = "libsodium",
        build_file = "//third_party:libsodium.BUILD",
        sha256 = "d59323c6b712a1519a5daf710b68f5e7fde57040845ffec53850911f10a5d4f4",
        strip_prefix = "libsodium-1.0.18",
        url = "https://github.com/jedisct1/libsodium/archive/refs/tags/1.0.18.tar.gz",
    )

    cuda_repository(name = "local_cuda")
    nccl_repository(name = "local_nccl")
